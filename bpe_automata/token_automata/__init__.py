"""Explicit automata over token ids, whatever built them. `TokenAutomaton` holds every operation;
each is written in a module of its own, on the plain arrays of a `Table`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

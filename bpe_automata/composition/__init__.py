"""Languages that are made of others.

Modules:

    language       what may be given for a language, and its automaton
    joining        one after another, one of several, again and again; special tokens between them
    free           any text up to a trigger, or without some texts
    calls          calls of functions, in the formats of models
    descriptions   languages as data: what requests and the command line say
    readings       the named parts of a text that is being written
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

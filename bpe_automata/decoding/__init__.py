"""Floor 3: constraints and the matcher that follows them; `verify` holds them against `encode`,
`explain` says why ids are not canonical."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

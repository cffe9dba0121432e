"""Floor 1: alphabets and automata. Regex, set of strings or foreign automaton -> minimal byte DFA.

compile_regex(r) accepts s.encode()  <=>  re.fullmatch(r, s)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Context-free grammars, in lark's format or llama.cpp's, as linked automata.

Modules:

    terminals   the texts of a terminal
    bounds      what lark may be given, as nothing stops it
    rules       rules without repeats, options and templates
    reading     what lark makes of a grammar: rules, and terminals with what is ignored before them
    gbnf        rules and terminals of llama.cpp's format
    networks    rules as networks of symbols, without left recursion
    linking     the linked automaton of the networks
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

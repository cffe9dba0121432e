"""Context-free grammars, in lark's format, as linked automata.

bounds      what lark would write a grammar out to, counted before it is asked
terminals   the texts of a terminal
reading     what lark makes of a grammar: rules without repeats and options; terminals, with what
            is ignored before them
networks    rules as networks of symbols, without left recursion; what is written inline
linking     the parts, and the stacks that are their contexts
"""

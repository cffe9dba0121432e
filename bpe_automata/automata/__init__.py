"""Automata over bytes: regexes, lists of texts and automata of others -> minimal DFAs, and linked
automata, whose states are made as texts lead to them.

    compile_regex(r) accepts s.encode()  <=>  re.fullmatch(r, s)

Modules:

    source and syntax    `syntax`, `codepoints` make the tree of a regex; `sources` reads the rest
    explicit             `compile`, `utf8` and `assembly` make a `dfa`; `minimise`, `algebra`
    linked               `linked` enters `parts` (their tables: `part_tables`, `linked_store`);
                         `rounds` makes parts of rules, `linked_regex` of regexes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

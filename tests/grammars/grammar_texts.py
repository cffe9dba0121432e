"""Grammars for tests: those that lark's tutorials build up (a calculator, JSON; lark is under the
MIT licence), written anew, and a subset of SQL."""

ARITHMETIC = r"""
start: sum
?sum: product | sum "+" product | sum "-" product
?product: atom | product "*" atom | product "/" atom
?atom: NUMBER -> number | "-" atom -> negated | NAME | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""

JSON = r"""
?start: value
?value: object | array | string | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: string ":" value
string: ESCAPED_STRING
%import common.ESCAPED_STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""

SQL = r"""
start: query ";"?
query: "select"i _list{column} "from"i _list{table} where? order?
column: "*" | expression ["as"i NAME]
table: NAME | "(" query ")" NAME
where: "where"i condition
order: "order"i "by"i _list{expression} ("asc"i | "desc"i)?
?condition: condition "or"i conjunct | conjunct
?conjunct: conjunct "and"i test | test
?test: "not"i test | expression COMPARISON expression | "(" condition ")"
?expression: expression ("+" | "-") term | term
?term: term "*" factor | factor
?factor: NAME ("." NAME)? | INT | STRING | "(" expression ")" | NAME "(" _list{expression} ")"
_list{item}: item ("," item)*
COMPARISON: "=" | "<" | ">" | "<=" | ">=" | "<>"
STRING: /'[^'\n]*'/
%import common.CNAME -> NAME
%import common.INT
%import common.WS
%ignore WS
%ignore /--[^\n]*/
"""

GRAMMARS = {"arithmetic": ARITHMETIC, "JSON": JSON, "SQL": SQL}

SMALL = [  # with the letters that their texts are made of
    ('start: ["a"] ("b" | "c"~0..3)~2 ["d" ["e"]]', "abcde"),
    ('start: f{"a"} f{g{"b"}}\nf{x}: x | g{g{"c"}}\ng{x}: x+ x* x', "abc"),
    ('start: (a | b)\na: "(" a ")" | "x"\nb: "(" b "]" | "x"', "(x)]"),
    ('start: "a" x*\nx: "a"~2..3\n%ignore " "', "a "),
    ('start: [a] "c"\na.2: "a" | A\nA.3: "a"+\n%ignore "b"\n%ignore "bb"', "abc"),  # priorities
    ('start: "a" "b"?\n%ignore /#[^\\n]*/\n%ignore "\\n"', "ab#\n"),  # as long as it can be
    ('start: "a" "b"?\n%ignore /[ \\r\\n]+/\n%ignore /(\\r?\\n)+/', "ab \r\n"),
    ('start: "a" (" b" | /é/) "b"\n%ignore /[ é]+/', "ab é"),
    ('start: ["b"]\n%ignore "a"', "ab"),
    ("start: (X | Y)+\nX: /a.*?b/\nY: /a|ab/", "ab"),  # preferences of regexes
    ('start: "a"i _s{b, ","}\nb: "b"\n_s{x, y}: x (y x)*', "aAbB,"),
    ('start: "é"+ | /[а-я]/i', "éaЖж"),
    ('start: a b\na: "x" | unproductive\nunproductive: unproductive "x"\nb: "y"', "xy"),
]

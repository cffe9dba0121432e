"""Answers that differ in white space, or begin or end with it: indentation, tabs, new lines."""

from __future__ import annotations

from experiments.study.cases.making import table

_INDENTED = (
    ("return", "def parse(text):\n    if not text:\n       ", "return|raise|pass", ""),
    ("dedent", "for x in xs:\n    if x > 3:\n        print(x)\n   ", "else:|elif|total", ""),
    ("yaml_key", "server:\n  host: localhost\n ", "port: 80|name: web", ""),
)

_AFTER_SPACES = (
    ("sentence", "The end of a sentence.", "Then| Then", ""),
    ("assignment", "x", "= 1|=1| = 1", ""),
    ("comma", "numbers = [1,", "2]|2 ]| 2]", ""),
    ("operator", "area = width", "* height|*height", ""),
    ("columns", "name    age\nAda     36\nLinus", " 21|  21|    21", ""),
    ("python_tail", "def f(x):\n    return x", "# one|  # one| #one", ""),
)

_MIXED = (
    ("body", "def zero():", "\n    return 0| return 0|\n  return 0", ""),
    ("block", "if (ready) {", "\n  go();|\n    go();|\n\tgo();| go();", ""),
    ("poem", "Roses are red,", "\nViolets| violets|\n\nViolets", ""),
    ("paragraph", "The first chapter ends here.", "\n\nChapter|\nChapter| Chapter", ""),
    ("list_item", "Shopping list:", "\n- milk|\n* milk|\n1. milk| milk", ""),
    ("json_pretty", "{", '\n  "id"|\n    "id"| "id"', ""),
    ("python_else", "if x:\n    y = 1", "\nelse:|\n    else:|\n\n", "\nelse:"),
    ("windows", "key=value", "\r\n|\n|;", ""),
    ("makefile", "clean:", "\n\trm|\n    rm|\n\t@rm", "\n\trm|\n\t@rm"),
    ("kernel", "static int probe(void)\n{", "\n\treturn 0;|\n    return 0;| return 0;", ""),
    ("tsv", "id\tname\tage\n1\tAda\t36\n2\tAlan", "\t41|,41| 41", "\t41"),
    ("line_end", "The parser is done", ".\n|\n|\t\n", ""),
    ("quote_reply", "> Shall we meet on Monday?", "\n\nYes|\nYes|\n> Yes", ""),
    ("dash", "pages 12", "-15.|–15.| - 15.", ""),
)

CASES = (
    table("whitespace", "space", _INDENTED, "code")
    + table("whitespace", "space", _AFTER_SPACES)
    + table("whitespace", "mixed", _MIXED)
)

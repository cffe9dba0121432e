"""Code: methods, keywords, imports, operators, names and types in several languages.

Indentation is in `whitespace`.
"""

from __future__ import annotations

from experiments.study.cases.making import table

_PYTHON = (
    ("import", "import numpy as", "np|numpy|N", "np"),
    ("from", "from collections import", "defaultdict|deque|Counter", ""),
    ("plot", "import matplotlib.pyplot as", "plt|plot|pyplot", "plt"),
    (
        "except",
        "try:\n    x = int(text)\nexcept",
        "ValueError:|TypeError:|KeyError:",
        "ValueError:",
    ),
    ("operator", "def is_even(n):\n    return n % 2", "== 0|== 1|!= 0", "== 0"),
    ("none", "if result is", "None:|not None:|True:", ""),
    ("annotation", "def length(text: str) ->", "int:|str:|bool:|None:", "int:"),
    ("for", "numbers = [1, 2, 3]\nfor n", "in numbers|of numbers", "in numbers"),
    ("add", "total = 0\nfor price in prices:\n    total", "+= price|-= price|= price", "+= price"),
    ("lambda", "names.sort(key=lambda name:", "name.lower()|len(name)|name[0]", ""),
    ("boolean", "found = False\nif x == y:\n    found =", "True|true|1", "True"),
    ("open", "with open('data.csv') as", "f:|file:|handle:", ""),
)

_JAVASCRIPT = (
    ("js_equal", "if (typeof value", "=== 'string'|= 'string'", "=== 'string'"),
    ("js_await", "async function load(url) {\n  const r =", "await fetch(|fetch(|new URL(", ""),
    ("js_arrow", "const double = (x)", "=> 2|-> 2|{ return", "=> 2"),
    ("js_null", "let selected =", "null;|undefined;|None;|[];", ""),
    ("js_export", "class Queue {}\nexport", "default Queue;|{ Queue };", ""),
    ("ts_type", "interface User {\n  name:", "string;|String;|str;|number;", "string;"),
)

_SYSTEMS = (
    ("rust_let", "fn main() {\n    let", "mut sum = 0;|sum = 0;|x = 0;", ""),
    ("rust_match", "match number {\n    0 =>", '"zero",|None,|return,', ""),
    ("rust_type", "fn area(width: f64, height: f64) ->", "f64|f32|i32|usize", "f64"),
    (
        "c_return",
        'int main(void) {\n    puts("hello");\n    return',
        "0;|1;|EXIT_SUCCESS;",
        "0;|EXIT_SUCCESS;",
    ),
    ("c_allocate", "char *buffer =", "malloc(|calloc(|realloc(|NULL;", ""),
    ("go_error", "file, err := os.Open(name)\nif err", "!= nil {|== nil {", ""),
    ("java_main", "public static", "void main|int main|final", ""),
    ("swift", "func greet(name: String)", "-> String|-> Int|throws", ""),
)

_SHELL_AND_SQL = (
    ("sh_search", "# lines with TODO in all files\ngrep", "-rn TODO|-v TODO|-c TODO", "-rn TODO"),
    ("sh_pipe", "cat words.txt | sort |", "uniq -c|wc -l|head", ""),
    ("git", "# a new branch called fix\ngit", "checkout -b|branch -d|commit", "checkout -b"),
    ("sh_delete", "# remove the folder 'old' and all in it\nrm", "-rf old|-i old|old", "-rf old"),
    ("sql_where", "SELECT name FROM users", "WHERE|ORDER BY|LIMIT", ""),
    ("sql_count", "-- how many users are there\nSELECT", "COUNT(*)|SUM(*)|MAX(*)", "COUNT(*)"),
    ("sql_join", "SELECT * FROM orders", "INNER JOIN|LEFT JOIN|JOIN", ""),
    ("sql_null", "-- no address known\nWHERE address", "IS NULL|IS NOT NULL|= NULL", "IS NULL"),
)

_GOES_ON = (
    ("append", "stack = []\nwhile todo:\n    stack.", "append(|extend(|pop(|push(", ""),
    ("lower", "def same(a, b):\n    return a.lower() == b.", "lower()|upper()|strip()", "lower()"),
    ("strip", "name = '  Ada '\nclean = name.", "strip()|split()|sort()", "strip()"),
    ("self", "class Queue:\n    def __init__(self):\n        self.", "items =|queue =|data =", ""),
    ("dict", "for key, value in prices.", "items()|keys()|values()", "items()"),
    ("numpy", "import numpy as np\nx = np.", "zeros(|ones(|zeros_like(|array(", ""),
    ("dunder", "class Point:\n    def __", "init__|repr__|eq__|len__|iter__", ""),
    ("camel", "document.get", "ElementById|ElementsBy|Attribute", ""),
    ("js_log", "console.", "log(|error(|warn(|table(", ""),
    ("js_map", "const squares = numbers.", "map(|filter(|forEach(|find(", "map("),
    ("js_length", "for (let i = 0; i < list.", "length;|size;|length();|count;", "length;"),
    ("rust_method", "let text = name.", "to_string();|to_owned();|clone();", ""),
    ("rust_use", "use std::", "collections::|io::|fs::|fmt::", ""),
    ("constant", "MAX_", "SIZE =|LENGTH =|RETRIES =|VALUE =", ""),
)

_IN_BRACKETS = (
    ("range", "for i in range(", "len(xs))|10)|n)|0, n)", ""),
    ("index", "matrix = [[1, 2], [3, 4]]\nfirst = matrix[", "0]|1]|2]|n]", ""),
    ("instance", "def check(x):\n    if not isinstance(", "x, int)|int, x)", "x, int)"),
    ("c_include", "#include <", "stdio.h>|stdlib.h>|string.h>|math.h>", ""),
    ("html_tag", "<ul>\n  <", "li>|ul>|div>|p>", "li>"),
    ("generic", "let names: Vec<", "String>|&str>|char>|u8>", ""),
    ("c_loop", "for (", "int i|size_t i|unsigned i", ""),
)

_NEW_LINES = (
    ("js_declare", "// never assigned again\n", "const limit|let limit|var limit", "const limit"),
    ("docker", "FROM python:3.12\nWORKDIR /app\nCOPY . .\n", "RUN pip|CMD [|ENV |EXPOSE ", ""),
)

_IN_STRINGS = (
    ("c_format", 'int n = 3;\nprintf("%', "d\\n|s\\n|f\\n|c\\n", "d\\n"),
    ("encoding", 'text = open(path, encoding="', "utf-8|utf8|latin-1|ascii", ""),
    ("mode", 'with open("log.txt", "', "r|w|a|rb|wb", ""),
)

CASES = (
    table("identifiers", "space", _PYTHON, "code")
    + table("identifiers", "space", _JAVASCRIPT, "code")
    + table("identifiers", "space", _SYSTEMS, "code")
    + table("identifiers", "space", _SHELL_AND_SQL, "code")
    + table("identifiers", "word", _GOES_ON, "code")
    + table("identifiers", "bracket", _IN_BRACKETS, "code")
    + table("identifiers", "newline", _NEW_LINES, "code")
    + table("identifiers", "quote", _IN_STRINGS, "code", '"')
)

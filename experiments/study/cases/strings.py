"""Strings in formats: JSON enums and keys, escapes, YAML, CSV, HTML, Markdown, URLs, paths."""

from __future__ import annotations

from experiments.study.cases.making import table

_JSON_VALUES = (
    ("severity", 'Heart attack, 58 years old.\n{"severity":', '"low"|"medium"|"high"', '"high"'),
    ("colour", 'Ripe bananas.\n{"colour":', '"yellow"|"yellowish"|"red"', '"yellow"'),
    ("language", 'Buenos días, señora.\n{"language":', '"en"|"es"|"fr"|"pt"', '"es"'),
    ("country", '{"city": "Lyon", "country":', '"France"|"Germany"|"Italy"', '"France"'),
    ("weekday", '{"is before": "Sunday", "day":', '"Saturday"|"Monday"', '"Saturday"'),
    ("shipping", '{"order": 1881, "shipping":', '"standard"|"express"|"pick-up"', ""),
    ("level", '{"time": "12:04:11", "level":', '"DEBUG"|"INFO"|"WARNING"|"ERROR"', ""),
    ("null", '{"name": "Plato", "e-mail":', 'null}|""}|"plato', "null}"),
    ("array", '{"primes": [2, 3,', "5, 7]|4, 5]|6]", "5, 7]"),
)

_JSON_OPEN = (
    ("unit", 'Metric system.\n{"city": "Oslo", "unit": "', "celsius|fahrenheit", "celsius"),
    ("status", '{"job": 17, "exit_code": 0, "status": "', "success|failure|skipped", "success"),
    ("type_of", '{"properties": {"age": {"type": "', "integer|string|number|null", ""),
    ("role", '{"messages": [{"role": "', "user|system|assistant", ""),
    ("escape_accent", '{"drink": "', "caf\\u00e9|café|cafe", ""),
    ("breed", '{"animal": "dog", "breed": "', "poodle|pug|border collie", ""),
)

_IN_STRINGS = (
    ("next_key", '{"first_name": "Ada", "', 'last_name":|age":|middle":', ""),
    ("escape_quote", 'print("She said: \\"', 'Hi\\"|Hello\\"|No\\"', ""),
    ("escape_line", '{"text": "first line\\', "n|r\\n|t", "n|r\\n"),
    ("path", 'open("/home/ada/', 'notes.txt"|data.csv"|a.out"', ""),
    ("attribute", '<a href="', "https://|/index|mailto:", ""),
)

_AFTER_SPACE = (
    ("yaml_value", "name: CI\non: push\nruns-on:", "ubuntu-|windows-|macos-", ""),
    ("toml", '[package]\nname = "demo"\nedition =', '"2015"|"2018"|"2021"', ""),
    ("css", "p { color:", "red;|#ff0000;|rgb(255|darkred;", ""),
    ("bold", "The answer to 6 * 7 is", "**42**|*42*|`42`", ""),
    ("code", "To list the files of a folder, use the command", "`ls`|`cd`|`rm`", "`ls`"),
    ("task", "- [x] write tests\n-", "[ ] fix|[x] fix|[X] fix", ""),
    ("scheme", "The address of the encyclopedia is", "https://en|http://en|www.en", ""),
    ("mime", "Content-Type:", "text/html|text/plain|image/", ""),
    ("quoted", "The sign on the door said", '"Open"|"Closed"|“Open”|\'Open\'', ""),
    ("link", "See the", "[manual](|*manual*|manual for", ""),
)

_GOES_ON = (
    ("close", '{"a": 1, "b": [1, 2', "]}|], |, 3", ""),
    ("csv", "country,capital\nFrance,Paris\nSpain,", "Madrid|Lisbon|Valencia", "Madrid"),
    ("domain", "https://www.wikipedia.", "org/|com/|net/", "org/"),
    ("extension", "A Python source file ends with .", "py.|pyc.|python.", "py."),
    ("windows_path", "C:\\", "Users\\|Windows\\|Program", ""),
    ("unix_path", "On Linux, the users' own folders are in /", "etc/|usr/|home/|var/", "home/"),
    ("tag_end", "<p>Hello <b>world</", "b>|p>|strong>", "b>"),
    ("regex", "digits = re.compile(r", "'\\d+'|'[0-9]+'|'\\w+'", "'\\d+'|'[0-9]+'"),
    ("entity", "In HTML, the sign & is written &", "amp;|and;|lt;|#38;", "amp;|#38;"),
)

_NEW_LINES = (
    ("heading", "# Installation\nRun make.\n", "## Usage|# Usage|### Usage", ""),
    (
        "fence",
        "An example in Python:\n",
        "```python\n|```py\n|```js\n|```\n",
        "```python\n|```py\n",
    ),
)

CASES = (
    table("strings", "space", _JSON_VALUES, "json")
    + table("strings", "quote", _JSON_OPEN, "json", '"')
    + table("strings", "quote", _IN_STRINGS, "code")
    + table("strings", "space", _AFTER_SPACE)
    + table("strings", "word", _GOES_ON)
    + table("strings", "newline", _NEW_LINES)
)

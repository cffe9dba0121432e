"""The regexes of the exactness experiment: finite ones, whose masks are compared with the trie of
`encode` at every prefix, and varied ones for random walks."""

from __future__ import annotations

FINITE: dict[str, str] = {
    "booleans": r"(true|false|null)",
    "spaces": r" {0,12}x?",
    "white space": r"[ \n\t]{0,6}a?",
    "line ends": r"(\r\n|\n|\r| ){0,5}x?",
    "odd spaces": r"(\u2028|\u00a0|\u3000| |a){0,5}",
    "contractions": r"it'(s|ll|re|t|m|d|v|ve)? ?(a|!)?",
    "apostrophes": r"""('|"|s|t|S|ll| ){0,5}""",
    "digits": r"[0-9]{1,3}( [0-9])?",
    "amounts": r"\$?[0-9]{0,2}(\.[05][0-9])?",
    "numerals": r"(Ω|½|²|٣|Ⅷ|3|x| ){0,4}",
    "keys": r'\{"(a|ab|abc|name|names|na)": ?(1|"x")\}',
    "objects": r'\{"(id|ids)": ?[0-9]{1,2}(, ?"(ok|okay)": ?(true|false))?\}',
    "special": r"a?<\|im_(end|start)\|>?b?",
    "almost special": r"<(<\|im_end\|>|\|im_end\|>x| repo_name>|repo_name>|\|endoftext\|>)? ?",
    "special in a row": r"(<\|im_start\|>|<\|im_end\|>|<file_sep>|\n|<){0,4}",
    "cjk": r"(日本|日|本日|中国|語){0,5}",
    "emoji": r"(🎉|👨‍👩‍👧|é|e\u0301| ){0,4}",
    "any two of a script": r"[а-яА-Я]{2}|[α-ω]{2}|[ぁ-ゖ]{2}",
    "short words": r"( ?(the|there|re|r|e|th)){0,4}",
    "affixes": r"(un|believ|able|ably|ing|s|S){0,4}",
    "letters": r"[a-c]{0,6}",
    "one letter": r"a{0,40}",
    "punctuation": r"[_\-.]{0,6}a?",
    "shouting": r"[!?]{3}[a-z]{2}",
    "indents": r"(    |\t|  )(return|pass)?\n?",
    "dates": r"202[0-9]-(0[1-9]|1[0-2])-[0-3][0-9]",
}
"""Each has at most 20,000 strings."""

VARIED: dict[str, str] = {
    "anything": r"(?s).*",
    "line": r"[^\n]*",
    "ascii": r"[ -~]{0,500}",
    "words": r"\w+( \w+)*",
    "letters": r"\p{Lu}?\p{Ll}+",
    "numbers": r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?",
    "boolean": r"(true|false)",
    "string": r'"([^"\\\x00-\x1f]|\\["\\/bfnrt])*"',
    "object": r'\{"name": "[^"\\\x00-\x1f]*", "age": [0-9]{1,3}, "tags": \[("[a-z]+"(, )?)*\]\}',
    "spaced object": r'\{\s*"a"\s*:\s*(1|true|"[^"]*")\s*\}',
    "email": r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*\.[a-z]{2,}",
    "url": r"https?://[a-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9_.~%-]*)*(\?[a-z]+=[a-z0-9]*)?",
    "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}Z",
    "ip": r"((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])",
    "python": r"def [a-z_]+\(([a-z]+(, [a-z]+)*)?\):\n(    return [a-z0-9 +]+\n)+",
    "csv": r"([^,\n]*,){3}[^,\n]*(\n([^,\n]*,){3}[^,\n]*)*",
    "white space": r"\s*x\s*",
    "contractions": r"((I|you|we|they)'(m|re|ve|ll|d) ?)+",
    "chat": r"(<\|im_start\|>(user|assistant)\n[^<]*<file_sep>\n)+",
    "cjk": r"[一-龯ぁ-んァ-ヶ]+[。！？]",
    "emoji": r"(\p{So}|\u200d|\ufe0f| )+",
    "digits by three": r"[0-9]{1,3}(,[0-9]{3})*",
}
"""For walks; most are infinite."""

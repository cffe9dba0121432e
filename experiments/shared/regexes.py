"""The regexes of the exactness experiment: finite ones, whose masks are compared with the trie of
`encode` at every prefix, and varied ones for random walks."""

from __future__ import annotations

import re

from bpe_automata import Tokenizer

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
    "combining marks": r"(e|o|q|\u0301|\u0308|\u0323|é|n){0,4}",
    "compatibility": r"(\u212b|Å|ﬁ|\u2126|Ω|ſ|İ| ){0,3}",
    "hangul": r"(한|하|글| |\u1112|\u1161|\u11ab){0,4}",
    "devanagari": r"(क|ि|्|ष|\u0958|\u093c|न| ){0,4}",
    "tamil and thai": r"(த|மி|ழ்|ก|ำ|่| ){0,4}",
    "kana with marks": r"(か|\u3099|が|ー| ){0,4}",
    "no token of their own": r"(\U00010348|🜁|ꙮ|𝔘|\u0378|a| ){0,4}",
    "controls": r"(\x00|\x04|\x7f|\x1b|\x85|a){0,3}",
    "metaspaces": r"(▁|_| |a|the){0,4}",
    "names of bytes": r"a?<0x(0A|41|E6|zz)>x?",
    "spaces first": r" {0,3}(the|The|a|1|日)? {0,2}(\n {0,2}a)?",
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
    "letters with marks": r"(\p{L}\p{M}*)+",
    "hangul": r"[가-힣]+( [가-힣]+)*",
    "indic": r"[\u0900-\u097f\u0b80-\u0bff ]+",
    "indented": r"([ \t]*[a-z]+:?\r?\n(\r?\n)*)+",
    "rare characters": r"[\U00010300-\U000103ff\U0001f700-\U0001f77f]+",
    "metaspaces": r"[▁ ]*[a-z]+[▁ ]*",
}
"""For walks; most are infinite."""


def own_finite(tokenizer: Tokenizer) -> dict[str, str]:
    """Finite regexes over texts that the tokenizer treats in its own way: those of added tokens
    (the last ones; end-of-sequence first), whole, cut and side by side."""
    contents = {token.id: token.content for token in tokenizer.description.added}
    ends = [contents[token] for token in tokenizer.eos_ids if token in contents]
    chosen = list(dict.fromkeys([*ends, *list(contents.values())[-3:]]))[:3]
    found: dict[str, str] = {}
    for i, text in enumerate(chosen):
        whole, most, rest = re.escape(text), re.escape(text[:-1]), re.escape(text[1:])
        found[f"added token {i + 1}"] = f"(a| |\\n)?({whole}|{most}|{rest})( |b|{rest})?"
    if chosen:
        several = "|".join(map(re.escape, chosen))
        found["added tokens in a row"] = f"({several}| |a|\\n){{0,4}}"
    return found

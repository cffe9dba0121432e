"""The regexes of the exactness experiments, by name: FINITE ones, of at most 20,000 strings each,
whose masks are compared with the trie of `encode` at every prefix, and VARIED ones, most of them
infinite, for random walks.

They are the lines of `regexes.tsv`: group, name and regex, as it stands.
"""

from __future__ import annotations

import re
from pathlib import Path

from bpe_automata import Tokenizer


def read(path: Path) -> dict[str, dict[str, str]]:
    """The regexes of a file, by group and name. Its first line names the columns."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    found: dict[str, dict[str, str]] = {}
    for group, name, regex in (line.split("\t") for line in lines):
        found.setdefault(group, {})[name] = regex
    return found


FINITE, VARIED = read(Path(__file__).with_suffix(".tsv")).values()


def own_finite(tokenizer: Tokenizer) -> dict[str, str]:
    """Finite regexes over the texts of at most three added tokens (end-of-sequence first, then the
    last ones): whole, cut, and one after the other."""
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

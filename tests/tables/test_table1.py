"""Table 1: the masses against brute force, the sizes as published, the files."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_language import PIECES, lift_of, single_paths, tokenizations

from experiments import table1, table1_report, table1_sizes
from experiments.distortion import Spanned
from experiments.runner import Options
from experiments.token_trie import unroll

ANSWERS = ("abc", "aab")
OWN = ([5], [0, 3])  # abc, a ab
SIZES = {"states": 1, "transitions": 2, "accepting": 1}
ROWS = [
    {
        "kind": "laws",
        "prompt": "A\nB",
        "answers": [" William", " Theodore"],
        "free": [0.3, 0.1],
        "lift": [0.2, 0.2],
        "canonical": [0.3, 0.1],
        "masked": {"lift": [0.4, 0.6], "canonical": [0.75, 0.25]},
    },
    {"kind": "sizes", "sizes": dict.fromkeys(table1_report.SIZES, SIZES)},
]


def test_the_mass_of_deciding_prefixes_equals_brute_force():
    trie = unroll([lift_of(ANSWERS), single_paths(OWN)])
    scores = np.concatenate([[0.0], np.log(np.random.default_rng(1).random(len(trie) - 1))])
    spelled = ["".join(PIECES[t] for t in trie.ids(leaf)) for leaf in trie.leaves()]
    answer_of = np.array([ANSWERS.index(text) for text in spelled])
    item = Spanned([], {}, {}, trie, trie.leaves(), answer_of)
    score = {tuple(trie.ids(node)): scores[node] for node in range(len(trie))}
    every = {"lift": [list(tokenizations(a)) for a in ANSWERS], "canonical": [[p] for p in OWN]}
    for method, paths in every.items():
        begin = [{tuple(p[:i]) for p in of for i in range(len(p) + 1)} for of in paths]
        shared = begin[0] & begin[1]
        for answer, mass in enumerate(table1.deciding_mass(item, scores, method)):
            deciding = {p for p in begin[answer] - shared if p[:-1] in shared}
            steps = ([score[p[: i + 1]] for i in range(len(p))] for p in deciding)
            assert mass == pytest.approx(sum(np.exp(sum(path)) for path in steps))


def test_sizes_are_the_published_ones():
    pytest.importorskip("interegular")
    pytest.importorskip("mistral_common", reason="the Mistral-7B merge table is in it")
    found = table1_sizes.measured()
    assert found["lift"] == {"states": 17, "transitions": 48, "accepting": 1}
    assert found["direct_of_given"] == {"states": 5, "transitions": 4, "accepting": 2}
    assert found["direct_of_minimal"] == {"states": 4, "transitions": 4, "accepting": 1}
    assert found["package_lift"]["transitions"] == 48


def test_published_stands_beside_measured_in_every_form(tmp_path, capsys):
    options = Options("table1", model="tiny", results=tmp_path)
    manifest = {"model": "tiny_model", "note": "", "wall_seconds": 1}
    table1_report.render(ROWS, manifest, options)
    shown = capsys.readouterr().out
    markdown = (options.folder / "table1.md").read_text()
    for text in (shown, markdown):
        for number in ("0.858792", "0.528521", "0.858719", "0.750000", "0.400000", "17 / 48"):
            assert number in text
    tex = (options.folder / "table1.tex").read_text()
    assert r"tiny\_model" in tex
    assert tex.count(r"\begin{tabular}") == tex.count(r"\end{tabular}") == 2
    lines = [line for line in tex.splitlines() if line.endswith(r"\\")]
    assert {line.count(" & ") for line in lines} == {4, 3}

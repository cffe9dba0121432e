"""Pages as PDF: all of the text is there, nothing is wider than the page, and equal pages are
equal."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import examples

from experiments.run import pdf

pytest.importorskip("matplotlib")
pytest.importorskip("markdown_it")
WORDS = st.lists(st.text("abcdefgil mW.", min_size=1, max_size=9), max_size=60)


@given(WORDS, st.sampled_from([0.4, 2.0, 6.5]), st.booleans())
@examples(40)
def test_lines_hold_all_words_and_no_line_is_too_wide(words, width, bold):
    text = " ".join(words)
    lines = pdf.wrapped(text, width, pdf.BODY, bold)
    assert " ".join(lines).split() == text.split()
    for line in lines:
        assert " " not in line.strip() or pdf.width_of(line, pdf.BODY, bold) <= width + 0.02
    for one, other in pairwise(lines):
        first, *_ = other.split()
        assert pdf.width_of(f"{one} {first}", pdf.BODY, bold) > width - 0.02


PAGE = """# Title

Some *text* with `code` and a [link](x.md).
<!-- numbers: x -->

| model | value |
| :-- | --: |
| one | 1 |

- an item

```
fence
```

![a picture](dot.png)

![one that is taller than a page](tall.png)
"""


def test_every_block_is_drawn_and_twice_the_same(tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.imsave(tmp_path / "dot.png", [[0.0, 1.0]])
    pyplot.imsave(tmp_path / "tall.png", [[0.0], [1.0]])
    (tmp_path / "page.md").write_text(PAGE + "\n\nmore".join(["", *["words"] * 80]))
    drawn, text_of = [], pdf.Pages.text

    def spied(self, text):
        drawn.append(text.text)
        text_of(self, text)

    monkeypatch.setattr(pdf.Pages, "text", spied)
    first = pdf.write(tmp_path / "page.md", tmp_path / "one.pdf").read_bytes()
    texts = ("Title", "Some text with code and a link.", "model", "1", "an item", "fence")
    for text in (*texts, "Figure 1. a picture.", "Figure 2. one that is taller than a page."):
        assert text in drawn
    assert not any("numbers" in text for text in drawn)
    assert pdf.write(tmp_path / "page.md", tmp_path / "two.pdf").read_bytes() == first
    assert len(re.findall(rb"/Type /Page\b", first)) > 1

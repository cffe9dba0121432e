"""Variants of one prompt that differ in the joint between prompt and answer only.

Each stem is followed by nothing ("space": the answer brings its space; "word": there is none), by
a space ("no_space"), by a new line, or by a space and a quotation mark. After a space most words
have no canonical tokenization that keeps the prompt's: that is what these variants are for.
"""

from __future__ import annotations

from experiments.study.cases.making import Row, spelled
from experiments.study.study_case import StudyCase

_JOINTS = {
    "space": ("", " ", ""),
    "word": ("", "", ""),
    "no_space": (" ", "", ""),
    "newline": ("\n", "", ""),
    "quote": (' "', "", '"'),
}
"""Boundary -> what follows the stem, what stands before an answer and what after it."""

_ALL = ("space", "no_space", "newline", "quote")
_THREE = ("space", "newline", "quote")
_TWO = ("space", "no_space")

_STEMS: tuple[tuple[str, tuple[str, ...], Row], ...] = (
    ("names", _ALL, ("canada", "Capital of Canada:", "Ottawa|Toronto|Montreal", "Ottawa")),
    ("names", _THREE, ("faust", "Author of Faust:", "Goethe|Schiller|Kafka|Mann", "Goethe")),
    ("names", _TWO, ("dynamite", "Inventor of dynamite:", "Nobel|Newton|Edison", "Nobel")),
    ("names", _THREE, ("titan", "Largest moon of Saturn:", "Titan|Triton|Europa", "Titan")),
    ("names", _ALL, ("einstein", "First name of Einstein:", "Albert|Alfred|Alan", "Albert")),
    ("names", _TWO, ("boss", "Name of the new boss:", "Alice|Robert|Chen|Fatima", "")),
    ("yes_no", _ALL, ("nile", "Is the Nile in Africa? Answer:", "Yes|No", "Yes")),
    ("yes_no", _THREE, ("honey", "Is honey a mineral? Answer:", "Yes|No", "No")),
    ("yes_no", _THREE, ("open", "Open on Sundays:", "yes|no|sometimes", "")),
    ("yes_no", _TWO, ("greater", "Is 7 greater than 9? Answer:", "yes|no", "no")),
    ("dates_numbers", _ALL, ("planets", "Planets of the sun:", "seven|eight|nine", "eight")),
    (
        "dates_numbers",
        _ALL,
        ("byzantium", "Year of the fall of Constantinople:", "1254|1453|1492|1517", "1453"),
    ),
    ("dates_numbers", _TWO, ("two_digits", "Largest number of two digits:", "89|90|98|99", "99")),
    (
        "choices",
        _THREE,
        ("surprise", "'A lovely surprise!' Sentiment:", "positive|negative|neutral", "positive"),
    ),
    ("choices", _TWO, ("money", "'Win money now!' Kind of message:", "spam|ham", "spam")),
    ("identifiers", _ALL, ("float", "Type of 3.5 in Python:", "float|int|str|double", "float")),
    ("identifiers", _THREE, ("loop", "Python keyword of loops:", "for|while|loop", "for|while")),
    ("strings", _ALL, ("photo", "File format of a photo:", "JPEG|PDF|MP3|CSV", "JPEG")),
    ("strings", _THREE, ("greeting", "A friendly greeting:", "Hello!|Hi!|Go away!", "Hello!|Hi!")),
    ("scripts", _THREE, ("ru_japan", "Столица Японии:", "Токио|Киото|Осака", "Токио")),
    ("scripts", _TWO, ("ru_rose", "Цвет розы:", "красный|синий|жёлтый", "")),
    (
        "scripts",
        ("word", "newline", "quote"),
        ("zh_japan", "日本的首都:", "东京|京都|大阪", "东京"),
    ),
)
"""Family, boundaries, row with the stem."""


def _variant(family: str, boundary: str, row: Row) -> StudyCase:
    name, stem, words, right = row
    base = f"{family}_{name}"
    after_stem, before, end = _JOINTS[boundary]
    answers, truth = spelled(words, before, end), spelled(right, before, end)
    prompt = stem + after_stem
    return StudyCase(
        f"{base}_{boundary}", family, base, "plain", boundary, prompt, answers, truth=truth
    )


CASES = tuple(
    _variant(family, boundary, row) for family, boundaries, row in _STEMS for boundary in boundaries
)

"""What models are asked to go on with: prompts by kind of text, fixed before any was measured.

None ends with a space or, where words are divided by spaces, inside a word: the next id would have
to mend that.
"""

from __future__ import annotations

from bpe_automata import Tokenizer

TURN = "<|im_start|>"
"""Of the chat format that SmolLM2 was trained with; a model without it gets plain text."""

PROMPTS: dict[str, tuple[str, ...]] = {
    "prose": (
        "The old lighthouse keeper climbed the stairs one last time and",
        "In the spring of 1912 the expedition reached the mouth of the river, where",
    ),
    "chat": (
        "Explain how a bicycle stays upright.",
        "What should I cook tonight with rice, eggs and spinach?",
    ),
    "json": (
        '{"id": 17, "name": "Garden chair", "price":',
        '[\n  {\n    "city": "Lisbon",\n    "population": 545923,\n    "districts":',
    ),
    "code": (
        "def merge_intervals(intervals):\n    result = []\n    for",
        "import sqlite3\n\nclass InventoryDatabase:\n    def __init__(self, path):",
    ),
    "table": (
        "Item                Qty     Unit price      Total\n"
        "------------------  ------  --------------  ----------\n"
        "Copper pipe 15 mm   12      4.80            57.60\n"
        "Elbow joint",
        "name\tborn\tdied\tfield\nEuler\t1707\t1783\tmathematics\nGauss",
    ),
    "dates": (
        "Order 2023-04-17 08:12:45, 1,299.00 EUR\nOrder 2023-04-18 19:03:10, 86.40 EUR\nOrder",
        "The first decimals of the number are 3.14159265358979 and its square root is",
    ),
    "names": (
        "Members present: Agnieszka Wojciechowska, Tomasz Lewandowski, Oyelaran Adebayo,",
        "Villages of the valley:\n- Llanfihangel\n- Aberystwyth\n- Pontrhydfendigaid\n-",
    ),
    "russian": (
        "Поезд медленно отошёл от станции, и за окном",
        "Рецепт борща: сначала нужно",
    ),
    "chinese": (
        "从前有一个年轻的渔夫,他住在",
        "人工智能的发展历史可以分为",
    ),
    "arabic": (
        "كان يا ما كان في قديم الزمان",
        "تقع مدينة القاهرة على ضفاف",
    ),
}


def prompts_of(kind: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    """The prompts of a kind, in the chat format of the tokenizer's model where there is one."""
    if kind != "chat":
        return PROMPTS[kind]
    has_turns = any(token.content == TURN for token in tokenizer.description.added)
    return tuple(_asked(question, has_turns) for question in PROMPTS[kind])


def _asked(question: str, has_turns: bool) -> str:
    if not has_turns:
        return f"Question: {question}\nAnswer:"
    return f"{TURN}user\n{question}<|im_end|>\n{TURN}assistant\n"

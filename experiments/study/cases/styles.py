"""Variants of one question that differ in the style of the prompt only.

"plain" is a question and "Answer:"; "few_shot" has two solved ones before it; in "chat" the user
asks and the assistant has written "Answer:". Variants list their answers in the same order.
"""

from __future__ import annotations

from experiments.study.cases.chat import ASSISTANT
from experiments.study.cases.making import Row, spelled
from experiments.study.study_case import StudyCase

_EXAMPLES = {
    "name": (("Who wrote Romeo and Juliet?", "Shakespeare"), ("What orbits the Earth?", "Moon")),
    "place": (("Where is the Eiffel Tower?", "Paris"), ("Where are the pyramids?", "Egypt")),
    "yes_no": (("Is ice cold?", "Yes"), ("Is the Earth flat?", "No")),
    "number": (("How many legs has a dog?", "four"), ("How many eyes has it?", "two")),
    "figure": (("How many hours has a day?", "24"), ("What is 5 * 5?", "25")),
    "letter": (
        ("Which is the largest? (A) a cat (B) a mouse (C) a horse", "C"),
        ("Which is hot? (A) fire (B) ice (C) snow", "A"),
    ),
    "word": (("What is the opposite of hot?", "cold"), ("Which is a fruit: car, fig, box?", "fig")),
    "ru": (("Какого цвета трава?", "Зелёная"), ("Является ли лёд горячим?", "Нет")),
    "zh": (("太阳热吗?", "是"), ("日本的首都是哪里?", "东京")),
}
"""Kind of answer -> two questions with answers."""

_LABELS = {"ru": ("Вопрос: ", "Ответ:", "space"), "zh": ("问题:", "答案:", "word")}
_ENGLISH = ("Question: ", "Answer:", "space")
"""What stands before a question, before an answer, and the boundary after that."""

_QUESTIONS: tuple[tuple[str, str, Row], ...] = (
    (
        "names",
        "name",
        ("radium", "Who discovered radium with her husband?", "Marie|Lise|Rosalind|Ada", "Marie"),
    ),
    (
        "names",
        "name",
        ("founders", "What did Bill Gates found?", "Microsoft|Motorola|Apple", "Microsoft"),
    ),
    (
        "names",
        "name",
        (
            "chapel",
            "Who painted the Sistine Chapel's ceiling?",
            "Michelangelo|Raphael",
            "Michelangelo",
        ),
    ),
    (
        "names",
        "name",
        ("rings", "Which planet has the largest rings?", "Saturn|Mars|Venus", "Saturn"),
    ),
    (
        "names",
        "name",
        ("shakespeare", "What is Shakespeare's first name?", "William|Walter|Wallace", "William"),
    ),
    (
        "names",
        "place",
        ("zealand", "What is the capital of New Zealand?", "Auckland|Wellington", "Wellington"),
    ),
    (
        "names",
        "place",
        ("populous", "Which country has most people in Africa?", "Nigeria|Egypt|Kenya", "Nigeria"),
    ),
    (
        "names",
        "place",
        ("colosseum", "In which city is the Colosseum?", "Rome|Athens|Naples|Milan", "Rome"),
    ),
    ("yes_no", "yes_no", ("iceland", "Is Iceland an island?", "Yes|No", "Yes")),
    ("yes_no", "yes_no", ("whale", "Is a whale a fish?", "Yes|No", "No")),
    ("yes_no", "yes_no", ("ninety_one", "Is 91 a prime number?", "Yes|No", "No")),
    ("yes_no", "yes_no", ("spider", "Do spiders have eight legs?", "Yes|No", "Yes")),
    ("yes_no", "yes_no", ("iberia", "Is Portugal larger than Spain?", "Yes|No", "No")),
    ("yes_no", "yes_no", ("gold", "Is gold a metal?", "Yes|No", "Yes")),
    ("yes_no", "yes_no", ("cold_coffee", "Does cold coffee taste good?", "Yes|No", "")),
    (
        "choices",
        "letter",
        ("smallest", "Which is the smallest? (A) an atom (B) a cell (C) a molecule", "A|B|C", "A"),
    ),
    (
        "choices",
        "letter",
        (
            "programming",
            "Which is a programming language? (A) JPEG (B) Python (C) USB",
            "A|B|C",
            "B",
        ),
    ),
    (
        "choices",
        "word",
        (
            "waste",
            "Is the review 'A waste of time' positive, negative or neutral?",
            "positive|negative|neutral",
            "negative",
        ),
    ),
    (
        "choices",
        "word",
        ("odd_one", "Which word does not fit: cat, car, cow?", "cat|car|cow", "car"),
    ),
    (
        "dates_numbers",
        "figure",
        (
            "landing",
            "In which year did humans first land on the Moon?",
            "1961|1967|1969|1972",
            "1969",
        ),
    ),
    (
        "dates_numbers",
        "number",
        ("violin", "How many strings has a violin?", "four|five|six", "four"),
    ),
    (
        "dates_numbers",
        "figure",
        ("two_hours", "How many minutes are two hours?", "60|100|120", "120"),
    ),
    ("dates_numbers", "figure", ("quarter_of", "What is a quarter of 60?", "12|15|20|25", "15")),
    (
        "dates_numbers",
        "number",
        ("wheels", "How many wheels has a tricycle?", "two|three|four", "three"),
    ),
    ("scripts", "ru", ("ru_italy", "Какой город — столица Италии?", "Рим|Милан|Турин", "Рим")),
    ("scripts", "ru", ("ru_whale", "Является ли кит рыбой?", "Да|Нет", "Нет")),
    ("scripts", "zh", ("zh_france", "法国的首都是哪里?", "巴黎|里昂|马赛", "巴黎")),
    ("scripts", "zh", ("zh_whale", "鲸鱼是鱼吗?", "是|不是", "不是")),
)
"""Family, kind of answer, row with the bare question."""

_BARE: tuple[tuple[str, Row], ...] = (
    ("names", ("norway", "Reply with one word: the capital of Norway.", "Oslo|Bergen", "Oslo")),
    ("yes_no", ("floats", "Does ice float on water? Reply yes or no.", "yes|no", "yes")),
    ("dates_numbers", ("share", "What is 15 % of 200? Give the number only.", "20|30|35", "30")),
    (
        "choices",
        (
            "joke",
            "Rate from 1 to 5: 'My clock is hungry, it went back four seconds.'",
            "1|2|3|4|5",
            "",
        ),
    ),
    (
        "identifiers",
        ("define", "Which keyword defines a function in Python?", "def|function|fn", "def"),
    ),
    (
        "identifiers",
        ("remove", "Name the SQL command that removes a table.", "DROP|DELETE|TRUNCATE", "DROP"),
    ),
    ("strings", ("empty", "Write an empty JSON array.", "[]|{}|null", "[]")),
)
"""Family, row; the answer is on a line of its own, with nothing before it."""

_BEGUN: tuple[tuple[str, str, Row], ...] = (
    (
        "strings",
        '{"sentiment": "',
        (
            "mixed",
            "How is 'thin plot, great actors' meant? Use JSON.",
            "positive|negative|mixed",
            "mixed",
        ),
    ),
    (
        "strings",
        '{"colour": "',
        (
            "coat",
            "Which colour is 'a dark green coat'? Use JSON.",
            "dark green|green|dark",
            "dark green",
        ),
    ),
    (
        "strings",
        '{"unit": "',
        (
            "german_unit",
            "What do thermometers in Germany show? Use JSON.",
            "celsius|fahrenheit",
            "celsius",
        ),
    ),
    (
        "strings",
        '{"class": "',
        (
            "frog",
            "Which class of animals is the frog in? Use JSON.",
            "amphibian|reptile",
            "amphibian",
        ),
    ),
)
"""Family, how the answer begins, row; each answer ends with a quotation mark."""


def _variant(
    family: str, row: Row, style: str, boundary: str, prompt: str, end: str = ""
) -> StudyCase:
    """The question of `row` with its prompt written out in one style."""
    name, _, words, right = row
    base = f"{family}_{name}"
    before = " " if boundary == "space" else ""
    answers, truth = spelled(words, before, end), spelled(right, before, end)
    return StudyCase(f"{base}_{style}", family, base, style, boundary, prompt, answers, truth=truth)


def _in_three_styles(family: str, kind: str, row: Row) -> tuple[StudyCase, ...]:
    asks, answers, boundary = _LABELS.get(kind, _ENGLISH)
    between = " " if boundary == "space" else ""
    plain = f"{asks}{row[1]}\n{answers}"
    solved = "".join(f"{asks}{q}\n{answers}{between}{a}\n\n" for q, a in _EXAMPLES[kind])
    prompts = {"plain": plain, "chat": row[1] + ASSISTANT + answers, "few_shot": solved + plain}
    return tuple(_variant(family, row, style, boundary, text) for style, text in prompts.items())


def _plain_and_chat(
    family: str, boundary: str, begun: str, row: Row, end: str = ""
) -> tuple[StudyCase, ...]:
    prompts = {"plain": f"{row[1]}\n{begun}", "chat": row[1] + ASSISTANT + begun}
    return tuple(
        _variant(family, row, style, boundary, text, end) for style, text in prompts.items()
    )


CASES = (
    *(case for question in _QUESTIONS for case in _in_three_styles(*question)),
    *(case for family, row in _BARE for case in _plain_and_chat(family, "newline", "", row)),
    *(
        case
        for family, begun, row in _BEGUN
        for case in _plain_and_chat(family, "quote", begun, row, '"')
    ),
)

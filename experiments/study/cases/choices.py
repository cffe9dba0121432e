"""Multiple choice: by letter, by the text of the option, in brackets, and by both."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.study.cases.making import Row, one, table
from experiments.study.study_case import StudyCase

_BY_LETTER = (
    ("red_planet", "Which planet is called the red planet?", "Venus|Mars|Jupiter|Saturn", "Mars"),
    ("mammal", "Which of these is a mammal?", "shark|crocodile|dolphin|penguin", "dolphin"),
    (
        "plants",
        "Which gas do plants take in for photosynthesis?",
        "oxygen|nitrogen|helium|carbon dioxide",
        "carbon dioxide",
    ),
    ("turkey", "What is the capital of Turkey?", "Istanbul|Ankara|Izmir|Bursa", "Ankara"),
    ("prime", "Which of these numbers is prime?", "29|21|27|33", "29"),
    ("verb", "Which of these words is a verb?", "quickly|table|bring|blue", "bring"),
    ("guernica", "Who painted Guernica?", "Dalí|Picasso|Miró|Goya", "Picasso"),
    ("pump", "Which organ pumps the blood?", "lung|liver|kidney|heart", "heart"),
    ("slavic", "Which language is Slavic?", "Hungarian|Finnish|Polish|Romanian", "Polish"),
    (
        "shuttle",
        "Which sport is played with a shuttlecock?",
        "badminton|tennis|squash",
        "badminton",
    ),
    (
        "not_light",
        "Which is not a primary colour of light?",
        "red|yellow|green|blue",
        "yellow",
    ),
    (
        "earth",
        "Which layer of the Earth is the hottest?",
        "crust|mantle|outer core|inner core",
        "inner core",
    ),
)

_BY_TEXT = (
    ("liquid_metal", "Which metal is liquid at 20 °C?", "iron|mercury|copper|lead", "mercury"),
    ("after_winter", "Which season follows winter?", "summer|autumn|spring", "spring"),
    ("ocean", "Which ocean is the largest?", "Atlantic|Pacific|Indian|Arctic", "Pacific"),
    ("bees", "What do bees make?", "silk|milk|honey|wool", "honey"),
    ("three_sides", "Which shape has three sides?", "triangle|square|pentagon", "triangle"),
    ("opposite", "What is the opposite of ancient?", "antique|modern|historic", "modern"),
    ("current", "What is the unit of electric current?", "volt|ohm|ampere|watt", "ampere"),
    ("past_of_go", "What is the past tense of 'go'?", "goed|going|went|gone", "went"),
    (
        "sunlight",
        "Which vitamin does the skin make in sunlight?",
        "vitamin A|vitamin C|vitamin D",
        "vitamin D",
    ),
    ("fruit", "Which of these grows on trees?", "carrot|potato|apple|onion", "apple"),
    ("mice", "What is the plural of 'mouse'?", "mouses|mice|meese", "mice"),
    ("shades", "Which shade do you like best?", "light blue|light green|dark blue", ""),
)

_LABELS = (
    (
        "review",
        "Review: The soup was cold and the waiter was rude.\nSentiment:",
        "positive|negative|neutral",
        "negative",
    ),
    (
        "headline",
        "Headline: Parliament passes the new budget after a long night\nTopic:",
        "politics|sports|science|weather",
        "politics",
    ),
    ("german", "Text: Ich habe Hunger.\nLanguage:", "German|Dutch|Danish|Swedish", "German"),
    ("emotion", "I can't stop smiling today!\nEmotion:", "joy|anger|fear|sadness", "joy"),
    (
        "mail",
        "Subject: You have WON a free cruise!!! Click now\nThis message is",
        "spam|legitimate|a reply",
        "spam",
    ),
    ("ticket", "Ticket: The logo looks blurred.\nPriority:", "low|medium|high|urgent", ""),
    ("tense", "Sentence: She will have left.\nTense:", "past|present|future", "future"),
    ("size", "What size is the T-shirt?", "S.|M.|L.|XL.|XXL.", ""),
)

_IN_BRACKETS = (
    ("roots", "Which part of a plant takes up water?", "flower|root|leaf|seed", "root"),
    ("novel", "Who wrote 'War and Peace'?", "Gogol|Chekhov|Tolstoy", "Tolstoy"),
    ("binary", "What is the binary number 101 in decimal?", "3|4|5|6", "5"),
    ("ph", "Which pH is acidic?", "3|7|10|14", "3"),
    ("insect", "Which animal is not an insect?", "ant|spider|bee|moth", "spider"),
    ("euro", "Which country uses the euro?", "Norway|Ireland|Switzerland", "Ireland"),
    ("synonym", "Which word means 'quick'?", "slow|late|fast|soft", "fast"),
)

_BY_BOTH = (
    ("stars", "What is the star closest to the Earth?", "Sirius|the Sun|Vega", "the Sun"),
    ("dna", "Which base is found in RNA but not in DNA?", "adenine|uracil|guanine", "uracil"),
    ("wall", "In which year did the Berlin Wall fall?", "1987|1988|1989|1990", "1989"),
    ("root", "What is the square root of 144?", "11|12|13|14", "12"),
    ("dessert", "Which dessert shall we order?", "pie|cake|ice", ""),
    ("adjective", "Which word is an adjective?", "run|green|apple", "green"),
)

_WRITTEN_OUT = (
    ("lower", "2 + 2 * 3 = ?\na) 12\nb) 8\nc) 10\nThe answer is", "a)|b)|c)", "b)"),
    (
        "roman",
        "Which is heavier?\nI. a litre of water\nII. a litre of oil\nIII. the same\nAnswer:",
        "I.|II.|III.",
        "I.",
    ),
    (
        "numbered",
        "Which came first?\n1. the telephone\n2. the telegraph\n3. television\nAnswer:",
        "1.|2.|3.",
        "2.",
    ),
    (
        "option_word",
        "Option A: save 10 dollars now. Option B: save 12 dollars in a year.\nI choose",
        "Option A|Option B",
        "",
    ),
    (
        "all_of_the_above",
        "Which of these are even: 2, 4, 8?\nAnswer:",
        "only 2|only 4|only 8|all of them",
        "all of them",
    ),
)


@dataclass(frozen=True)
class _Format:
    """How options are listed and answered; in the patterns {0} is a letter, {1} an option."""

    option: str
    between: str
    end: str
    answer: str
    boundary: str = "space"

    def case(self, row: Row) -> StudyCase:
        """One question in this format."""
        name, question, words, right = row
        options = list(zip("ABCD", words.split("|"), strict=False))
        listed = self.between.join(self.option.format(*option) for option in options)
        answers = [self.answer.format(*option) for option in options]
        truth = [self.answer.format(*option) for option in options if option[1] == right]
        prompt = f"{question}\n{listed}\n{self.end}"
        return one("choices", self.boundary, (name, prompt, "|".join(answers), "|".join(truth)))


_LETTERS = _Format("{0}. {1}", "\n", "Answer:", "{0}")
_TEXTS = _Format("- {1}", "\n", "Answer:", "{1}")
_BRACKETS = _Format("({0}) {1}", " ", "The right answer is (", "{0})", "bracket")
_BOTH = _Format("{0}. {1}", "\n", "Correct option:", "{0}. {1}")

CASES = (
    tuple(map(_LETTERS.case, _BY_LETTER))
    + tuple(map(_TEXTS.case, _BY_TEXT))
    + tuple(map(_BRACKETS.case, _IN_BRACKETS))
    + tuple(map(_BOTH.case, _BY_BOTH))
    + table("choices", "space", _LABELS)
    + table("choices", "space", _WRITTEN_OUT)
)

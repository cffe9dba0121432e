"""Two-way answers and near relatives: yes and no, true and false, on and off, agreement."""

from __future__ import annotations

from experiments.study.cases.making import table

_ANSWERS = (
    ("pluto", "Q: Is Pluto larger than the Earth?\nA:", "Yes|No", "No"),
    ("bat", "Is a bat a bird? Answer yes or no:", "yes|no", "no"),
    ("fish", "Do all fish live in salt water? (yes/no)", "yes|no", "no"),
    ("snow", "Can it snow in the Sahara? Answer with one word:", "Yes|No", "Yes"),
    ("zero", "Is 0 an even number? Short answer:", "Yes.|No.", "Yes."),
    ("tomato", "Botanically speaking, is the tomato a fruit?", "Yes,|No,", "Yes,"),
    ("rain", "Will it rain tomorrow?", "Yes|No|Maybe", ""),
    ("spelling", "Is 'recieve' spelled correctly? Reply YES or NO:", "YES|NO", "NO"),
    ("moon_light", "Does the Moon shine by its own light?", "Yes|No", "No"),
    ("coffee", "Would you like some coffee?", "Yes, please|No, thanks|Not now", ""),
    ("letters", "Is Gouda a cheese? (y/n)", "y|n", "y"),
    ("sorted", "Is the list 1, 4, 2, 8 sorted? Respond with Y or N:", "Y|N", "N"),
    ("unknown", "Did Homer own a dog? Answer yes, no or unknown:", "yes|no|unknown", "unknown"),
    ("proven", "Has it been proven that pi is irrational?", "yes,|no,|not yet", "yes,"),
    ("party", "Are you coming to the party?", "Yes!|No!|Perhaps|I'm not sure", ""),
)

_TRUTH = (
    ("sum", "3 + 4 = 7. True or false? That is", "true|false", "true"),
    ("light", "Light is faster than sound. This is", "true|false", "true"),
    ("glass", "Glass is made from sand. True or False? Answer:", "True|False", "True"),
    ("fact", "Claim: The Great Wall of China is in Japan.\nVerdict:", "TRUE|FALSE", "FALSE"),
    ("mostly", "Claim: Cats sleep a lot.\nRating:", "True|Mostly true|False", ""),
    ("correct", "7 * 8 = 54. This calculation is", "correct|incorrect", "incorrect"),
    ("right", "The capital of Italy is Rome. The statement is", "right|wrong", "right"),
    ("valid", "The e-mail address 'a@b@c' is", "valid|invalid", "invalid"),
    (
        "myth",
        "Goldfish forget everything after three seconds: fact or myth? It is a",
        "fact|myth",
        "myth",
    ),
    (
        "entailment",
        "Premise: A man plays the guitar.\nHypothesis: Someone makes music.\nLabel:",
        "entailment|neutral|contradiction",
        "entailment",
    ),
    (
        "contradiction",
        "Premise: The shop is closed.\nHypothesis: The shop is open.\nRelation:",
        "entailment|neutral|contradiction",
        "contradiction",
    ),
    (
        "same",
        "Do 'big' and 'large' mean nearly the same or the opposite?",
        "the same|the opposite",
        "the same",
    ),
)

_SWITCHES = (
    ("parity", "The number 17 is", "even|odd", "odd"),
    ("sign", "The temperature in a freezer, in °C, is", "positive|negative", "negative"),
    ("exam", "Pass mark: 50 points. Result: 38 points. Outcome:", "pass|fail", "fail"),
    ("door", "The red light means that the machine is", "on|off", ""),
    ("verdict", "The jury found the defendant", "guilty|not guilty", ""),
    ("agree", "'Breakfast is the best meal of the day.' I", "agree|disagree", ""),
    ("accept", "Decision on the submitted paper:", "accept|reject|revise", ""),
    ("gender", "In French the noun 'maison' is", "masculine|feminine", "feminine"),
    ("soluble", "In water, table salt is", "soluble|insoluble", "soluble"),
    ("legal", "Driving through a red light is", "legal|illegal", "illegal"),
    ("mile", "Compared to a mile, a kilometre is", "longer|shorter", "shorter"),
    ("direction", "The sun rises in the", "east|west", "east"),
)

_LINES = (
    (
        "review_bot",
        "Is this comment toxic? 'Have a nice day!'\nAnswer on the next line.\n",
        "Yes|No",
        "No",
    ),
    ("checklist", "Passport: packed\nTickets: packed\nAll packed?\n", "yes|no", "yes"),
    (
        "binary",
        "Output 1 if the text is in English and 0 if not.\nText: Guten Tag\nOutput:\n",
        "0|1",
        "0",
    ),
    ("tests", "ran 12 tests, 2 failures\nStatus:\n", "PASSED|FAILED", "FAILED"),
)

_DATA = (
    ("json_penguin", '{"name": "penguin", "can_fly":', "true|false", "false"),
    ("json_prime", '{"n": 13, "odd": true, "prime":', "true|false", "true"),
    ("json_null", '{"name": "Ada Lovelace", "died": 1852, "alive":', "true|false|null", "false"),
    ("yaml", "service: web\ndebug: no\ncompress:", "yes|no", ""),
)

_CODE = (("python", "print(3 in [1, 2, 3])\n# prints", "True|False", "True"),)

CASES = (
    table("yes_no", "space", _ANSWERS)
    + table("yes_no", "space", _TRUTH)
    + table("yes_no", "space", _SWITCHES)
    + table("yes_no", "newline", _LINES)
    + table("yes_no", "space", _DATA, "json")
    + table("yes_no", "space", _CODE, "code")
)

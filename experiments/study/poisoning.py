"""What one mis-tokenized word does to a model's next-token laws, by the distance from it.

A word in a sentence is spelled with other ids than the tokenizer's own, in up to three ways: one of
its tokens cut in two, all of it cut at random, its single characters (or bytes). What comes before
and after keeps its ids. At distance d (so many tokens of the sentence stand after the word) the
model's law of the next token is held against the law after the word's own ids: total variation,
Kullback-Leibler divergence, and the loss of the token that does follow. The same text was read, so
a model that looked at text alone would show no change at all.

Two controls give the numbers a scale: another word of the same category, in its own ids, which is a
change of meaning; and, for some words, the same ids once more, in a batch by themselves, which is
the noise of the model's arithmetic. Also measured: the mass that the law puts on ids that do not go
on canonically, after the word's own ids and after the others.

The published example, "weasel shark", is measured too: see `poisoning_published`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from bpe_automata.errors import ArgumentError
from experiments.run import config
from experiments.run.config import option
from experiments.run.executors import Cell, Row
from experiments.run.measuring import Run
from experiments.run.report import Report
from experiments.shared import models
from experiments.shared.models import models_there
from experiments.study import poisoning_laws, poisoning_report
from experiments.study.poisoning_laws import (
    ANOTHER,
    NOISE,
    OWN,
    compared,
    noise,
    other_ways,
    sentence,
    with_another_word,
)

# Words, and sentences that they stand in, for the table of mis-tokenized words.
#
# They were fixed before any was measured. In each sentence `{}` is the word; it has what is before
# and what follows for company, and any word of its category fits there.

WORDS: dict[str, str] = {
    "common": """
        water house mother school morning people money music river winter garden dinner
        summer letter doctor teacher village kitchen window market bridge question story
        weather journey problem answer picture brother evening country number animal
        friend minute factory building forest company mountain
    """,
    "rare": """
        weasel chrysalis palimpsest quagmire obsidian tincture gossamer pangolin mezzanine
        halcyon parapet vestibule samovar tourniquet bergamot chinchilla escarpment filigree
        lozenge marzipan nasturtium ocelot peregrine sassafras thistle turmeric verdigris
        wisteria zeppelin alembic bailiwick catamaran dulcimer ephemera flotsam gargoyle
        hollyhock isthmus jodhpurs kestrel
    """,
    "names": """
        Elizabeth Alexander Katherine Benjamin Fitzgerald Montgomery Anderson Wojciechowska
        Ramanathan Okonkwo Hernandez Kowalczyk Papadopoulos Nakamura Abdullahi Lindqvist
        Schwarzenegger Tchaikovsky Villanueva Rosenberg Mbeki Chaudhary Eriksson Dubois
        Castellanos Haraldsson Yevgenia Siddharth Cunningham Marguerite Bartholomew Guinevere
        Nkrumah Zimmermann Oyelaran Thorvaldsen Anastasia Llewellyn Petrosyan Vanderbilt
    """,
    "compounds": """
        lighthouse snowflake toothbrush blackberry grasshopper waterfall bookkeeper fingernail
        windshield horseshoe sunflower candlestick thunderstorm wheelbarrow gingerbread
        greenhouse doorknob typewriter sandpaper hummingbird butterscotch dragonfly earthquake
        firewood keyboard moonlight newspaper peppermint quicksand rattlesnake shoelace
        teaspoon undergrowth watercolour scarecrow pineapple cheesecake drawbridge eyebrow
        driftwood
    """,
    "identifiers": """
        userName get_value maxRetries parseConfig itemCount file_path isEnabled handleClick
        buffer_size createdAt fetchAll node_list httpClient renderTree tokenStream batch_norm
        elapsedTime syncState cache_key totalPrice rowIndex loadModel send_email sortOrder
        errorCode queueLength toString reset_all lineWidth decodeUtf8 numWorkers mergeSorted
        hash_map pageOffset isValid retryAfter startTime output_dir checksum visitChild
    """,
    "russian": """
        вода дорога письмо учитель завод корабль праздник кузнечик подсолнечник мельница
        библиотека чернила колокол ярмарка одуванчик пирог лестница снегопад зеркало
        воробей крыжовник путешествие самовар черепаха электростанция
    """,
    "chinese": """
        学校 火车 图书馆 葡萄 蝴蝶 计算机 博物馆 茶壶 邮局 向日葵 望远镜 蜻蜓 辣椒 灯塔 剪刀
        琵琶 橄榄 螃蟹 珊瑚 栀子花
    """,
}

_PLAIN = (
    "Near the end of the talk the speaker came back to the word {}, which she had written on the "
    "board in large letters before anybody else had arrived in the room that day.",
    "I opened the dictionary and looked for {} because my sister had used it in a letter, and I "
    "was not sure that I understood what she had wanted to tell me about her work.",
    "The first page of the book has a drawing of the {} with a short text below it, and the second "
    "page explains in simple words why the author thought that it was so important.",
    "They talked about the {} for most of the afternoon, and when it was dark they walked home "
    "along the old road without saying much, because everything had been said already.",
)
_PERSON = (
    "The letter was signed by {}, who had lived in the same house for more than twenty years and "
    "knew the names of all the people that had ever worked in the shop next door.",
    "On Monday morning {} arrived at the office before everyone else, made a pot of coffee and "
    "began to read the long report that had been left on the table the week before.",
)
_CODE = (
    "def update(self, {}, timeout=30):\n"
    "    if timeout is None:\n"
    "        raise ValueError('a timeout is needed')\n"
    "    self.pending.append((timeout, self.clock()))\n",
    "const result = await service.{}(request, options);\n"
    "if (!result.ok) {\n"
    "  console.error('the request failed', result.status);\n"
    "  return null;\n}\n",
)
SENTENCES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("common", "rare", "compounds"), _PLAIN),
    "names": _PERSON,
    "identifiers": _CODE,
    "russian": (
        "На первой странице было написано слово {}, а под ним стояла подпись, которую никто из "
        "нас не мог прочитать, хотя все мы долго смотрели на неё при свете лампы.",
    ),
    "chinese": (
        "老师在黑板上写了“{}”这个词,然后让我们每个人用它造一个句子,再把句子读给全班同学听,"
        "最后大家一起讨论哪一个句子写得最好。",
    ),
}


def words_of(category: str) -> tuple[str, ...]:
    """The words of a category, in order."""
    return tuple(WORDS[category].split())


def sentence_of(category: str, number: int) -> tuple[str, str]:
    """What stands before and after the word of this number. Sentences take turns."""
    sentences = SENTENCES[category]
    before, after = sentences[number % len(sentences)].split("{}")
    return before, after


VERSION = 2
NOISE_EVERY = 8


@dataclass(frozen=True)
class Config(config.Config):
    """Which words, how far, in which models."""

    models: tuple[str, ...] = option((models.SMOLLM2, models.GEMMA), "packaged, folder or hub id")
    categories: tuple[str, ...] = option(tuple(WORDS), "of words")
    words: int = option(40, "at most, of each category")
    distances: tuple[int, ...] = option(
        (0, 1, 2, 3, 4, 6, 8, 12, 16), "tokens after the word, ascending"
    )
    device: Literal["auto", "cpu", "cuda"] = option("auto", "where the models run")
    dtype: Literal["float32", "bfloat16", "float64"] = option("float32", "of the arithmetic")


SMOKE = Config(models=(models.SMOLLM2,), categories=("rare",), words=1, distances=(0, 2))


def measure(run: Run[Config]) -> None:
    """A row for each model; one for each animal of the published example and one for each word. A
    model that is not there is one failure, and has none of these."""
    chosen = run.config
    check(chosen)
    there = models_there(run, chosen.models, chosen.device, chosen.dtype)
    cells = [
        Cell(f"{name} {animal} shark", example, (name, animal, chosen))
        for animal in poisoning_laws.PUBLISHED
        for name in there
    ]
    for category in chosen.categories:
        for number, word in enumerate(words_of(category)[: chosen.words]):
            for name in there:
                arguments = (name, category, number, chosen)
                cells.append(Cell(f"{name} {category} {word}", changed, arguments))
    run.cells(cells, what="words")


def check(chosen: Config) -> None:
    """Raises ArgumentError for a category that has no words, and for distances that do not
    ascend."""
    unknown = [category for category in chosen.categories if category not in WORDS]
    if unknown:
        raise ArgumentError(f"--categories: {unknown[0]!r} is none of {', '.join(WORDS)}")
    far = chosen.distances
    if not far or far[0] < 0 or any(one >= other for one, other in pairwise(far)):
        raise ArgumentError(f"--distances {','.join(map(str, far))!r}: from 0 on, ascending")


def changed(name: str, category: str, number: int, chosen: Config) -> Row:
    """One word: the laws after its own ids, after others, and after another word."""
    loaded, far = models.opened(name, chosen.device, chosen.dtype), chosen.distances
    words, (before, after) = words_of(category), sentence_of(category, number)
    text = sentence(loaded.tokenizer, before, words[number], after)
    ways = other_ways(loaded.tokenizer, text.word, random.Random(f"{chosen.seed} {words[number]}"))
    spelled = {OWN: text.word, **ways}
    others = [*words[number + 1 :], *words[:number]]
    another = with_another_word(loaded.tokenizer, text, before, others, after, far[-1] + 1)
    if another:
        spelled[ANOTHER] = another[1].word
    row: Row = {
        "model": name,
        "category": category,
        "word": words[number],
        "another": another[0] if another else None,
        "found": compared(loaded, text, spelled, far),
    }
    if number % NOISE_EVERY == 0:
        row["found"][NOISE] = noise(loaded, text, [*spelled.values()][-1], far)
    return row


def example(name: str, animal: str, chosen: Config) -> Row:
    """The published example of one animal."""
    loaded = models.opened(name, chosen.device, chosen.dtype)
    return {"model": name, **poisoning_laws.ratios(loaded, animal)}


def render(rows: Sequence[Row], manifest: Row) -> Report:
    """Distances, losses, and the figure."""
    return poisoning_report.render(rows, manifest)


readme = poisoning_report.readme

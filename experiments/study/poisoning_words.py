"""Words, and sentences that they stand in, for the table of mis-tokenized words.

They were fixed before any was measured. In each sentence `{}` is the word; it has what is before
and what follows for company, and any word of its category fits there.
"""

from __future__ import annotations

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

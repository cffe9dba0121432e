"""What is said of banned words: the tables, facts and README sentence of their rows."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from experiments.run.executors import Row
from experiments.run.tables import (
    Column,
    Table,
    count,
    fixed,
    frame,
    is_missing,
    median,
    records,
    several,
    table,
    total,
    values,
    whole,
)
from experiments.statistics import median as median_of

PUBLISHED = (
    "published, with gemma-2-2b-it, greedy: free `I'm here to listen and help in any way I can.`; "
    "with the filter one rollback, from step 8 to step 7, where ` listen` is masked: `I'm here to "
    "help you with whatever you need.` (29 steps). Its machine has 150 states for 140 routes, and "
    'words begin and end where tokens do. Clay, "Using Finite State Machine (FSM) and Rollback '
    'Mechanism to Restrict LLM from Generating Banned Words" (2024)'
)
TITLE = "Banned words"
MODES = ("free", "exact", "rollback")
KINDS = ("anywhere", "whole words", "any case", "whole words, any case")
WORDS = ("talk", "listen", "fuck you")
PROMPT = "Can we talk?"
OURS = "When you are sad, a good friend will sit down with you, and"
"""A prompt that SmolLM2 goes on from with the words, which it does not do after the article's."""
_SHOWN = 56
_OF_SOME = ("text", "ids", "passes", "prepared", "acted", "discarded", "error", "raised")
"""What a text lacks where nothing was written, or where nothing is banned."""
_NAMES = {"article": "the article's words", "list": "random lists"}


def tables(rows: pd.DataFrame, manifest: Row) -> list[Table]:
    """All texts of the article's words; then those of the other tables that have a line."""
    texts = written(rows)
    of_article, of_lists = (texts[texts["kind"] == kind] for kind in _NAMES)
    found = [_log(of_article), _lists(of_lists), _costs(texts), _sizes(rows)]
    return [_article(of_article, manifest), *(one for one in found if one.rows)]


def written(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each text of each mode, with the fields of both. each: seconds for each id that
    stayed; times: those as a multiple of the free text's, where every mode has an id."""
    found = []
    for row in records(rows):
        cells = {mode: row[mode] for mode in MODES}
        each = {m: c["seconds"] / max(1, c["ids"]) for m, c in cells.items() if "seconds" in c}
        compared = all(cell.get("ids") for cell in cells.values())
        drawn = f"seed {row['seed']}" if row.get("temperature") else "greedy"
        shared = {"key": row["key"], "kind": row["kind"], "ban": row["ban"], "compared": compared}
        shared["where"] = f"{row.get('prompt')}, {row['ban']}, {drawn}"
        for mode, cell in cells.items():
            times = each[mode] / each["free"] if compared else None
            ours = {"mode": mode, "each": each.get(mode), "times": times}
            found.append(dict.fromkeys(_OF_SOME) | shared | ours | cell)
    return frame(found)


def passed(texts: pd.DataFrame) -> pd.DataFrame:
    """The texts that hold a banned word though their mode bans it."""
    return texts[(texts["mode"] != "free") & texts["banned"].map(bool)]


def wrong(rows: pd.DataFrame, manifest: Row) -> list[str]:
    """A line for each text, by mask or by going back, that holds a banned word."""
    return [
        f"{text['key']}, {text['mode']}: {', '.join(text['banned'])} in {text['text']!r}"
        for text in records(passed(written(rows)))
    ]


def facts(rows: pd.DataFrame, manifest: Row) -> Row:
    """lists; free: of them with a banned word in the unconstrained text; let_through: texts by mask
    or by going back with one; exact, rollback: seconds an id, as multiples of the free text's (None
    where nothing was timed)."""
    texts = written(rows)
    lists = texts[texts["kind"] == "list"]
    free = lists[lists["mode"] == "free"]
    found: Row = {"lists": len(free), "free": _holding(free), "let_through": len(passed(texts))}
    for mode in ("exact", "rollback"):
        times = values(lists[lists["mode"] == mode], "times")
        found[mode] = median_of(times) if times else None
    return found


def readme(facts: Row) -> str:
    """What became of the lists."""
    if not facts:
        return ""
    through = facts["let_through"]
    what = (
        f"{through} texts hold a banned word"
        if through
        else "neither the mask nor going back let a word through"
    )
    found = f"In {facts['lists']} random lists {what} (unconstrained, {facts['free']} texts do)"
    if facts["exact"] is not None:
        found += (
            "; where the model itself costs next to nothing, an id takes "
            f"{facts['exact']:.1f} times as long by the mask, {facts['rollback']:.1f} by going back"
        )
    return f"{found} ([table](paper_figures/banned.md), `python -m experiments run banned`)."


def _holding(texts: pd.DataFrame) -> int:
    return int(texts["banned"].map(bool).sum())


def _shown(text: pd.DataFrame) -> str:
    one = text.iloc[0]
    failed = not is_missing(one.get("error"))
    shown = f"{one['raised']}: {one['error']}" if failed else repr(one["text"])
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


def _article(texts: pd.DataFrame, manifest: Row) -> Table:
    columns = [
        Column("prompt, ban", "where"),
        Column("mode", "mode"),
        Column("text", _shown),
        Column("banned words in it", lambda one: one["banned"].iloc[0] or None, ", ".join),
        Column("acted", "acted", whole),
        Column("passes", "passes", whole),
        Column("ms a token", lambda one: 1e3 * median("each")(one), whole),
    ]
    words = ", ".join(f"`{word}`" for word in WORDS)
    notes = [
        f"the model: {manifest.get('model')}. {manifest.get('note', '')}".strip(),
        PUBLISHED,
        "acted: exact, steps at which the ban took ids from the mask; rollback, how often decoding "
        "went back",
        "the prompt's own `talk` is no concern of the ban",
        f"ours: `{OURS}`",
    ]
    return table(f"The article's words: {words} after `{PROMPT}`", texts, columns, notes)


def _log(texts: pd.DataFrame) -> Table:
    """Every rollback of the article's words."""
    columns = [
        Column("prompt, ban", "where"),
        Column("back to position", "position"),
        Column("id banned there", "token"),
        Column("ids thrown away", lambda one: len(one["discarded"].iloc[0])),
        Column("because of", lambda one: one["word"].iloc[0] or None, repr, "nothing left there"),
    ]
    back = [
        dict(zip(("position", "token", "word", "discarded"), one, strict=True), where=text["where"])
        for text in records(texts[texts["mode"] == "rollback"])
        for one in text.get("rollbacks") or ()
    ]
    return table("Log of the rollbacks", frame(back), columns)


def _lists(texts: pd.DataFrame) -> Table:

    def of(mode: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
        return lambda group: group[group["mode"] == mode]

    free, exact, back = map(of, MODES)
    columns = [
        Column("ban", "line"),
        Column("lists", lambda group: count(free(group))),
        Column("free: texts\nwith banned words", lambda group: _holding(free(group))),
        Column("exact:\nthe same", lambda group: _holding(exact(group))),
        Column("rollback:\nthe same", lambda group: _holding(back(group))),
        Column(
            "exact: steps at which\nthe ban acted",
            lambda group: [total(field)(exact(group)) for field in ("acted", "passes")],
            several(whole),
        ),
        Column("rollbacks", lambda group: total("acted")(back(group)), whole),
        Column("in texts", lambda group: sum(map(bool, values(back(group), "acted")))),
        Column(
            "ids thrown away\n/ kept",
            lambda group: [total(field)(back(group)) for field in ("discarded", "ids")],
            several(whole),
        ),
        Column("nothing\nallowed", lambda group: values(group, "raised").count(_NOTHING)),
        Column(
            "other\nerrors", lambda group: sum(one != _NOTHING for one in values(group, "raised"))
        ),
    ]
    notes = [
        "one to eight words each: tokens, parts of tokens, several tokens in a row, characters "
        "beyond ASCII; every second text comes after the beginning of a banned word",
        "the model: random numbers, and 9 to 11 nats more for ids that begin or go on with a "
        "banned word by one of 12 random tokenizations of each",
        "texts are searched by `str` and `re` alone",
    ]
    groups = [(kind, texts[texts["ban"] == kind].assign(line=kind)) for kind in KINDS]
    groups += [("all", texts.assign(line="all"))]
    title = "Random lists of banned words, with a model that is drawn to them"
    return table(title, [group for group in groups if len(group[1])], columns, notes)


_NOTHING = "EmptyLanguageError"


def _costs(texts: pd.DataFrame) -> Table:
    columns = [
        Column("", lambda group: _NAMES[group["kind"].iloc[0]]),
        Column("mode", "mode"),
        Column("ms a token", lambda group: 1e3 * median("each")(group), fixed(2)),
        Column("times free", median("times"), fixed(2)),
        Column(
            "calls of the model\na token",
            lambda group: median_of([*(group["passes"] / group["ids"])]),
            fixed(2),
        ),
        Column("to prepare, ms", lambda group: 1e3 * median("prepared")(group), fixed(1)),
    ]
    notes = [
        "medians of texts with at least one id in every mode; a token: one that stayed",
        "the modes of a row are timed one after the other in one process, in an order that rotates "
        "from row to row, the prompt read before the clock starts, nothing shared",
        "to prepare: what several texts can share, the constraint or the spellings, before the "
        "clock starts",
        "the model of the lists costs next to nothing, so there the loops themselves are seen",
    ]
    compared = texts[texts["compared"].astype(bool)]
    return table("Cost", compared.groupby(["kind", "mode"], sort=False), columns, notes)


def _sizes(rows: pd.DataFrame) -> Table:
    """The token automata of the spellings, each once."""
    names = {"article": "the article's", "list": "list"}
    sizes = [
        {"words": f"{names[row['kind']]}, {row['ban']}", **row["spellings"]}
        for row in records(rows)
        if row["spellings"]
    ]
    columns = [
        Column("words", "words"),
        Column("states", "states", whole),
        Column("transitions", "transitions", whole),
        Column("sequences of ids", "sequences", lambda n: f"{n:.3g}"),
    ]
    note = "minimal; none has a cycle. Of the lists, each tenth"
    title = "All spellings as one automaton"
    return table(title, frame(sizes).drop_duplicates(), columns, [note])

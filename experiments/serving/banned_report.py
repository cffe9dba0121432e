"""The rows of banned words as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.run.executors import Row
from experiments.run.statistics import median
from experiments.run.tables import Table
from experiments.serving.banned_runs import KINDS, OURS, PROMPT, WORDS

PUBLISHED = (
    "published, with gemma-2-2b-it, greedy: free `I'm here to listen and offer support.`; banned, "
    "with one rollback, of ` listen`, `I'm here to help you with whatever you need.` Its FSM has "
    '77 states, and words begin and end where tokens do. Clay, "Using Finite State Machine (FSM) '
    'and Rollback Mechanism to Restrict LLM from Generating Banned Words" (2024), notebook'
)
_SHOWN = 56


def tables(rows: Sequence[Row], manifest: Row) -> list[Table]:
    """All of them; of rows that are no failures."""
    found = [article(rows, manifest), log(rows), lists(rows), costs(rows), sizes(rows)]
    return [found[0], *(table for table in found[1:] if table.rows)]


def passed(rows: Sequence[Row]) -> list[str]:
    """A line for each text of either mode that holds a banned word."""
    texts = [(row, mode, row[mode]) for row in rows for mode in ("exact", "rollback")]
    return [
        f"{row['key']}, {mode}: {', '.join(cell['banned'])} in {cell['text']!r}"
        for row, mode, cell in texts
        if cell["banned"]
    ]


def facts(rows: Sequence[Row]) -> Row:
    """lists; free: of them with a banned word in the unconstrained text; let_through: texts of
    either mode with one; exact, rollback: seconds an id, as multiples of the free text's (None
    where nothing was timed)."""
    some = _of(rows, "list")
    timed = _timed(some)
    cost = {mode: _times_free(timed, mode) if timed else None for mode in _MODES[1:]}
    free = sum(bool(row["free"]["banned"]) for row in some)
    return {"lists": len(some), "free": free, "let_through": len(passed(rows)), **cost}


def sentence(facts: Row) -> str:
    """For the README, of `facts`."""
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


def _of(rows: Sequence[Row], kind: str) -> list[Row]:
    return [row for row in rows if row["kind"] == kind]


def article(rows: Sequence[Row], manifest: Row) -> Table:
    """A line for each text."""
    lines = []
    for row in _of(rows, "article"):
        drawn = f"seed {row['seed']}" if row["temperature"] else "greedy"
        for mode in ("free", "exact", "rollback"):
            cell = row[mode]
            lines.append(
                [
                    f"{row['prompt']}, {row['ban']}, {drawn}",
                    mode,
                    _text(cell),
                    ", ".join(cell["banned"]) or "-",
                    *_counts(cell),
                ]
            )
    words = ", ".join(f"`{word}`" for word in WORDS)
    columns = ["prompt, ban", "mode", "text", "banned words in it", "acted", "passes", "ms a token"]
    return Table(
        f"The article's words: {words} after `{PROMPT}`",
        columns,
        lines,
        [
            *filter(None, [manifest.get("note")]),
            PUBLISHED,
            "acted: exact, steps at which the ban took ids from the mask; rollback, how often "
            "decoding went back",
            "the prompt's own `talk` is no concern of the ban",
            f"ours: `{OURS}`",
        ],
    )


def _counts(cell: Row) -> tuple[str, str, str]:
    """(how often the ban acted, passes, ms for each id), dashes where there is no such thing."""
    if "error" in cell:
        return "-", "-", "-"
    return str(cell.get("acted", "-")), str(cell["passes"]), f"{1000 * _each(cell):.0f}"


def _text(cell: Row) -> str:
    shown = f"{cell['raised']}: {cell['error']}" if "error" in cell else repr(cell["text"])
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


def _each(cell: Row) -> float:
    """Seconds for each id that stayed."""
    return float(cell["seconds"]) / max(1, cell["ids"])


def log(rows: Sequence[Row]) -> Table:
    """Every rollback of the article's words."""
    lines = []
    for row in _of(rows, "article"):
        drawn = f"seed {row['seed']}" if row["temperature"] else "greedy"
        for position, token, word, discarded in row["rollback"].get("rollbacks", []):
            where = f"{row['prompt']}, {row['ban']}, {drawn}"
            shown = repr(word) if word else "nothing left there"
            lines.append([where, str(position), str(token), str(len(discarded)), shown])
    columns = ["prompt, ban", "back to place", "id banned there", "ids thrown away", "because of"]
    return Table("Log of the rollbacks", columns, lines)


def lists(rows: Sequence[Row]) -> Table:
    """What happened with the random lists, by kind of ban."""
    lines = []
    for kind in (*KINDS, "all"):
        some = [row for row in _of(rows, "list") if kind in (row["ban"], "all")]
        if not some:
            continue
        exact, back = [row["exact"] for row in some], [row["rollback"] for row in some]
        acted = [cell for cell in back if cell.get("acted")]
        lines.append(
            [
                kind,
                str(len(some)),
                *(str(sum(bool(row[mode]["banned"]) for row in some)) for mode in _MODES),
                f"{_sum(exact, 'acted'):,} / {_sum(exact, 'passes'):,}",
                f"{_sum(back, 'acted'):,}",
                f"{len(acted)}",
                f"{_sum(back, 'discarded'):,} / {_sum(back, 'ids'):,}",
                *_raised(cell for row in some for cell in (row[mode] for mode in _MODES)),
            ]
        )
    return Table(
        "Random lists of banned words, with a model that is drawn to them",
        [
            "ban",
            "lists",
            "free: texts\nwith banned words",
            "exact:\nthe same",
            "rollback:\nthe same",
            "exact: steps at which\nthe ban acted",
            "rollbacks",
            "in texts",
            "ids thrown away\n/ kept",
            "nothing\nallowed",
            "other\nerrors",
        ],
        lines,
        [
            "one to eight words each: tokens, parts of tokens, several tokens in a row, characters "
            "beyond ASCII; every second text comes after the beginning of a banned word",
            "the model: random numbers, and 9 to 11 nats more for ids that begin or go on with a "
            "banned word by one of 12 random tokenizations of each",
            "texts are searched by `str` and `re` alone",
        ],
    )


_MODES = ("free", "exact", "rollback")


def _raised(cells: Iterable[Row]) -> tuple[str, str]:
    """How many texts there are not, because nothing was allowed and for other reasons."""
    raised = [cell["raised"] for cell in cells if "error" in cell]
    empty = raised.count("EmptyLanguageError")
    return str(empty), str(len(raised) - empty)


def _sum(cells: Sequence[Row], key: str) -> int:
    return sum(cell.get(key) or 0 for cell in cells)


def costs(rows: Sequence[Row]) -> Table:
    """Seconds for each id kept, as a multiple of the free text's in the same row."""
    lines = []
    for kind, name in (("article", "the article's words"), ("list", "random lists")):
        some = _timed(_of(rows, kind))
        if not some:
            continue
        lines += [_cost(name, mode, some) for mode in _MODES]
    return Table(
        "Cost",
        [
            "",
            "mode",
            "ms a token",
            "times free",
            "calls of the model\na token",
            "to prepare, ms",
        ],
        lines,
        [
            "medians of texts with at least one id in every mode; a token: one that stayed; the "
            "modes of a row are timed one after the other in one process, in an order that rotates "
            "from row to row, the prompt read before the clock starts, nothing shared",
            "to prepare: what several texts can share, the constraint or the spellings, before the "
            "clock starts",
            "the model of the lists costs next to nothing, so there the loops themselves are seen",
        ],
    )


def _timed(rows: Sequence[Row]) -> list[Row]:
    """Those with at least one id in every mode."""
    return [row for row in rows if all(row[mode].get("ids") for mode in _MODES)]


def _times_free(rows: Sequence[Row], mode: str) -> float:
    """Median over rows of seconds an id, as a multiple of the free text's in the same row."""
    return median([_each(row[mode]) / _each(row["free"]) for row in rows])


def _cost(name: str, mode: str, rows: Sequence[Row]) -> list[str]:
    """The medians of one mode."""
    calls = [row[mode]["passes"] / row[mode]["ids"] for row in rows]
    return [
        name,
        mode,
        f"{median([1000 * _each(row[mode]) for row in rows]):.2f}",
        f"{_times_free(rows, mode):.2f}",
        f"{median(calls):.2f}",
        f"{median([1000 * row[mode]['prepared'] for row in rows]):.1f}",
    ]


def sizes(rows: Sequence[Row]) -> Table:
    """The token automata of the spellings."""
    lines = []
    for row in rows:
        name = f"the article's, {row['ban']}" if row["kind"] == "article" else f"list, {row['ban']}"
        size = row["spellings"]
        cells = size and [
            f"{size['states']:,}",
            f"{size['transitions']:,}",
            f"{size['sequences']:.3g}",
        ]
        if cells and [name, *cells] not in lines:
            lines.append([name, *cells])
    columns = ["words", "states", "transitions", "sequences of ids"]
    note = "minimal; none has a cycle. Of the lists, each tenth"
    return Table("All spellings as one automaton", columns, lines, [note])

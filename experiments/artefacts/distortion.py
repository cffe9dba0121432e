"""What a constraint does to a model's distribution, computed exactly and compared with the article.

For a prompt and a prefix-free set of answers, three distributions over the answers are compared:

- *free*: the model's own distribution, each answer summed over all its tokenizations, given that
  the model writes one of the answers as whole tokens;
- *lift*: each step is masked and renormalised over all tokenizations (Willard & Louf 2023);
- *canonical*: the same, over the tokenizer's own tokenization only.

The answers are prefix-free, so their end is forced, and end-of-sequence has no factor of its own.
The distributions under the masks are checked by samples that are drawn step by step through the
real `Matcher`, the free one by `free_draws`. The last tables are Table 1 of Tran-Thien, "Fast,
High-Fidelity LLM Decoding with Regex Constraints" (2024), which merges a text step by step, and the
sizes of the automata of his example.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata.constructions.cartesian_merge import CartesianMerge
from bpe_automata.constructions.explicit import explore
from bpe_automata.constructions.lift import Lift
from bpe_automata.reference import TokenDFA, direct_merge, explicit, merges_in_order, replay
from bpe_automata.sampling import normalised
from bpe_automata.testing import small_tokenizer
from bpe_automata.tokenizer.description import Description
from experiments import show
from experiments.cases import read
from experiments.exact import METHODS, Trie, pose, total_variation
from experiments.files import require
from experiments.lab import Row
from experiments.mistral import NAME, Reference, mistral_table
from experiments.models import opened
from experiments.statistics import clopper_pearson

TITLE = "Distortion"
CASES = read(Path(__file__).with_suffix(".jsonl"))
BOOLEAN = "boolean: ((true)|(false))"
"""The regex of the article's other example."""
SHOWN = ("president", "json_bool", "json_enum_quoted", "russian")
"""The prompts that the pages show; the first is the article's."""
LEVEL = 0.01
"""The probability that some interval misses its exact value although all is right."""
TEXT, TOKENS = "aaaabaacac", ("a", "b", "c", "ab", "aa", "ac")
MERGES = (("a", "b"), ("a", "a"), ("a", "c"))
STEPS = ("a a a a b a a c a c", "a a a ab a a c a c", "aa a ab aa c a c", "aa a ab aa c ac")
"""Published in Table 1: the tokens before the first merge and after each one."""
SIZES = {
    "lift (Outlines), reference": (17, 48),
    "DirectMerge of interegular's automaton, reference": (5, 4),
    "DirectMerge of the minimal automaton, reference": None,
    "lift, package": None,
    "CartesianMerge, package (states hold the last id)": None,
}
"""Published states and transitions of `BOOLEAN`, drawn in the article's companion notebook."""
PUBLISHED = {"free": 0.858792, "lift": 0.528521, "canonical": 0.858719}
"""The share of ` William` in the mass of both names, for Mistral-7B in 4 bits; under the masks it
is the share of the shortest ids that lead to this name only."""


@dataclass(frozen=True)
class Config:
    """samples: of each method and prompt; prompts: their names, all if empty; merges: how many of
    the first merges of the Mistral-7B table, whose automata Table 1 is about."""

    model: str = "smollm2"
    device: str = "auto"
    samples: int = 2000
    prompts: tuple[str, ...] = ()
    merges: int | None = None
    seed: int = 0


SMOKE = Config(prompts=("president", "digit", "chinese"), samples=50, merges=20)


def cells(config: Config) -> list[Row]:
    """A prompt each, then the article's table."""
    prompts = [{"prompt": name} for name in config.prompts or CASES]
    return [*prompts, {"prompt": "merges"}, {"prompt": "sizes"}]


def measure(config: Config, prompt: str) -> list[Row]:
    """A row for each answer and method; of the article's table, one for each step or automaton."""
    if prompt == "merges":
        return merged()
    if prompt == "sizes":
        return [
            {"automaton": name, "states": made.n_states, "transitions": made.n_transitions}
            | {"accepting": int(made.accepting.sum())}
            for name, made in automata(mistral_table(config.merges)).items()
        ]
    loaded = opened(config.model, config.device, "float32")
    posed = pose(loaded, CASES[prompt].prompt, CASES[prompt].answers)
    tree = Trie(posed).explore(1e-300, 1e-300, 200_000)
    rng = np.random.default_rng([config.seed, zlib.crc32(prompt.encode())])
    mass, own = tree.summed(tree.free, tree.complete), tree.complete & tree.alive[:, 1]
    free, canonical = normalised(mass), tree.summed(tree.free, own)
    law = {"free": free, "lift": tree.law("lift"), "canonical": tree.law("canonical")}
    columns = dict(enumerate(METHODS))
    counts = {m: counted_draws(tree, c, config.samples, rng) for c, m in columns.items()}
    said = {
        "model": loaded.name,
        "mass": float(np.exp(mass).sum()),
        "not canonical": float(1 - np.exp(canonical).sum() / np.exp(mass).sum()),
        "TV given canonical": total_variation(free, normalised(canonical)),
    }
    return [
        said
        | {"method": method, "answer": posed.answers[k].decode(), "ids": len(posed.own[k])}
        | {"p": float(law[method][k])}
        | {"TV": total_variation(free, law[method])}
        | ({"drawn": int(counts[method][k]), "n": config.samples} if method in counts else {})
        for method in show.COLORS
        for k in range(tree.n)
    ]


def counted_draws(tree: Trie, column: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [answers]: how often each is drawn, step by step through a real matcher. Raises
    RuntimeError where a mask of the matcher is not that of the trie."""
    posed, found = tree.posed, np.zeros(tree.n, dtype=np.int64)
    matcher = posed.constraints[METHODS[column]].matcher(prefix=posed.prompt_ids)

    @cache
    def children(node: int) -> tuple[np.ndarray, np.ndarray]:
        options = np.flatnonzero((tree.parent == node) & tree.alive[:, column])
        weights = np.exp(tree.steps[options] - tree.steps[options].max())
        return options, weights / weights.sum()

    for _ in range(count):
        node = depth = 0
        while not matcher.is_accepting:
            options, shares = children(node)
            if not np.array_equal(matcher.allowed_ids(), np.sort(tree.token[options])):
                raise RuntimeError(f"a mask after {tree.ids(node)} is not the trie's")
            node, depth = int(rng.choice(options, p=shares)), depth + 1
            matcher.advance(int(tree.token[node]))
        matcher.rollback(depth)
        found[tree.answer[node]] += 1
    return found


def merged() -> list[Row]:
    """Table 1 by the reference, and what the package makes of the text at once."""
    tokenizer = small_tokenizer(TOKENS, MERGES)
    merges, ids = merges_in_order(tokenizer.description), [TOKENS.index(c) for c in TEXT]
    names = ["single letters", *(f"after merge ({one}, {other})" for one, other in MERGES)]
    made = [replay(ids, merges[:done]) for done in range(len(merges) + 1)]
    names, made = [*names, "`encode`, all at once"], [*made, tokenizer.encode(TEXT)]
    found = [" ".join(TOKENS[token] for token in one) for one in made]
    return [{"step": name, "tokens": tokens} for name, tokens in zip(names, found, strict=True)]


def automata(table: Tokenizer) -> dict[str, TokenAutomaton]:
    """The automata of `SIZES`. DirectMerge changes the automaton that it is given, so it matters
    whether that one is minimal: the article gave it interegular's automaton of the regex, in which
    `true` and `false` end in different states."""
    reference, dfa, spelled = Reference(table), compile_regex(BOOLEAN), table.spellings
    given = interegular_dfa(table.description, BOOLEAN)
    lifted, canonical = Lift(table, dfa), CartesianMerge(table, dfa)
    direct = [direct_merge(one, reference.merges) for one in (given, reference.symbols(dfa))]
    made = [explicit(one, spelled) for one in (reference.lifted(dfa), *direct)]
    made += [explore(one, one.initial()) for one in (lifted, canonical)]
    return dict(zip(SIZES, made, strict=True))


def interegular_dfa(description: Description, regex: str) -> TokenDFA:
    """interegular's own automaton of a regex, not minimised, over base symbols."""
    fsm = require("interegular").parse_pattern(regex).to_fsm()
    read = {
        (character, symbol): fsm.alphabet[character]
        for data, symbol in description.base.items()
        if (character := data.decode("utf-8")) in fsm.alphabet
    }
    transitions = [
        (state, symbol, row[key])
        for state, row in fsm.map.items()
        for (_, symbol), key in read.items()
        if key in row
    ]
    return TokenDFA.of(transitions, fsm.initial, fsm.finals)


# What the rows say.


def by_method(rows: pd.DataFrame, values: list[str], *index: str) -> pd.DataFrame:
    """A line for each prompt (and answer); columns: `value method`, those of the methods."""
    keys = ["prompt", *index]
    once = rows.drop_duplicates([*keys, "method"]).set_index([*keys, "method"])
    found = once[values].unstack(sort=False)
    found.columns = [f"{value} {method}" for value, method in found.columns]
    return found.reset_index()


def asked(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that hold answers."""
    return rows.dropna(subset=["method"])


def inside(rows: pd.DataFrame) -> list[bool]:
    """For each probability under a mask: is it in the interval of its sample (Clopper-Pearson, with
    a joint level by Bonferroni)?"""
    masked = asked(rows)[asked(rows)["method"] != "free"]
    return [
        low <= p <= high
        for p, k, n in masked[["p", "drawn", "n"]].itertuples(index=False)
        for low, high in [clopper_pearson(int(k), int(n), LEVEL / len(masked))]
    ]


def distances(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each prompt; ids: of the shortest to the longest answer."""
    found, columns = asked(rows), ["prompt", "mass", "not canonical", "TV given canonical"]
    once, ids = found.drop_duplicates("prompt")[columns], found.groupby("prompt")["ids"]
    low, high = (ends.astype(int).astype(str) for ends in (ids.min(), ids.max()))
    once.insert(1, "ids", once["prompt"].map(low.where(low == high, low + "-" + high)))
    far = by_method(found[found["method"] != "free"], ["TV"])
    return once.merge(far)[[*columns[:1], "ids", *columns[1:3], *far.columns[1:], columns[3]]]


def tables(rows: pd.DataFrame) -> list[show.Table]:
    """Distributions and distances; then the article's."""
    each, far, checked = by_method(asked(rows), ["p"], "answer"), distances(rows), inside(rows)
    each["answer"] = "`" + each["answer"] + "`"
    each["prompt"] = each["prompt"].where(~each["prompt"].duplicated(), "")
    answers = f"""{sum(checked)} of {len(checked)} probabilities under masks lie in the interval
        (Clopper-Pearson, joint level {1 - LEVEL:.0%}, Bonferroni) of {rows["n"].min():,.0f} samples
        that were drawn through the matcher, from the same logits"""
    return [
        show.Table(
            "Probability of each answer",
            each,
            dict.fromkeys(each.columns[2:], show.fixed(4)),
            answers,
        ),
        show.Table(
            "Distance to the free distribution",
            far,
            {"mass": "{:.1e}".format} | dict.fromkeys(far.columns[3:], show.small),
            """ids: length of the answers' canonical tokenizations; mass: of all answers together
            under the free model; not canonical: the share of it that other tokenizations spell

            TV given canonical: of the free distribution conditioned on canonical ids. By how much
            TV canonical exceeds it comes from renormalising step by step, which no mask avoids""",
        ),
        *article(rows),
    ]


def article(rows: pd.DataFrame) -> list[show.Table]:
    """Table 1 and the numbers in the article's text, as published and as measured."""
    steps = rows[rows["prompt"] == "merges"][["step", "tokens"]]
    steps.insert(1, "published", [*STEPS, ""])
    steps[["published", "tokens"]] = steps[["published", "tokens"]].map(
        lambda text: "+".join(f"`{token}`" for token in text.split())
    )
    steps.columns = [f"`{TEXT}`", "published", "measured"]
    found = [show.Table("Table 1 of the article: a text merge by merge", steps)]
    president = rows[rows["prompt"] == SHOWN[0]]
    if len(president):
        p = president.drop_duplicates("method").set_index("method")["p"]
        names = "Mistral-7B-v0.1, 4 bits (published)", f"{president['model'].iloc[0]} (measured)"
        data = pd.DataFrame([PUBLISHED, p])[[*show.COLORS]]
        data.insert(0, "model", names)
        title = "In the text: the share of ` William` in the probability of two answers"
        found.append(show.Table(title, data, dict.fromkeys(show.COLORS, show.fixed(4))))
    sizes = rows[rows["prompt"] == "sizes"]
    pairs = sizes[["states", "transitions"]].astype(int).astype(str).agg(" / ".join, axis=1)
    published = [pair and "{} / {}".format(*pair) for pair in SIZES.values()]
    data = pd.DataFrame({BOOLEAN: sizes["automaton"], "published": published, "measured": pairs})
    data["accepting states"] = sizes["accepting"].astype(int)
    notes = f"""states / transitions; merges: {NAME} (no prefix, no byte fallback)

        published: in the companion notebook; the article's text says 16 states of the lift

        DirectMerge changes the automaton that it is given: in the article that is interegular's,
        which is not minimal, as `true` and `false` end in different states of it"""
    title = "In the text, and Figures 2 and 3: size of the automata"
    return [*found, show.Table(title, data, {}, notes)]


def figure(rows: pd.DataFrame) -> show.Figure:
    """The article's prompt; then a dumbbell per prompt with the mass of its answers."""
    found = asked(rows)
    far = distances(rows).assign(single=lambda d: d["ids"] == "1")
    far = far.sort_values(["single", "TV lift"]).reset_index(drop=True)
    heights = far.index + far["single"]
    canvas, ((bars, axes, masses),) = show.panels(1, 3, (12.5, 6.6), width_ratios=(1, 1.9, 0.6))
    first = found[found["prompt"] == found["prompt"].iloc[0]].drop_duplicates("method")
    names = ("the model\nitself", "any\ntokenization", "the tokenizer's\nown")
    bars.bar_label(bars.bar(names, first["p"], color=show.COLORS.values()), fmt="%.3f")
    bars.set(ylim=(0, 1), ylabel=f"probability of “{first['answer'].iloc[0].strip()}”")
    bars.set_title(f"Prompt: {first['prompt'].iloc[0]}", loc="left", fontsize=11)
    axes.hlines(
        heights, far["TV canonical"], far["TV lift"], color=show.PALE, linewidth=2, zorder=1
    )
    ring = {"facecolor": "white", "edgecolor": show.LIFT, "linewidth": 2}
    axes.scatter(far["TV lift"], heights, s=110, label="any tokenization", **ring)
    own = {"color": show.CANONICAL, "label": "the tokenizer's own"}
    axes.scatter(far["TV canonical"], heights, s=38, zorder=3, **own)
    axes.legend(loc="lower right", fontsize=9)
    axes.set_yticks(heights, far["prompt"].str.replace("_", " "))
    for single, said in ((False, "longer answers"), (True, "answers of one token")):
        if len(of := heights[far["single"] == single]):
            axes.text(1e-4, of.iloc[-1] + 0.6, said, fontsize=9, color="#555555", style="italic")
    axes.set_xscale("symlog", linthresh=1e-3)
    axes.set(xlim=(-1e-4, 1.6), ylim=(-0.8, heights.iloc[-1] + 1.4))
    axes.set_xlabel("total variation distance to the model's own (log scale above 0.001)")
    axes.grid(axis="x", color="#eeeeee")
    shares = masses.barh(heights, 100 * far["mass"], color=show.PALE, height=0.5)
    masses.bar_label(
        shares, [f"{show.three(100 * m)} %" for m in far["mass"]], padding=3, fontsize=9
    )
    masses.set(yticks=[], xlim=(0, 160), xticks=(0, 50, 100), ylim=axes.get_ylim())
    masses.set_xlabel("probability of any\nof the answers (%)")
    ends = far.groupby("single")[[f"TV {m}" for m in METHODS]].max()
    one, more = (ends.loc[k].tolist() if k in ends.index else [0.0, 0.0] for k in (True, False))
    headline = (
        f"{far['single'].sum()} prompts with answers of one token: masking over any tokenization "
        f"moves the model's distribution by up to {one[0]:.2f},\nover the tokenizer's own by up "
        f"to {one[1]:.4f}. {(~far['single']).sum()} with longer ones: by up to {more[0]:.2f} and "
        f"{more[1]:.2f}."
    )
    model = found["model"].iloc[0]
    note = f"{model}; n = {len(far)} prompts; exact probabilities, not samples."
    return show.Figure(canvas, headline, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """The founding example, the table in short, and the sizes of the article's automata."""
    said, president = dict[str, str](), asked(rows)[asked(rows)["prompt"] == SHOWN[0]]
    if len(president):
        p = president.drop_duplicates("method").set_index("method")["p"]
        said["distortion example"] = f"""Asked for the first name of the US president who was a
            member of the Sigma Alpha Epsilon fraternity, the model prefers ` William` to
            ` Theodore`: of the two it gives ` William` {p["free"]:.3f}. Under a mask over any
            tokenization that is {p["lift"]:.3f}, under one over the tokenizer's own
            {p["canonical"]:.3f}. (Without a mask both names together have
            {president["mass"].max():.1e}: masks distort most where the answers are unlikely.)"""
    _, far, *_, sizes = tables(rows)
    chosen = far.data[far.data["prompt"].isin(SHOWN)].iloc[:, :-1]
    return said | {"distortion": show.markdown(chosen, far.formats), "table1": sizes.lines()}

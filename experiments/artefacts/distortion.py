"""What a constraint does to a model's distribution, computed exactly, beside the article's example.

For a prompt and a prefix-free set of answers, three distributions over the answers:

- *free*: the model's own, each answer summed over all its tokenizations, given that it writes one
  of the answers as whole tokens;
- *lift*: each step masked and renormalised over all tokenizations (Willard & Louf 2023);
- *canonical*: the same over the tokenizer's own tokenization only.

The answers are prefix-free, so an end is forced and end-of-sequence has no factor of its own. Each
distribution is checked by samples: constrained ones go step by step through the real `Matcher`,
free ones are drawn without any constraint, and those that spell an answer count. Then Table 1 of
Tran-Thien, "Fast, High-Fidelity LLM Decoding with Regex Constraints" (2024), a text merge by merge,
and the sizes of the automata of his example.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from bpe_automata import TokenAutomaton, Tokenizer, compile_regex
from bpe_automata._constructions.cartesian_merge import CartesianMerge
from bpe_automata._constructions.explicit import explore
from bpe_automata._constructions.lift import Lift
from bpe_automata._kernels.bits import members
from bpe_automata._tokenizer.description import Description
from bpe_automata.reference import TokenDFA, direct_merge, explicit, merges_in_order, replay
from bpe_automata.testing import small_tokenizer
from experiments.article.mistral import NAME, Reference, mistral_table
from experiments.cases import read
from experiments.exact import METHODS, Trie, normalised, pose, total_variation
from experiments.files import require
from experiments.lab import Row
from experiments.models import opened
from experiments.show import (
    CANONICAL,
    FREE,
    LIFT,
    PALE,
    Figure,
    Table,
    fixed,
    markdown,
    panels,
    small,
    three,
)

TITLE = "Distortion"
CASES = read(Path(__file__).with_suffix(".jsonl"))
BOOLEAN = "boolean: ((true)|(false))"
"""The regex of the article's other example."""
COLORS = {"free": FREE, "lift": LIFT, "canonical": CANONICAL}
SHOWN = ("president", "json_bool", "json_enum_quoted", "russian")
"""The prompts that the pages show; the first is the article's."""
LEVEL = 0.01
"""Probability that any of all the intervals misses its exact value, if all is right."""
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
PUBLISHED = {
    "free": (0.0236206, 0.00388386, 0.858792),
    "lift": (0.0284329, 0.0253642, 0.528521),
    "canonical": (0.0236205, 0.00388619, 0.858719),
}
"""Masses of ` William` and ` Theodore` for Mistral-7B, 4 bits, and the share of the first."""


@dataclass(frozen=True)
class Config:
    """samples: of each method and prompt; prompts: names, all if empty; merges: only the first so
    many of the Mistral-7B table, whose automata Table 1 is about."""

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
    mass = tree.summed(tree.free, tree.complete)
    free, own = normalised(mass), tree.complete & tree.alive[:, 1]
    restricted, whole = tree.summed(tree.free, own), float(np.exp(mass).sum())
    said = {
        "model": loaded.name,
        "note": loaded.note,
        "mass": whole,
        "not canonical": float(np.exp(tree.summed(tree.free, tree.complete & ~own)).sum()) / whole,
        "TV given canonical": total_variation(free, normalised(restricted)),
    }
    rows = _answers("free", tree, free, drawn_freely(tree, config.samples, rng), np.exp(mass), said)
    for column, method in enumerate(METHODS):
        log_law = tree.summed(tree.masked[:, column], tree.complete)
        law, n = np.exp(log_law), config.samples
        kl = max(0.0, float(np.sum(free * (np.log(free) - log_law))))
        far = {"TV": total_variation(free, law), "KL": kl}
        drawn_ = drawn(tree, column, n, rng)
        rows += _answers(method, tree, law, drawn_, deciding(tree, column), said | far)
    return rows


def _answers(
    method: str, tree: Trie, law: np.ndarray, drawn: np.ndarray, deciding: np.ndarray, said: Row
) -> list[Row]:
    posed = tree.posed
    each = zip(posed.answers, map(len, posed.own), law, drawn, deciding, strict=True)
    return [
        {"method": method, "answer": answer.decode(), "ids": ids, "p": float(p), "drawn": int(k)}
        | {"n": int(drawn.sum()), "deciding": float(d), **said}
        for answer, ids, p, k, d in each
    ]


def deciding(tree: Trie, column: int) -> np.ndarray:
    """For each answer the model's own probability of the shortest sequences of ids that a method
    admits and that lead to this answer only."""
    alive = tree.alive[:, column]
    # Of the answers that each node can still become, the first and the last by their numbers.
    first, last = np.full(len(tree), tree.n), np.full(len(tree), -1)
    ends = alive & tree.complete
    first[ends] = last[ends] = tree.answer[ends]
    for node in range(len(tree) - 1, 0, -1):  # children come after their parents
        parent = tree.parent[node]
        first[parent] = min(first[parent], first[node])
        last[parent] = max(last[parent], last[node])
    decided = alive & (first == last)
    nodes = np.flatnonzero(decided & ~decided[tree.parent])
    return np.bincount(first[nodes], np.exp(tree.free[nodes]), tree.n)


def drawn(tree: Trie, column: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [answers]: how often each is drawn, step by step through a real matcher. Raises
    RuntimeError where its mask is not that of the trie."""
    posed, found = tree.posed, np.zeros(tree.n, dtype=np.int64)
    matcher = posed.constraints[METHODS[column]].matcher(prefix=posed.prompt_ids)
    bits = np.zeros((1, (posed.loaded.tokenizer.n_ids + 31) // 32), dtype=np.int32)
    known: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    for _ in range(count):
        node = depth = 0
        while not matcher.is_accepting:
            matcher.mask(bits)
            if node not in known:
                options = np.flatnonzero((tree.parent == node) & tree.alive[:, column])
                weights = np.exp(tree.steps[options] - tree.steps[options].max())
                known[node] = (bits[0].copy(), options, weights / weights.sum())
                if not np.array_equal(members(bits[0]), np.sort(tree.token[options])):
                    raise RuntimeError(f"a mask after {tree.ids(node)} is not the trie's")
            row, options, shares = known[node]
            if not np.array_equal(row, bits[0]):
                raise RuntimeError(f"two masks after {tree.ids(node)}")
            node = int(rng.choice(options, p=shares))
            matcher.advance(int(tree.token[node]))
            depth += 1
        matcher.rollback(depth)
        found[tree.answer[node]] += 1
    return found


def drawn_freely(tree: Trie, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """int64 [answers]: of unconstrained trials at least `wanted` of which spell an answer; none
    where these would be over 2**60.

    They are not drawn one by one: how many take each edge out of a node is multinomial, and the
    rest leaves the trie. When to stop depends on how many were accepted, not on which, so the
    accepted ones are independent draws from the distribution of the answers.
    """
    found, leaves = np.zeros(tree.n, dtype=np.int64), np.flatnonzero(tree.complete)
    mass = float(np.exp(tree.free[leaves]).sum())
    if mass < wanted / 2**60:
        return found
    while (missing := wanted - int(found.sum())) > 0:
        passing = np.zeros(len(tree), dtype=np.int64)
        passing[0] = int(np.ceil(missing / mass))
        for node in np.unique(tree.parent[1:]):
            children = np.flatnonzero(tree.parent == node)
            shares = np.exp(tree.steps[children])
            rest = max(0.0, 1.0 - float(shares.sum()))
            shares = np.append(shares, rest) / (shares.sum() + rest)
            passing[children] = rng.multinomial(passing[node], shares)[:-1]
        found += np.bincount(tree.answer[leaves], passing[leaves], tree.n).astype(np.int64)
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
    """Those of `SIZES`. DirectMerge changes the automaton that it is given, so it matters whether
    that one is minimal: the article gave it the one that interegular makes of the regex, in which
    `true` and `false` end apart."""
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
    """The rows of answers, with `inside`: does the sample's interval (Clopper-Pearson, of all at
    once, Bonferroni) hold the exact value?"""
    found = rows.dropna(subset=["method"])
    level = 1 - LEVEL / len(found)

    def inside(row: pd.Series) -> bool:
        low, high = binomtest(int(row["drawn"]), int(row["n"])).proportion_ci(level)
        return bool(low <= row["p"] <= high)

    return found.assign(inside=[bool(row["n"]) and inside(row) for _, row in found.iterrows()])


def distances(found: pd.DataFrame) -> pd.DataFrame:
    """A line for each prompt; ids: of the shortest to the longest answer."""
    columns = ["prompt", "mass", "not canonical", "TV given canonical"]
    once, ids = found.drop_duplicates("prompt")[columns], found.groupby("prompt")["ids"]
    low, high = (ends.astype(int).astype(str) for ends in (ids.min(), ids.max()))
    once.insert(1, "ids", once["prompt"].map(low.where(low == high, low + "-" + high)))
    far = by_method(found[found["method"] != "free"], ["TV", "KL"])
    order = [*columns[:1], "ids", *columns[1:3], *(f"TV {m}" for m in METHODS), columns[3]]
    return once.merge(far)[[*order, *(f"KL {m}" for m in METHODS)]]


def tables(rows: pd.DataFrame) -> list[Table]:
    """Distributions and distances; then the article's."""
    found = asked(rows)
    each = found.assign(share=found["drawn"] / found["n"].replace(0, np.nan)).drop(columns="drawn")
    each = by_method(each.rename(columns={"share": "drawn"}), ["p", "drawn"], "answer")
    each = each[["prompt", "answer", *(f"{v} {m}" for m in COLORS for v in ("p", "drawn"))]]
    each["answer"] = "`" + each["answer"] + "`"
    each["prompt"] = each["prompt"].where(~each["prompt"].duplicated(), "")
    far, inside = distances(found), f"{found['inside'].sum()} of {len(found)}"
    answers = f"""free: the model's own distribution over the answers, each summed over all ids that
        spell it exactly, whatever follows; lift, canonical: masked and renormalised step by step

        drawn: frequency among {found["n"].min():.0f} samples (free: at least as many); {inside}
        exact values lie in the Clopper-Pearson interval of their sample (joint level
        {1 - LEVEL:.0%}, Bonferroni). Samples are drawn from the same cached probabilities, so they
        check the samplers and the sums, not the model

        {found["note"].iloc[0]}"""
    return [
        Table(
            "Probability of each answer", each, dict.fromkeys(each.columns[2:], fixed(4)), answers
        ),
        Table(
            "Distance to the free distribution",
            far,
            {"mass": "{:.1e}".format} | dict.fromkeys(far.columns[3:], small),
            """ids: length of the answers' canonical tokenizations; mass: of all answers together
            under the free model; not canonical: the share of it that other tokenizations spell

            TV: total variation distance to the free distribution; KL(free || method) in nats

            TV given canonical: the free distribution conditioned on canonical ids. What TV
            canonical has above it comes from renormalising step by step, which no mask avoids""",
        ),
        *article(rows),
    ]


def article(rows: pd.DataFrame) -> list[Table]:
    """Table 1 and the numbers of the text, published beside measured."""
    steps = rows[rows["prompt"] == "merges"][["step", "tokens"]]
    steps.insert(1, "published", [*STEPS, ""])
    steps[["published", "tokens"]] = steps[["published", "tokens"]].map(
        lambda text: "+".join(f"`{token}`" for token in text.split())
    )
    steps.columns = [f"`{TEXT}`", "published", "measured"]
    found = [Table("Table 1 of the article: a text merge by merge", steps)]
    president = rows[rows["prompt"] == SHOWN[0]]
    if len(president):
        masses = president.pivot(index="answer", columns="method", values="deciding")[[*COLORS]]
        pair = masses.loc[list(CASES[SHOWN[0]].answers)]
        lines = pd.DataFrame(PUBLISHED).values.tolist()
        lines += [*pair.values.tolist(), (pair.iloc[0] / pair.sum()).tolist()]
        data = pd.DataFrame(lines, columns=[*COLORS])
        names = "Mistral-7B-v0.1, 4 bits (published)", f"{president['model'].iloc[0]} (measured)"
        data.insert(0, "model", [names[0], "", "", names[1], "", ""])
        data.insert(1, "answer", ["` William`", "` Theodore`", "William of the two"] * 2)
        note = """free: probability of each answer, summed over all its tokenizations; the other
            columns: of the shortest sequences of ids that lead to one answer only, as in the
            article. What a masked model writes step by step is in the first table"""
        digits = dict.fromkeys(COLORS, "{:.6g}".format)
        found.append(Table("In the text: what is left of two answers", data, digits, note))
    sizes = rows[rows["prompt"] == "sizes"]
    pairs = sizes[["states", "transitions"]].astype(int).astype(str).agg(" / ".join, axis=1)
    published = [pair and "{} / {}".format(*pair) for pair in SIZES.values()]
    data = pd.DataFrame({BOOLEAN: sizes["automaton"], "published": published, "measured": pairs})
    data["accepting states"] = sizes["accepting"].astype(int)
    notes = f"""states / transitions; merges: {NAME} (no prefix, no byte fallback)

        published: in the companion notebook; the article's text says 16 states of the lift

        DirectMerge changes the automaton that it is given: in the article that is interegular's,
        which is not minimal, as `true` and `false` end apart in it"""
    title = "In the text, and Figures 2 and 3: size of the automata"
    return [*found, Table(title, data, {}, notes)]


def figure(rows: pd.DataFrame) -> Figure:
    """The article's prompt; then a dumbbell per prompt with the mass of its answers."""
    found = asked(rows)
    far = distances(found).assign(single=lambda d: d["ids"] == "1")
    far = far.sort_values(["single", "TV lift"]).reset_index(drop=True)
    heights = far.index + far["single"]
    drawn, ((bars, axes, masses),) = panels(1, 3, (12.5, 6.6), width_ratios=(1, 1.9, 0.6))
    first = found[found["prompt"] == found["prompt"].iloc[0]].drop_duplicates("method")
    names = ("the model\nitself", "any\ntokenization", "its own\ntokenization")
    bars.bar_label(bars.bar(names, first["p"], color=COLORS.values()), fmt="%.3f")
    bars.set(ylim=(0, 1), ylabel=f"probability of “{first['answer'].iloc[0].strip()}”")
    bars.set_title(f"Prompt: {first['prompt'].iloc[0]}", loc="left", fontsize=11)
    axes.hlines(heights, far["TV canonical"], far["TV lift"], color=PALE, linewidth=2, zorder=1)
    ring = {"facecolor": "white", "edgecolor": LIFT, "linewidth": 2}
    axes.scatter(far["TV lift"], heights, s=110, label="any tokenization", **ring)
    own = {"color": CANONICAL, "label": "its own tokenization"}
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
    shares = masses.barh(heights, 100 * far["mass"], color=PALE, height=0.5)
    masses.bar_label(shares, [f"{three(100 * m)} %" for m in far["mass"]], padding=3, fontsize=9)
    masses.set(yticks=[], xlim=(0, 160), xticks=(0, 50, 100), ylim=axes.get_ylim())
    masses.set_xlabel("probability of any\nof the answers (%)")
    ends = far.groupby("single")[[f"TV {m}" for m in METHODS]].max()
    one, more = (ends.loc[k].tolist() if k in ends.index else [0.0, 0.0] for k in (True, False))
    headline = (
        f"{far['single'].sum()} prompts with answers of one token: masking over any tokenization "
        f"moves the model's distribution by up to {one[0]:.2f},\nover its own tokenization by up "
        f"to {one[1]:.4f}. {(~far['single']).sum()} with longer ones: by up to {more[0]:.2f} and "
        f"{more[1]:.2f}."
    )
    model = found["model"].iloc[0]
    note = f"{model}; n = {len(far)} prompts; exact probabilities, not samples."
    return Figure(drawn, headline, note)


def numbers(rows: pd.DataFrame) -> dict[str, str]:
    """The founding example, the table in short, and the sizes of the article's automata."""
    found, said = asked(rows), dict[str, str]()
    far = distances(found)
    p = found[found["answer"] == CASES[SHOWN[0]].answers[0]].set_index("method")["p"]
    mass = found[found["prompt"] == SHOWN[0]]["mass"].max()
    if len(p):
        said["distortion example"] = f"""Asked for the first name of the US president who was a
            member of the Sigma Alpha Epsilon fraternity, the model prefers ` William` to
            ` Theodore`: of the two it gives ` William` {p["free"]:.3f}. Under a mask over any
            tokenization that is {p["lift"]:.3f}, under one over the tokenizer's own
            {p["canonical"]:.3f}. (Without a mask both names together have {mass:.1e}: masks distort
            most where the answers are unlikely.)"""
    shown = tables(rows)[1].shown()
    rare, often = (far[(far["mass"] < 0.01) == is_rare]["TV lift"] for is_rare in (True, False))
    said["distortion"] = f"""{markdown(shown[shown["prompt"].isin(SHOWN)].iloc[:, :7])}

        *mass* is the probability that the model writes any of the answers unasked, *TV* the total
        variation distance to the model's own distribution over them. In the {len(rare)} prompts
        where the mass is below 0.01, *TV lift* is {rare.mean():.2f} on average, in the other
        {len(often)} it is {often.mean():.3f}. {found["inside"].sum()} of {len(found)} exact numbers
        lie in the intervals of {found["n"].min():,.0f} samples each."""
    sizes = rows[rows["prompt"] == "sizes"][["states", "transitions"]].astype(int).values.tolist()
    comes = "comes" if [*map(tuple, sizes[:2])] == [*SIZES.values()][:2] else "does not come"
    lift, direct, minimal = (f"{q} states and {t} transitions" for q, t in sizes[:3])
    said["table1"] = f"""The article's example `{BOOLEAN}` {comes} out as in its companion notebook:
        {lift} under the lift, {direct} by DirectMerge ({minimal} if one begins with the minimal
        automaton)."""
    return said

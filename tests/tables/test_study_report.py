"""What is said of made-up rows: the parts of an error, groups, pairs, and the worst cases."""

from __future__ import annotations

import copy
import math

import pytest

from experiments.study import study_figure, study_report, study_report_methods, study_report_tables
from experiments.study.study_report_points import (
    at_draws,
    at_every_temperature,
    number_cell,
    points,
    share,
    summary,
)


def part(law, free, weighted=None):
    weighted = weighted or law
    return {
        "law": law,
        "tv": abs(law[0] - free[0]),
        "kl": divergence(free, law),
        "slack": 0.0,
        "unread": 0.0,
        "lost": 0.0,
        "share": 0.9,
        "weighted": weighted,
        "weighted_tv": abs(weighted[0] - free[0]),
        "weighted_kl": 0.0,
        "weighted_slack": 0.0,
        **judged("", law),
        **judged("weighted_", weighted),
    }


def divergence(free, law):
    pairs = [(p, q) for p, q in zip(free, law, strict=True) if p]
    return sum(p * math.log(p / q) for p, q in pairs) if all(q for _, q in pairs) else None


def judged(prefix, law):
    return {
        f"{prefix}p_right": law[0],
        f"{prefix}is_right": law[0] > 0.5,
        f"{prefix}same_answer": True,
    }


def row(name, free, lift, canonical, weighted, **other):
    pair = [[p, 1 - p] for p in (free, lift, canonical, weighted)]
    at = {
        "free": pair[0],
        "free_slack": 0.0,
        **judged("", pair[0]),
        "methods": {
            "lift": part(pair[1], pair[0], pair[0]),
            "canonical": part(pair[2], pair[0], pair[3]),
        },
    }
    drawn = {"law": [free + 0.05, 0.95 - free], "error": 0.0}
    own = {
        "key": f"smollm2/{name}",
        "kind": "finite",
        "model": "smollm2",
        "name": name,
        "family": "names",
        "base": name,
        "style": "plain",
        "boundary": "space",
        "prompt": f"prompt of {name}",
        "answers": [" a", " b"],
        "truth": [" a"],
        "canonical_tokens": [1, 2],
        "as_lift": [],
        "absent": {},
        "asked": 10,
        "healing": None,
        "draws_at": 1.0,
        "draws": {"lift": {kind: dict.fromkeys(("8", "32"), drawn) for kind in KINDS}},
        "temperatures": {"0.5": at, "1.0": at},
    }
    return own | other


KINDS = ("importance", "smc")
ROWS = [
    row("lift bad", 0.9, 0.1, 0.85, 0.88),
    row("canonical bad", 0.5, 0.45, 0.1, 0.5),
    row("both right", 0.3, 0.3, 0.3, 0.3),
]


def test_an_error_is_the_sum_of_its_parts():
    for point in points(ROWS):
        whole = point.tokenization + point.myopia + point.rest
        assert whole == pytest.approx(point.lift)
    bad = points(ROWS)[0]
    parts = (bad.tokenization, bad.myopia, bad.rest)
    assert parts == pytest.approx((0.75, 0.03, 0.02))


def test_the_worst_cases_are_shown_both_ways():
    found = points(ROWS)
    lift = study_report.lift_worse(found)
    canonical = study_report.canonical_worse(found)
    assert [line[0] for line in lift.rows if line[0]] == ["1. SmolLM2: lift bad"]
    (name,) = [line[0] for line in canonical.rows if line[0]]
    assert name == "1. SmolLM2: canonical bad"
    assert [line[1] for line in canonical.rows] == ["' a' *", "' b'"]
    assert "prompt of canonical bad" in canonical.notes[1]
    assert study_report_tables.farther(at_draws(found)) == (1, 1)


def test_variants_are_compared_with_the_same_question():
    rows = [
        row("q plain", 0.5, 0.4, 0.5, 0.5, base="q"),
        row("q chat", 0.5, 0.1, 0.5, 0.5, base="q", style="chat"),
        row("other", 0.5, 0.0, 0.5, 0.5, style="chat"),
    ]
    pairs = study_report_tables.pairs_of(at_draws(points(rows)), "style", "plain")
    ((key, ((point, reference),)),) = pairs.items()
    assert key == ("smollm2", "chat")
    assert (point.row["name"], reference.row["name"]) == ("q chat", "q plain")
    table = study_report_tables.variants(points(rows), "style", "plain", "Styles")
    (line,) = table.rows
    assert line[1:4] == ["1", "0.400", "0.300 [0.300, 0.300]"]


def test_what_is_not_settled_enters_no_summary():
    rough = row("rough", 0.9, 0.1, 0.9, 0.9)
    rough["temperatures"]["1.0"] = dict(rough["temperatures"]["1.0"], free_slack=0.2)
    made = study_report.render([*ROWS, rough], {})
    assert made.facts["points"] - made.facts["settled"] == 1
    assert made.facts["models"]["smollm2"]["cases"] == 3
    (line,) = made.tables[-1].rows
    assert line[0] == "SmolLM2: rough, 1"


def changed(name="rough", temperature="1.0", method=None, **values):
    """A row with other values at one temperature, of the point or of one of its methods."""
    made = copy.deepcopy(row(name, 0.9, 0.1, 0.9, 0.9))
    at = made["temperatures"][temperature] = copy.deepcopy(made["temperatures"][temperature])
    (at["methods"][method] if method else at).update(values)
    return made


def facts_of(rows):
    """Of a report, without its figures."""
    every = points(rows)
    return study_report.facts(rows, every, [point for point in every if point.is_settled()])


def test_slacks_add_up_to_the_error_of_a_distance():
    # The free law may be off by 0.006 and the lift by 0.01 / 2: a distance by 0.011.
    both = changed(method="lift", slack=0.01)
    both["temperatures"]["1.0"]["free_slack"] = 0.006
    assert not at_draws(points([both]))[0].is_settled()
    both["temperatures"]["1.0"]["free_slack"] = 0.004
    assert at_draws(points([both]))[0].is_settled()
    limit = changed(method="canonical", weighted_slack=0.02)
    assert not at_draws(points([limit]))[0].is_settled()


def test_other_methods_are_settled_one_by_one():
    rows = []
    for name, slack, limit in (("fine", 0.0, 0.0), ("masked", 0.1, 0.0), ("limit", 0.0, 0.1)):
        made = changed(name)
        chop = part([0.4, 0.6], [0.9, 0.1]) | {"slack": slack, "weighted_slack": limit}
        made["temperatures"]["1.0"]["methods"]["chop"] = chop
        rows.append(made)
    found = points(rows)
    lines = {line[0]: line for line in study_report_methods.methods(found).rows}
    assert lines["SmolLM2: lift"][1] == "3"
    assert lines["SmolLM2: chop"][1] == "2"
    assert lines["SmolLM2: chop, weighted"][1] == "2"
    assert study_report.peers(found).rows[0][:2] == ["SmolLM2: chop", "2"]
    names = [line[0] for line in study_report_methods.accuracy(found).rows]
    assert "SmolLM2: chop, weighted" in names


def test_temperatures_are_compared_on_the_same_cases():
    rows = [*ROWS, changed("hard", free_slack=0.2)]
    found = [point for point in points(rows) if point.is_settled()]
    assert len(found) == 7
    assert {point.row["name"] for point in at_every_temperature(found)} == {
        each["name"] for each in ROWS
    }
    for table in (
        study_report_tables.by_temperature(found),
        study_report_tables.canonical_share(found),
    ):
        assert [line[1] for line in table.rows] == ["3", "3"]
    drawn = study_figure.figures(found)[2]
    lift = (0.8 + 0.05 + 0.0) / 3
    assert f"lift's mean error goes from {lift:.2f} to {lift:.2f}" in drawn.headline
    assert "the 3 cases of 3 that" in drawn.note


def test_a_prompt_as_it_stands_is_judged_where_it_is_settled():
    rows = []
    for name, slack in (("fine", 0.005), ("rough", 0.05)):
        kept = {"tv_free": 0.3, "tv_lift": 0.2, "slack": slack}
        healing = {"text": " ", "temperatures": {"0.5": kept, "1.0": kept}}
        rows.append(changed(name) | {"healing": healing})
    table = study_report_tables.healing(points(rows))
    assert [line[1] for line in table.rows] == ["1", "1"]
    assert table.notes[1].startswith("1 cases are left out")


def test_divergences_are_shown_with_those_that_are_infinite():
    rows = [
        row("one", 0.5, 0.25, 0.5, 0.5),
        row("two", 0.5, 0.25, 0.25, 0.5),
        changed("three", method="lift", kl=None),
    ]
    table = study_report_methods.methods(points(rows))
    lift, canonical = table.rows[:2]
    value = math.log(4 / 3) / 2  # 1/2 log (1/2 / 1/4) + 1/2 log (1/2 / 3/4)
    assert table.columns[-3:] == ["KL median", "KL mean", "KL infinite\ncases"]
    assert lift[-3].startswith(f"{value:.4f} ")
    assert lift[-1] == "1"
    assert canonical[-2].startswith(f"{value / 3:.3f} ")
    assert canonical[-1] == "0"
    kl = facts_of(rows)["models"]["smollm2"]["kl"]
    assert kl["lift"]["infinite"] == 1
    assert kl["lift"]["median"] == pytest.approx(value)
    assert kl["canonical"]["mean"] == pytest.approx(value / 3)


def test_shares_are_those_of_the_summed_error():
    found = at_draws(points(ROWS))
    # TV lift 0.8, 0.05, 0; tokenization 0.75, -0.35, 0
    made = share(found, lambda point: point.tokenization, lambda point: point.lift)
    assert made.value == pytest.approx(0.4 / 0.85)
    assert math.isnan(made.interval[0])  # the third case alone has no error to share
    made = share(found[:2], lambda point: point.tokenization, lambda point: point.lift)
    # From the second case alone to the first alone.
    assert made.interval == pytest.approx((-0.35 / 0.05, 0.75 / 0.8))
    table = study_report_tables.by_family(found)
    assert table.rows[0][table.columns.index("tokenization\nshare")].startswith("47% [")
    facts = facts_of(ROWS)["models"]["smollm2"]["shares"]
    assert sum(each["value"] for each in facts.values()) == pytest.approx(1)
    same = [row("same", 0.5, 0.5, 0.5, 0.5)]
    assert facts_of(same)["models"]["smollm2"]["shares"]["rest"] == {
        "value": None,
        "interval": [None, None],
    }


def test_the_readme_counts_questions_and_names_a_worst_case_only_where_there_is_one():
    other = [each | {"model": "gemma-3-270m", "key": f"gemma/{each['name']}"} for each in ROWS]
    rough = changed(free_slack=0.2)
    every = study_report.readme(facts_of([*ROWS, *other, rough]))
    assert len(every["distortion-study in short"].splitlines()) == 4
    told = every["distortion-study"]
    assert "asks 3 questions of" in told
    assert "under 2 models" in told
    assert "(most in `canonical bad`: 0.40 against 0.05)" in told
    assert "By more than 0.01, the lift is farther off in 1 cases" in told
    told = study_report.readme(facts_of(ROWS[:1]))["distortion-study"]
    assert "canonical in 0." in told
    assert "most in" not in told


def test_models_without_a_chat_format_are_noted():
    asked = {"kind": "model", "source": "mine", "chat_format": "plain", "note": ""}
    known = asked | {"source": "smollm2", "chat_format": "smollm2"}
    (note,) = study_report.plain_chats([asked, known, {"key": "x", "failure": "not there"}])
    assert "mine" in note


def test_a_draw_is_measured_against_the_free_law_where_it_was_simulated():
    half, one = points(ROWS)[:2]
    assert half.drawn_tv("lift", "smc", 8) is None
    assert one.drawn_tv("lift", "smc", 8) == pytest.approx(0.05)
    assert one.drawn_tv("chop", "smc", 8) is None


def test_a_population_without_an_answer_draws_none():
    made = row("lost", 0.9, 0.9, 0.9, 0.9)
    lost = {"law": [0.5, 0.1], "error": 0.0}  # in 0.4 of the populations
    made["draws"] = {"lift": {"smc": {"8": lost}}}
    (point,) = at_draws(points([made]))
    assert point.drawn_tv("lift", "smc", 8) == pytest.approx(0.4)


def test_nothing_and_failures_alone_can_be_rendered():
    for rows in ([], [{"key": "model x", "failure": "not there"}]):
        made = study_report.render(rows, {})
        assert (list(made.tables), list(made.figures)) == ([], [])
        assert made.facts["models"] == {}


def test_summaries_and_numbers():
    made = summary(points(ROWS), lambda point: point.lift)
    assert made.mean == pytest.approx((0.8 + 0.05) / 3)
    assert made.median == pytest.approx(0.05)
    assert made.n == 6
    assert math.isnan(summary([], lambda point: 0.0).mean)
    assert [number_cell(v) for v in (None, 0.0, 0.25, 1e-7)] == ["-", "0.0000", "0.2500", "1e-07"]

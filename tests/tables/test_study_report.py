"""What is said of made-up rows: the parts of an error, groups, pairs, shares, what is left out."""

from __future__ import annotations

import copy
import math

import pytest

from experiments.run.tables import frame
from experiments.study.distortion_study import report as study_report
from experiments.study.distortion_study.artefact import facts
from experiments.study.distortion_study.points import (
    THREE,
    at_draws,
    at_every_temperature,
    drawn_tv,
    farther,
    mean,
    median,
    of_methods,
    points,
    share_of_lift,
    within_tolerance,
)


def part(distribution, free, weighted=None):
    weighted = weighted or distribution
    zeros = ("slack", "unread", "lost", "weighted_kl", "weighted_slack")
    return {
        "law": distribution,
        "tv": abs(distribution[0] - free[0]),
        "kl": sum(p * math.log(p / q) for p, q in zip(free, distribution, strict=True)),
        "share": 0.9,
        "weighted": weighted,
        "weighted_tv": abs(weighted[0] - free[0]),
        **dict.fromkeys(zeros, 0.0),
        **judged("", distribution),
        **judged("weighted_", weighted),
    }


def judged(prefix, distribution):
    return {
        f"{prefix}p_right": distribution[0],
        f"{prefix}is_right": distribution[0] > 0.5,
        f"{prefix}same_answer": True,
    }


def row(name, free, lift, canonical, weighted, mass=0.001, **other):
    pair = [[p, 1 - p] for p in (free, lift, canonical, weighted)]
    at = {
        "free": pair[0],
        "free_slack": 0.0,
        "log10_mass": math.log10(mass),
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
        "draws": {"lift": {sampler: dict.fromkeys(("8", "32"), drawn) for sampler in SAMPLERS}},
        "temperatures": {"0.5": at, "1.0": at},
    }
    return own | other


SAMPLERS = ("importance", "smc")
ROWS = [
    row("lift bad", 0.9, 0.1, 0.85, 0.88),
    row("canonical bad", 0.5, 0.45, 0.1, 0.5),
    row("both right", 0.3, 0.3, 0.3, 0.3),
]


def changed(name="rough", temperature="1.0", method=None, **values):
    """A row with other values at one temperature, of the point or of one of its methods."""
    made = copy.deepcopy(row(name, 0.9, 0.1, 0.9, 0.9))
    at = made["temperatures"][temperature] = copy.deepcopy(made["temperatures"][temperature])
    (at["methods"][method] if method else at).update(values)
    return made


def points_of(rows):
    return points(frame(rows))


def facts_of(rows):
    return facts(frame(rows), {})


def lines_of(table):
    """The cells of each line by its name."""
    return {line[0]: line[1:] for line in table.rows}


def test_an_error_is_the_sum_of_its_parts():
    found = points_of(ROWS)
    assert found[list(THREE)].sum(axis=1).tolist() == pytest.approx(found["lift"].tolist())
    assert found.loc[0, list(THREE)].tolist() == pytest.approx([0.75, 0.03, 0.02])
    assert farther(at_draws(found)) == (1, 1)


def test_shapley_values_are_the_means_of_both_orders():
    """With weights the lift is at 0, canonical at the rest; without, at their own distances."""
    found = points_of(ROWS)
    distance = {"lift": found["lift"], "canonical": found["canonical"]}
    weighted = {"lift": 0 * found["lift"], "canonical": found["rest"]}
    tokens = [of["lift"] - of["canonical"] for of in (distance, weighted)]
    steps = [distance[method] - weighted[method] for method in distance]
    assert found["tokenization_shapley"].tolist() == pytest.approx((sum(tokens) / 2).tolist())
    assert found["myopia_shapley"].tolist() == pytest.approx((sum(steps) / 2).tolist())
    sums = found[["tokenization_shapley", "myopia_shapley", "rest"]].sum(axis=1)
    assert sums.tolist() == pytest.approx(found["lift"].tolist())


@pytest.mark.parametrize(
    ("mass", "name"), [(1e-9, "below 1e-4"), (1e-4, "1e-4 to 1e-2"), (0.5, "over 1e-2")]
)
def test_masses_have_their_ranges(mass, name):
    (found,) = {*points_of([row("x", 0.5, 0.9, 0.6, 0.5, mass=mass)])["masses"]}
    assert found == name


def test_what_is_not_exact_enough_enters_no_summary():
    rows = [*ROWS, changed(free_slack=0.2)]
    made = facts_of(rows)
    assert made["points"] - made["settled"] == 1
    assert made["models"]["smollm2"]["cases"] == 3
    (note,) = (n for n in study_report.tables(frame(rows), {})[0].notes if "are left out" in n)
    assert note.startswith("1 of 8 cases and temperatures")


def test_slacks_add_up_to_the_error_of_a_distance():
    """The free distribution may be off by 0.006 and the lift by 0.01 / 2: a distance by 0.011."""
    both = changed(method="lift", slack=0.01)
    for slack, is_within_tolerance in ((0.006, False), (0.004, True)):
        both["temperatures"]["1.0"]["free_slack"] = slack
        assert at_draws(points_of([both]))["is_within_tolerance"].tolist() == [is_within_tolerance]
    limit = changed(method="canonical", weighted_slack=0.02)
    assert at_draws(points_of([limit]))["is_within_tolerance"].tolist() == [False]


def test_other_methods_are_left_out_one_by_one():
    rows = []
    for name, slack, limit in (("fine", 0.0, 0.0), ("masked", 0.1, 0.0), ("limit", 0.0, 0.1)):
        made = changed(name)
        chop = part([0.4, 0.6], [0.9, 0.1]) | {"slack": slack, "weighted_slack": limit}
        made["temperatures"]["1.0"]["methods"]["chop"] = chop
        rows.append(made)
    counts = of_methods(points_of(rows)).groupby("method", observed=True)["tv"].count()
    assert (counts["lift"], counts["chop"], counts["chop, weighted"]) == (3, 2, 2)
    judged = of_methods(points_of(rows)).groupby("method", observed=True)["p_right"].count()
    assert (judged["free"], judged["chop, weighted"]) == (3, 2)


def test_temperatures_are_compared_on_the_same_cases():
    found = within_tolerance(points_of([*ROWS, changed("hard", free_slack=0.2)]))
    assert len(found) == 7
    complete = at_every_temperature(found)
    assert set(complete["name"]) == {each["name"] for each in ROWS}


def test_divergences_are_summed_up_where_they_are_finite():
    rows = [
        row("one", 0.5, 0.25, 0.5, 0.5),
        row("two", 0.5, 0.25, 0.25, 0.5),
        changed("three", method="lift", kl=None),
    ]
    value = math.log(4 / 3) / 2  # 1/2 log (1/2 / 1/4) + 1/2 log (1/2 / 3/4)
    kl = facts_of(rows)["models"]["smollm2"]["kl"]
    assert kl["lift"]["infinite"] == 1
    assert kl["lift"]["median"] == pytest.approx(value)
    assert kl["canonical"] == {"median": 0, "mean": pytest.approx(value / 3), "infinite": 0}
    drawn = at_draws(points_of(rows))
    lines = lines_of(study_report.distances(drawn, of_methods(drawn)))
    assert [lines[f"SmolLM2: {name}"][-1] for name in ("lift", "canonical")] == ["1", "0"]
    assert lines["SmolLM2: lift, smc of 8"][-3:] == ["-", "-", "-"]


def test_shares_are_those_of_the_summed_error():
    found = at_draws(points_of(ROWS))
    # TV lift 0.8, 0.05, 0; tokenization 0.75, -0.35, 0
    value, low, _ = share_of_lift("tokenization")(found)
    assert value == pytest.approx(0.4 / 0.85)
    assert math.isnan(low)  # the third case alone has no error to share
    _, *ends = share_of_lift("tokenization")(found[:2])
    # from the second case alone to the first alone
    assert ends == pytest.approx([-0.35 / 0.05, 0.75 / 0.8])
    shares = facts_of(ROWS)["models"]["smollm2"]["shares"]
    assert sum(shares[name]["value"] for name in THREE) == pytest.approx(1)
    none = {"value": None, "interval": [None, None]}
    same = facts_of([row("same", 0.5, 0.5, 0.5, 0.5)])
    assert same["models"]["smollm2"]["shares"]["rest"] == none


def test_means_and_medians_have_intervals_of_their_questions():
    found = points_of(ROWS)
    value, low, high = mean("lift")(found)
    assert value == pytest.approx((0.8 + 0.05) / 3)
    assert low < value < high
    assert median("lift")(found)[0] == pytest.approx(0.05)
    assert mean("lift")(found[:0]) is None
    one = mean("lift")(found.assign(base="the same"))
    assert one == pytest.approx((value,) * 3)


def test_a_draw_is_measured_against_the_free_distribution_where_it_was_simulated():
    free = [0.9, 0.1]
    assert drawn_tv(ROWS[0], free, "lift", "smc", 8) == pytest.approx(0.05)
    assert drawn_tv(ROWS[0], free, "chop", "smc", 8) is None
    assert drawn_tv(ROWS[0] | {"as_lift": ["chop"]}, free, "chop", "smc", 8) is not None


def test_a_population_without_an_answer_draws_none():
    lost = {"law": [0.5, 0.1], "error": 0.0}  # in 0.4 of the populations
    made = row("lost", 0.9, 0.9, 0.9, 0.9) | {"draws": {"lift": {"smc": {"8": lost}}}}
    assert drawn_tv(made, [0.9, 0.1], "lift", "smc", 8) == pytest.approx(0.4)

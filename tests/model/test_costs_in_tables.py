"""Costs as people give them: in tables, in commands, in families, and in the library."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import gcd

import numpy as np
import pandas
import polars
import pytest

from instances.build import real_priced, tiny_costs
from mipmech import InputError, Instance, Mechanism, best_threshold, make_instance, recount
from mipmech.cli import main
from mipmech.model.from_table import Choice
from mipmech.model.instance_from_csv import instance_from_csv
from mipmech.model.tables import read_csv

TABLE = "sat,gpa,essay,price,far,flat\n500,2,3,2,0.5,1\n700,4,1,2,0.25,1\n600,3.5,2,3,1,1\n"
QUALITY = {"sat": 0.002, "gpa": 0.5}
GIVEN = {"quality": QUALITY, "visible": ["sat", "gpa"]}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "students.csv"
    file.write_text(TABLE)
    return file


@pytest.fixture(params=["csv", "pandas", "polars"])
def read(request, path):
    """`from_csv` or `from_frame` on the same table."""
    if request.param == "csv":
        return lambda **given: Instance.from_csv(path, **{**GIVEN, **given})
    frame = {"pandas": pandas, "polars": polars}[request.param].read_csv(path)
    return lambda **given: Instance.from_frame(frame, **{**GIVEN, **given})


def test_a_table_may_give_the_reach(read):
    assert read(reach="far").costs.values.tolist() == [0.5, 0.25, 1]
    assert read(reach="far").costs.given == "reach"
    assert read(reach=0.3).reach.tolist() == [0.3] * 3
    assert read(reach=[1, 2, 3]).reach.tolist() == [1, 2, 3]
    assert read(cost="price").cost.tolist() == [2, 2, 3]


def test_prices_by_column_are_1_for_the_rest(read):
    sample = read(cost=2.0, effort={"gpa": 10})
    assert sample.features == ("sat", "gpa")
    assert sample.costs.effort.tolist() == [1, 10]
    assert read(cost=2.0, effort={"gpa": 1}).costs.plain


def test_prices_and_a_matrix_over_the_features(read):
    order = {"features": ["gpa", "sat"], "cost": 2.0}
    assert read(**order, effort=[10, 0.5]).costs.prices(2).tolist() == [10, 0.5]
    assert read(**order, effort=np.array([10, 0.5]), norm="l1").costs.norm == "l1"
    matrix = [[2.0, -0.5], [-0.5, 1.0]]
    assert read(**order, effort=matrix).costs.matrix.tolist() == matrix


def test_standard_is_one_over_the_deviation(read):
    sample = read(cost=2.0, effort="standard", features=["essay", "sat", "gpa"])
    assert sample.agents[:, 1].tolist() == [500, 700, 600]
    assert sample.costs.prices(3) == pytest.approx(1 / sample.agents.std(axis=0))
    assert sample.units is None


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_standard_is_the_same_problem_as_standardised(path, norm):
    """Rules gain the same, written in either units."""
    priced = Instance.from_csv(path, **GIVEN, reach=0.5, norm=norm, effort="standard")
    made = Instance.from_csv(path, **GIVEN, reach=0.5, norm=norm, standardise=True)
    rng = np.random.default_rng(3)
    for weights in rng.standard_normal((20, 2)):
        by_unit = Mechanism(tuple(weights.tolist()), 0.0)
        scale = weights / np.array(made.units.scale)
        best = best_threshold(made, by_unit)
        again = best_threshold(priced, Mechanism(tuple(scale.tolist()), 0.0))
        assert float(again.gain) == pytest.approx(float(best.gain), rel=1e-9)


def test_prices_do_not_depend_on_the_order_of_sums():
    """Sums are exact: an order that a machine chooses must not change the digest."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(1000) * 10.0 ** rng.integers(-8, 8, 1000)
    given = {"quality": {"x": 1}, "visible": ["x"], "cost": 1, "effort": "standard"}
    prices = set()
    for _ in range(5):
        sample = Instance.from_frame(pandas.DataFrame({"x": rng.permutation(x)}), **given, ids=None)
        prices.add(float(sample.costs.effort[0]))
    assert len(prices) == 1


def test_gaps_count_in_the_columns_of_costs(tmp_path):
    (tmp_path / "a.csv").write_text("x,far\n1,2\n3,\n5,1\n9,4\n")
    given = {"quality": {"x": 1}, "visible": ["x"], "reach": "far", "effort": "standard"}
    with pytest.raises(InputError, match=r"reach, line 3: has no number under 'far'"):
        Instance.from_csv(tmp_path / "a.csv", **given)
    sample = Instance.from_csv(tmp_path / "a.csv", **given, drop_blank=True)
    assert sample.reach.tolist() == [2, 1, 4]
    assert sample.costs.prices(1) == pytest.approx(1 / np.std([1, 5, 9]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "cost: is missing; add it, or 'reach', how far agents go to pass"),
        ({"cost": 1, "reach": 1}, "reach: is given beside 'cost', of which it is the inverse"),
        ({"cost": 1, "reach": "far"}, "reach: is given beside 'cost'"),
        ({"reach": "near"}, "reach: there is no column 'near'; there are sat,"),
        ({"reach": [1, 2]}, "reach: has 2 numbers, 3 expected"),
        ({"reach": 0}, "reach: is 0; it must be above 0"),
        ({"cost": 1, "norm": "l3"}, "norm: is the text 'l3'; give \"l2\", \"l1\" or \"linf\""),
        ({"cost": 1, "effort": "standrad"}, "(did you mean 'standard'?)"),
        ({"cost": 1, "effort": 2}, "effort: is 2; give prices by feature"),
        ({"cost": 1, "effort": [1, 2]}, "effort: is an array; give 'features' with it"),
        ({"cost": 1, "effort": {"SAT": 2}}, "effort: there is no column 'SAT'; there are sat"),
        ({"cost": 1, "effort": {"essay": 2}}, "effort: names 'essay', which is not among the feat"),
        ({"cost": 1, "effort": {"gpa": 0}}, "has the price 0 for 'gpa'; it must be above 0"),
        ({"cost": 1, "effort": {"gpa": "x"}}, "effort: has the text 'x' for 'gpa'"),
        (
            {"cost": 1, "effort": "standard", "features": ["sat", "gpa", "flat"]},
            "features: has 'flat' = 1 for everyone, so it has no standard deviation",
        ),
        (
            {"cost": 1, "effort": {"gpa": 2}, "standardise": True},
            "effort: is for features in the units of the table, and standardise changes these;"
            " leave out one of the two",
        ),
        ({"cost": 1, "effort": "standard", "standardise": True}, "effort: is for features in the"),
        ({"cost": 1, "norm": "l1", "visible": None, "view": [{"sat": 1, "gpa": 1}]}, "norm: is l1"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(read, given, said):
    with pytest.raises(InputError) as error:
        read(**given)
    assert said in str(error.value)


# ------------------------------------------------------------------ files of `new`


def made_of(path, **given):
    choice = Choice(**{**GIVEN, **given})
    return instance_from_csv(read_csv(path), choice, path.with_suffix(".json"), "students")


def test_a_file_that_refers_to_its_table_keeps_what_was_given(path):
    made = made_of(path, reach="far", effort={"gpa": 10}, norm="linf")
    assert made.refers
    assert made.content["reach"] == {"column": "far"}
    assert made.content["effort"] == {"gpa": 10.0}
    assert made.unused == ("essay", "price", "flat")
    made.save(path.with_suffix(".json"))
    assert Instance.load(path.with_suffix(".json")).digest == made.instance.digest


def test_a_matrix_that_lets_hidden_features_move_is_no_mistake(path):
    """Nothing that is seen carries quality, but effort spills over to what does."""
    given = {"quality": {"gpa": 1}, "visible": ["sat"], "features": ["sat", "gpa"], "cost": 1}
    unseen = made_of(path, **given)
    assert "nothing that the planner sees carries quality" in unseen.warnings[0]
    matrix = [[2, -1], [-1, 1]]
    assert made_of(path, **given, effort=matrix).warnings == ()
    assert json.loads(json.dumps(made_of(path, **given, effort=matrix).content["effort"])) == matrix


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cost": 2}, "a move of 1 in one feature costs 2"),
        ({"cost": "price"}, "a move of 1 in one feature costs price (price is a column)"),
        ({"cost": 2, "standardise": True}, "a move of 1 standard deviation in one feature costs 2"),
        (
            {"cost": 2, "effort": "standard", "norm": "l1"},
            "a move of 1 standard deviation in one feature costs 2; the costs of moves in several"
            " features add up",
        ),
        (
            {"cost": 2, "effort": {"gpa": 10}, "norm": "linf"},
            "a move of 1 costs 2 in sat, 20 in gpa; a move in several features costs as much as"
            " its dearest part",
        ),
        ({"reach": 0.5}, "people move in one feature by up to 0.5 to pass"),
        (
            {"reach": 1, "effort": "standard"},
            "people move in one feature by up to 1 standard deviation to pass",
        ),
        (
            {"reach": "far", "effort": {"gpa": 10}},
            "people move by up to far in sat, 0.1 times far in gpa to pass (far is a column)",
        ),
    ],
)
def test_what_a_move_costs_in_words(path, given, said):
    assert made_of(path, **given).cost == said


# ------------------------------------------------------------------ families by command


def make(capsys, *options):
    status = main(["make", "ties", "--agents", "6", "--rank", "2", *map(str, options)])
    return status, *capsys.readouterr()


def test_families_take_norms_and_prices(capsys, tmp_path):
    file = tmp_path / "a.json"
    for options, given in (
        (["--norm", "l1"], {"norm": "l1"}),
        (["--norm", "linf", "--effort", "spread"], {"norm": "linf", "effort": "spread"}),
        (["--effort", "1, 2e-3"], {"effort": [1, 0.002]}),
    ):
        status, out, _ = make(capsys, "-o", file, "--json", *options)
        assert status == 0
        told = json.loads(out)
        same = make_instance("ties", 6, 2, 0, **given)
        assert (told["digest"], told["name"]) == (same.digest, same.name)
        assert Instance.load(file).digest == same.digest


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--effort", "1"], "effort: has 1 numbers, 2 expected: a price per visible feature"),
        (["--effort", "1,x2"], "effort, row 1: has 'x2'; give numbers between commas"),
        (["--effort", "1,$2"], "effort, row 1: has '$2'; write 2; give numbers between commas"),
        (["--effort", "1,0"], "effort, row 1: has the price 0 for 'x1'; it must be above 0"),
        (["--effort", "spred"], "(did you mean 'spread'?)"),
        (["--effort", ""], "effort: is ''; give a list of prices"),
        (["--norm", "l3"], "'l3' is not one of 'l2', 'l1', 'linf'"),
    ],
)
def test_norms_and_prices_that_no_family_has(capsys, tmp_path, options, said):
    status, out, err = make(capsys, "-o", tmp_path / "a.json", *options)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "a.json").exists()


# ------------------------------------------------------------------ the library


def unit_move(sample, w):
    """The move of cost 1 (of a person whose cost is 1) that raises w·x most, by brute force."""
    n = len(w)
    effort = sample.costs.effort
    if sample.costs.norm == "l2":
        m = np.eye(n) if effort is None else np.diag(effort**2) if effort.ndim == 1 else effort
        lifted = np.linalg.solve(m, w)
        return lifted / np.sqrt(lifted @ m @ lifted)
    e = np.ones(n) if effort is None else effort
    if sample.costs.norm == "l1":
        corners = [sign * np.eye(n)[j] / e[j] for j in range(n) for sign in (1, -1)]
    else:
        corners = [np.array(s) * (w != 0) / e for s in product((1, -1), repeat=n)]
    # Of moves that raise the score alike, the one that is best for quality.
    highest = max(float(w @ move) for move in corners)
    return max((v for v in corners if w @ v == highest), key=lambda v: float(sample.quality @ v))


def searched(sample, size):
    """The greatest gain over all small whole weights and all ends of somebody's reach."""
    seen = sample.view.columns
    reach = sample.costs.values if sample.costs.given == "reach" else 1 / sample.costs.values
    share = sample.weights / sample.weights.sum()
    best = 0.0
    for seen_weights in product(range(-size, size + 1), repeat=len(seen)):
        if gcd(*seen_weights) != 1:
            continue
        w = np.zeros(sample.width)
        w[list(seen)] = seen_weights
        move = unit_move(sample, w)
        limits = reach * (w @ move)
        scores = sample.agents @ w
        for b in scores + limits:
            d = b - scores
            d[(d < 0) | (d > limits + 1e-12)] = 0
            best = max(best, (sample.quality @ move) / (w @ move) * float(share @ d))
    return best


@pytest.mark.parametrize("name", tiny_costs())
def test_what_was_worked_out_by_hand_is_found_by_brute_force(name):
    sample = tiny_costs()[name]
    found = searched(sample, 32 if name == "prices" else 17)  # the best are in there
    assert found <= sample.known.upper * (1 + 1e-12)
    if name != "linf-not-attained":
        assert found >= sample.known.lower * (1 - 1e-12)


@pytest.mark.parametrize(
    ("name", "weights", "threshold"),
    [
        ("l1", (1, 2), 6),
        ("l1-tie", (1, 1), 3),
        ("l1-prices", (1, 16), 24),
        ("linf", (1, 2), 7),
        ("linf-not-attained", (1249, 1), 1250),
        ("prices", (0.75, 8), 2.5),
        ("spill-over", (1, 0), 0.5),
        ("reach", (1, 0), 0.3),
    ],
)
def test_the_rules_that_are_given_by_hand_gain_that_exactly(name, weights, threshold):
    sample = tiny_costs()[name]
    gain = recount(sample, Mechanism(tuple(map(float, weights)), float(threshold))).gain
    assert Fraction(sample.known.lower) <= gain <= Fraction(sample.known.upper)
    shown = sample.known.how.removeprefix("by hand: ").replace("≥ 1/2", "≥ 0.5")
    assert f"≥ {threshold}" in shown


def test_the_supremum_of_linf_is_approached_and_not_attained():
    sample = tiny_costs()["linf-not-attained"]
    gains = [
        recount(sample, Mechanism((1 - e, e), 1.0)).gain for e in (2.0**-n for n in range(4, 30, 5))
    ]
    exact = [5 - Fraction(25, 2 * 2**n) for n in range(4, 30, 5)]
    assert gains == exact
    assert all(gain < 5 for gain in gains)


def test_real_samples_in_their_own_units():
    """A price of 1/deviation each, and agents as in the raw table."""
    made = {name: instance for name, (_, instance) in real_priced().items()}
    assert {i.costs.norm for i in made.values()} == {"l2", "l1", "linf"}
    for instance in made.values():
        assert instance.costs.prices(instance.width) == pytest.approx(
            1 / instance.agents.std(axis=0)
        )
        assert instance.units is None
    assert made["satgpa-units-l1"].agents[0].tolist() == [65, 62, 3.4]
    digests = {made[f"satgpa-units-{norm}"].digest for norm in ("l2", "l1", "linf")}
    assert len(digests) == 3


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_best_thresholds_are_those_of_brute_force(norm):
    """Small samples with ties, and every kind of cost: the truth against corners of the ball."""
    rng = np.random.default_rng(["l2", "l1", "linf"].index(norm))
    for _ in range(150):
        m, n = int(rng.integers(1, 8)), int(rng.integers(1, 5))
        prices = [None, np.round(10.0 ** rng.uniform(-2, 2, n), 3)][int(rng.integers(2))]
        if norm == "l2" and rng.random() < 0.5:
            root = rng.standard_normal((n, n))
            prices = root @ root.T + np.eye(n)
            prices = (prices + prices.T) / 2
        quality = rng.integers(-3, 4, n) + np.eye(n)[0] / 2
        seen = sorted(rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist())
        given = ("cost", "reach")[int(rng.integers(2))]
        sample = Instance.from_arrays(
            rng.integers(-5, 6, (m, n)) / 2, quality, visible=seen, norm=norm, effort=prices,
            **{given: rng.choice([0.3, 0.5, 1.0, 2.0], m)},
        )  # fmt: skip
        w = np.zeros(n)
        w[seen] = rng.integers(-3, 4, len(seen))
        if not w.any():
            continue
        move = unit_move(sample, w)
        limits, scores = sample.reach * (w @ move), sample.agents @ w
        gains = [0.0]
        for b in scores + limits:
            d = b - scores
            inside = (d >= -1e-12) & (d <= limits + 1e-11)
            gains.append((quality @ move) / (w @ move) * np.where(inside, d, 0).mean())
        best = best_threshold(sample, Mechanism(tuple(w.tolist()), 0.0))
        if quality @ move > 0:
            assert float(best.gain) == pytest.approx(max(gains), rel=1e-6, abs=1e-9)

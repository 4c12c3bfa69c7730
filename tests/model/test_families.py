"""Families: seeded, of the sizes asked for, and what they claim to be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mipmech import InputError, Instance, Mechanism, best_threshold, make_instance, theory
from mipmech.model import FAMILIES, example1
from mipmech.model.families import gaussian_mixture, named
from tests import referee


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rank", [2, 5])
def test_sizes_and_seeds(family, rank, tmp_path):
    one = make_instance(family, 40, rank, seed=3, hidden=2)
    assert (one.size, one.width, one.view.rank) == (40, rank + 2, rank)
    assert one.digest == make_instance(family, 40, rank, seed=3, hidden=2).digest
    assert one.digest != make_instance(family, 40, rank, seed=4, hidden=2).digest
    one.save(tmp_path / "a.json")
    assert Instance.load(tmp_path / "a.json").digest == one.digest
    assert "--seed 3" in one.source


def test_sheets_beat_the_projection():
    """Along the sheet's normal nearly everybody moves; along P w_f few do."""
    for rank in (2, 4):
        instance = make_instance("adversarial", 300, rank, seed=1)
        weights = np.zeros(instance.width)
        weights[:2] = 0.6, 0.8
        along_normal = best_threshold(instance, Mechanism(tuple(weights.tolist()), 0.0))
        along_projection = theory.projection_rule(instance).recount
        assert along_normal.density > 0.9
        assert along_normal.gain > 5 * along_projection.gain


def test_ties_are_ties():
    instance = make_instance("ties", 60, 2, seed=0)
    assert len(np.unique(instance.agents[:, :2], axis=0)) < 50
    assert set(instance.cost) == {5.0, 10.0}
    assert (instance.weights == 0).any()


def test_the_mixture_is_as_smooth_as_it_claims():
    """The sample's gain is that of the population; the tails are those of Lemma 7."""
    population = gaussian_mixture(2, seed=4)
    assert population.radius <= 1
    sample = population.sample(50_000, seed=1)
    rule = theory.projection_rule(sample).recount
    assert float(rule.gain) == pytest.approx(population.gain(rule.mechanism), rel=0.05)
    made = make_instance("gaussian-mixture", 20_000, 2, seed=4)
    far = theory.tail_radius(3, made.smoothing.sigma, made.smoothing.radius, 1e-3)
    assert (np.linalg.norm(made.agents, axis=1) > far).mean() <= 1e-3


def test_example1_is_optimal_up_to_its_own_limit():
    """For ℓ ≤ r(m − 1)/m, not quite up to r."""
    for m, cost, optimal in ((5, 1.25, True), (5, 1.0, False)):
        best = referee.best_gain(example1(m, cost=cost))
        assert (best == pytest.approx(1 / cost / math.sqrt(3), rel=1e-12)) == optimal


def test_example1_by_name():
    assert make_instance("example1", 9, 2, 0).name == "example1-m9"
    assert make_instance("example1", 9, 2, 0, cost=2.0).cost[0] == 2.0


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("nothing", 5, 2, 0), "family"),
        (("uniform-ball", 0, 2, 0), "agents"),
        (("uniform-ball", 10**9, 2, 0), "agents"),
        (("uniform-ball", 5, 10**12, 0), "agents"),
        (("uniform-ball", 5, 0, 0), "rank"),
        (("uniform-ball", 5, 2, -1), "seed"),
        (("adversarial", 5, 1, 0), "rank"),
        (("example1", 5, 3, 0), "rank"),
    ],
)
def test_bad_arguments(arguments, field):
    with pytest.raises(InputError) as error:
        make_instance(*arguments)
    assert error.value.field == field


# The digests before families took norms and prices.
DIGESTS = {
    "costs": "9a997ef01421423fe0e37d3c256b0e447e12ddf334012d2cdd59f7f48214334b",
    "gaussian-mixture": "1d0f4170e8b902556903608d8a8d75df10262446d030e5f6f4a2ee650172b8b7",
    "ties": "0dc5700aaa7c4e2dc6410a0514a94258b523fe26b33bfa0eeed37d642f63629e",
}


@pytest.mark.parametrize("family", DIGESTS)
def test_old_names_are_the_old_instances(family):
    assert make_instance(family, 20, 3, 5).digest == DIGESTS[family]
    assert named(f"{family}-m20-k3-s5").digest == DIGESTS[family]


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
@pytest.mark.parametrize("effort", [None, "spread"])
@pytest.mark.parametrize("family", FAMILIES)
def test_names_say_norm_and_prices(family, norm, effort, tmp_path):
    made = make_instance(family, 12, 2, 7, norm=norm, effort=effort)
    suffix = f"-{norm}" * (norm != "l2") + "-priced" * (effort is not None)
    assert made.name == f"{family}-m12-k2-s7{suffix}"
    assert made.costs.norm == norm
    again = named(made.name)
    assert (again.digest, again.source) == (made.digest, made.source)
    made.save(tmp_path / "a.json")
    assert Instance.load(tmp_path / "a.json").digest == made.digest


@pytest.mark.parametrize(
    "name",
    [
        "ties-m5-k2-s1-l2", "ties-m5-k2-s1-l3", "ties-m5-k2-s1-priced-l1", "ties-m5-k2-s1-prices",
        "ties-m5-k2-s1-", "ties-m5-k2-s1-l1.json",
    ],
)  # fmt: skip
def test_other_names_are_no_instances(name):
    assert named(name) is None


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_a_priced_sample_is_the_same_in_units_of_cost(family, norm):
    """Rules in the units of cost gain what they gain without prices."""
    plain = make_instance(family, 30, 4, 3, norm=norm)
    priced = make_instance(family, 30, 4, 3, norm=norm, effort="spread")
    prices = priced.costs.prices(5)
    assert sorted(prices)[0] == 0.01
    assert sorted(prices)[-1] == 100
    assert prices[4] == 1
    assert priced.agents * prices == pytest.approx(plain.agents, rel=1e-12, abs=1e-5)
    assert priced.quality / prices == pytest.approx(plain.quality, rel=1e-12)
    assert (priced.weights == plain.weights).all()
    rng = np.random.default_rng(1)
    for weights in rng.standard_normal((5, 4)):
        w = np.append(weights, 0.0)
        gain = best_threshold(plain, Mechanism(tuple(w.tolist()), 0.0)).gain
        same = best_threshold(priced, Mechanism(tuple((w * prices).tolist()), 0.0)).gain
        assert float(same) == pytest.approx(float(gain), rel=1e-4, abs=1e-9)


def test_prices_are_given_for_visible_features():
    made = make_instance("ties", 9, 3, 1, hidden=2, effort=[1, 2, 0.5])
    assert made.costs.prices(5).tolist() == [1, 2, 0.5, 1, 1]
    assert made.name == "ties-m9-k3-s1-prices"
    assert "--hidden 2 --effort 1,2,0.5`" in made.source
    # The sample stays as it is; only moves have prices.
    assert (made.agents == make_instance("ties", 9, 3, 1, hidden=2).agents).all()


def test_prices_differ_between_seeds_and_one_feature_has_one():
    drawn = {tuple(make_instance("ties", 3, 4, seed, effort="spread").costs.effort) for seed in
             range(9)}  # fmt: skip
    assert len(drawn) > 5
    assert make_instance("ties", 3, 1, 0, effort="spread").costs.effort.tolist() == [0.01, 1]
    assert make_instance("gaussian-mixture", 5, 2, 0, effort="spread").smoothing is None


@pytest.mark.parametrize(
    ("family", "options", "said"),
    [
        ("ties", {"effort": "spred"}, "effort: is 'spred'; give a list of prices"),
        ("ties", {"effort": [1]}, "effort: has 1 numbers, 2 expected: a price per visible"),
        ("ties", {"effort": [1, 0]}, "effort, row 1: has the price 0 for 'x1'"),
        ("ties", {"effort": [1, "a"]}, "effort: holds values of type"),
        ("ties", {"effort": 2}, "effort: has 0 dimensions; give a list"),
        ("ties", {"norm": "l3"}, "norm: is the text 'l3'; give"),
        ("example1", {"norm": "l1"}, "norm: is for families that are drawn from a seed"),
        ("example1", {"effort": "spread"}, "effort: is for families that are drawn from a seed"),
    ],
)
def test_bad_norms_and_prices(family, options, said):
    with pytest.raises(InputError) as error:
        make_instance(family, 5, 2, 0, **options)
    assert said in str(error.value)

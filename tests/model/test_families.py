"""Families: seeded, of the sizes asked for, and what they claim to be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mipmech import InputError, Instance, Mechanism, best_threshold, make_instance, theory
from mipmech.model import FAMILIES, example1
from mipmech.model.families import gaussian_mixture
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

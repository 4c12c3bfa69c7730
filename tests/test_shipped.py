"""The shipped instances: they load, they are what build.py makes, their known values are true."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from instances.build import LARGE, with_known
from instances.certify import (
    FRACTIONS,
    certified,
    certified_density,
    verdict_on_density,
    verdict_on_gain,
)
from mipmech import Budget, Instance, best_threshold, make_instance, theory
from mipmech.model import FAMILIES, Known, reduce
from mipmech.model.costs.facets import facets_of
from mipmech.oracles.registry import REGISTRY, oracle_class, oracle_named
from tests import costs_brute_force, referee
from tests.conftest import ROOT

FOLDER = ROOT / "instances"
FILES = sorted(path for path in FOLDER.glob("*/*.json") if path.parent.name != "large")
# What oracles are compared on: files, and family, agents, rank and seed of what is not stored.
LIBRARY = [path for path in FILES if path.parent.name not in ("tiny", "paper")] + LARGE
NAMES = [e.stem if isinstance(e, Path) else "{}-m{}-k{}-s{}".format(*e) for e in LIBRARY]
HEURISTICS = [name for name in REGISTRY if getattr(oracle_class(name), "randomised", False)]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_each_loads_and_its_known_value_holds(path):
    instance = Instance.load(path)
    assert instance.path == path
    rule = theory.projection_rule(instance)
    if instance.known is None:
        return
    if rule is not None:
        rounding = 1e-14 * abs(instance.agents).max()
        assert float(rule.recount.gain) <= instance.known.upper + rounding
        by_hand = path.parent.name == "tiny" and instance.costs.plain
        if by_hand and (instance.view.columns is None or instance.view.rank > 2):
            # Beyond the referee: there the rule along P w_f is known to be best.
            assert float(rule.recount.gain) == pytest.approx(instance.known.lower)
    small = instance.size <= 100 and instance.view.columns is not None and instance.view.rank <= 2
    if small and instance.costs.norm != "l2":
        best = costs_brute_force.best_gain(instance)
        assert instance.known.lower <= best.at_most * (1 + 1e-9)
        assert best.surely <= instance.known.upper * (1 + 1e-9)
    elif small and instance.costs.matrix is None:
        best = referee.best_gain(costs_brute_force.euclidean(instance))
        assert instance.known.lower * (1 - 1e-9) <= best <= instance.known.upper * (1 + 1e-9)


# Quick to prove, of every family and folder.
PROVED_AGAIN = [
    "paper/example1", "paper/example1-m1000", "tiny/cloud", "tiny/far-away", "tiny/weights",
    "real/satgpa-view", "real/first-year-costs", "real/medical",
    "small/gaussian-mixture-m12-k3-s15", "small/uniform-ball-m50-k3-s3",
    "small/heavy-tails-m30-k5-s6", "small/ties-m24-k6-s20",
    "small/clustered-lines-m50-k4-s19", "small/adversarial-m50-k4-s21", "small/costs-m50-k3-s13",
    "medium/gaussian-mixture-m500-k3-s31", "medium/costs-m250-k4-s40",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVED_AGAIN)
def test_known_values_are_proved_again(name):
    """`make known` does this for all of them."""
    instance = Instance.load(FOLDER / f"{name}.json")
    assert verdict_on_gain(certified(instance, 60.0), instance.known) == "agrees"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROVED_AGAIN if not name.startswith("tiny")])
def test_known_densities_are_proved_again(name):
    """At one η each; `make known` does this for all of them."""
    instance = Instance.load(FOLDER / f"{name}.json")
    fraction = FRACTIONS[PROVED_AGAIN.index(name) % len(FRACTIONS)]
    bounds = instance.known.density(fraction)
    if bounds is None:
        assert name == "paper/example1"  # known by hand
        return
    assert verdict_on_density(certified_density(instance, fraction, 60.0), *bounds) == "agrees"


def test_a_wrong_known_density_would_be_noticed():
    instance = Instance.load(FOLDER / "small/uniform-ball-m50-k3-s3.json")
    found = certified_density(instance, 0.6, 60.0)
    lower, upper = instance.known.density(0.6)
    assert verdict_on_density(found, lower, upper) == "agrees"
    assert verdict_on_density(found, lower / 2, lower / 1.1) == "DISAGREES"
    assert verdict_on_density(found, upper * 1.1, upper * 1.2) == "DISAGREES"
    assert verdict_on_density(found, lower, upper * 1.2) == "agrees"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.03, pytest.param(0.3, marks=pytest.mark.long)])
@pytest.mark.parametrize("which", range(len(LIBRARY)), ids=NAMES)
def test_no_heuristic_is_above_what_was_proved(which, seconds):
    """On the whole library: densities at one η for each, and the gain that they lead to."""
    entry = LIBRARY[which]
    instance = (
        Instance.load(entry) if isinstance(entry, Path) else with_known(make_instance(*entry))
    )
    geometry = reduce(instance)
    if geometry.norm != "l2":
        _hold_on_facets(instance, seconds, which)
        return
    for number, name in enumerate(HEURISTICS):
        fraction = FRACTIONS[(which + number) % len(FRACTIONS)]
        bounds = instance.known.density(fraction)
        if bounds is None:
            assert instance.view.rank == 1  # no direction has this η
            continue
        _, upper = bounds
        heuristic = oracle_named(name, seed=which, rounds=None)
        found = heuristic(geometry, fraction * geometry.p_norm, Budget(seconds))
        assert 0 < found.density <= upper
        assert best_threshold(instance, found.mechanism).gain <= instance.known.upper


def _hold_on_facets(instance, seconds, seed):
    """The same where the facets of greatest rate are what η is elsewhere."""
    geometry = reduce(instance)
    rates = [float(facet.rate) for facet in facets_of(instance)[:2] if facet.rate > 0]
    for number, name in enumerate(HEURISTICS):
        if not oracle_class(name).facets:
            continue
        eta = rates[number % len(rates)]
        upper = oracle_named("cells")(geometry, eta, Budget(60.0)).upper
        found = oracle_named(name, seed=seed, rounds=None)(geometry, eta, Budget(seconds))
        assert 0 < found.density <= upper
        assert best_threshold(instance, found.mechanism).gain <= instance.known.upper


def test_a_wrong_known_value_would_be_noticed():
    instance = Instance.load(FOLDER / "small/uniform-ball-m50-k3-s3.json")
    found = certified(instance, 60.0)
    lower, upper = instance.known.lower, instance.known.upper
    assert verdict_on_gain(found, Known(lower / 2, lower / 1.1, "too low")) == "DISAGREES"
    assert verdict_on_gain(found, Known(upper * 1.1, upper * 2, "too high")) == "DISAGREES"
    assert verdict_on_gain(found, Known(lower, upper * 2, "wide")) == "agrees"


def test_the_library_is_worth_comparing_on():
    stored = [Instance.load(path) for path in FILES]
    large = [make_instance(*member) for member in LARGE]
    assert len(stored) + len(large) >= 40
    known = json.loads((FOLDER / "known.json").read_text())
    assert all(i.known is not None for i in stored)
    assert all(i.digest in known for i in large)
    families = {name: [] for name in FAMILIES}
    for instance in [*stored, *large]:
        for name, members in families.items():
            if instance.name.startswith(f"{name}-m"):
                members.append(instance)
    assert all(len(members) >= 2 for members in families.values())
    ranks = {i.view.rank for members in families.values() for i in members}
    assert ranks == {2, 3, 4, 5, 6, 7, 8}
    sizes = [i.size for members in families.values() for i in members]
    assert (min(sizes), max(sizes)) == (12, 5000)
    open_ = [entry["name"] for entry in known.values() if "; open: " in entry["how"]]
    assert len(open_) <= 4
    for lower, upper in (entry["gain"] for entry in known.values()):
        assert 0 < lower <= upper


def test_folders_hold_what_they_should():
    tiny = [Instance.load(p) for p in FILES if p.parent.name == "tiny"]
    assert len(tiny) >= 10
    assert all(i.size <= 12 and i.known is not None for i in tiny)
    real = [Instance.load(p) for p in FILES if p.parent.name == "real"]
    assert all("Data: " in i.source and "least squares" in i.source for i in real)
    assert {i.size for i in real} == {1000, 219, 54}
    for path in FILES:
        assert json.loads(path.read_text())["format"] == "mipmech/instance@1"


def test_build_makes_what_is_shipped(tmp_path):
    runpy.run_path(str(FOLDER / "build.py"))["build"](tmp_path)
    made = {p.relative_to(tmp_path) for p in tmp_path.glob("*/*")}
    shipped = {
        p.relative_to(FOLDER)
        for p in FOLDER.glob("*/*")
        if p.suffix in (".json", ".csv") and p.parent.name != "large"
    }
    assert made == shipped
    for path in FILES:
        again = Instance.load(tmp_path / path.relative_to(FOLDER))
        shipped_one = Instance.load(path)
        assert again.digest == shipped_one.digest
        assert (again.name, again.source) == (shipped_one.name, shipped_one.source)
        assert again.units == shipped_one.units
        if shipped_one.known is not None:
            assert again.known.how == shipped_one.known.how
            assert again.known.upper == pytest.approx(shipped_one.known.upper)


@pytest.mark.parametrize(
    ("name", "raw", "columns"),
    [
        ("satgpa-view", "satgpa", ["sat_v", "sat_m", "hs_gpa"]),
        ("first-year", "first_year_gpa", ["HSGPA", "SATV", "SATM", "HU", "SS"]),
    ],
)
def test_units_lead_back_to_the_raw_tables(name, raw, columns):
    sample = Instance.load(FOLDER / "real" / f"{name}.json")
    table = Instance.from_csv(
        FOLDER / "real/raw" / f"{raw}.csv", quality={columns[0]: 1}, visible=columns, cost=1,
        features=columns,
    )  # fmt: skip
    back = np.array(sample.units.centre) + sample.agents * sample.units.scale
    assert sample.feature_names == table.feature_names
    assert back == pytest.approx(table.agents, rel=1e-3, abs=1e-3)


def test_the_example_of_a_file_is_good(tmp_path):
    (example,) = re.findall(r"```json\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    (tmp_path / "students.csv").write_text(
        "student,group,sat,gpa,essay,price\nAnn,a,640,3.5,4,2\nBob,b,500,2.5,2,3\n"
    )
    (tmp_path / "a.json").write_text(example)
    sample = Instance.load(tmp_path / "a.json")
    assert sample.quality.tolist() == [0.002, 0.5, 0]
    assert sample.ids == ("Ann", "Bob")


def test_every_folder_is_described():
    text = (FOLDER / "README.md").read_text()
    for name in (
        *FAMILIES,
        "tiny",
        "small",
        "medium",
        "large",
        "paper",
        "real",
        "digest",
        "CC BY-SA 3.0",
        "STAT2",
    ):
        assert name in text

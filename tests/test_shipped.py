"""The shipped instances: they load, they are what build.py makes, their known values are true."""

from __future__ import annotations

import json
import runpy

import pytest

from mipmech import Instance, theory
from tests import referee
from tests.conftest import ROOT

FOLDER = ROOT / "instances"
FILES = sorted(FOLDER.glob("*/*.json"))


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
        if instance.view.columns is None or instance.view.rank > 2:
            # Beyond the referee: there the rule along P w_f is known to be best.
            assert float(rule.recount.gain) == pytest.approx(instance.known.lower)
    if instance.view.columns is not None and instance.view.rank <= 2:
        best = referee.best_gain(instance)
        assert instance.known.lower * (1 - 1e-9) <= best <= instance.known.upper * (1 + 1e-9)


def test_folders_hold_what_they_should():
    tiny = [Instance.load(p) for p in FILES if p.parent.name == "tiny"]
    assert len(tiny) >= 10
    assert all(i.size <= 12 and i.known is not None for i in tiny)
    real = [Instance.load(p) for p in FILES if p.parent.name == "real"]
    assert all("Data: " in i.source and "least squares" in i.source for i in real)
    assert {i.size for i in real} == {1000, 219, 54}
    assert {Instance.load(p).view.rank for p in FILES if p.parent.name == "small"} >= {
        2,
        3,
        4,
        5,
        6,
        8,
    }
    for path in FILES:
        assert json.loads(path.read_text())["format"] == "mipmech/instance@1"


def test_build_makes_what_is_shipped(tmp_path):
    runpy.run_path(str(FOLDER / "build.py"))["build"](tmp_path)
    made = {p.relative_to(tmp_path) for p in tmp_path.glob("*/*")}
    shipped = {p.relative_to(FOLDER) for p in FOLDER.glob("*/*") if p.suffix in (".json", ".csv")}
    assert made == shipped
    for path in FILES:
        again = Instance.load(tmp_path / path.relative_to(FOLDER))
        shipped_one = Instance.load(path)
        assert again.digest == shipped_one.digest
        assert (again.name, again.source) == (shipped_one.name, shipped_one.source)
        if shipped_one.known is not None:
            assert again.known.how == shipped_one.known.how
            assert again.known.upper == pytest.approx(shipped_one.known.upper)


def test_every_folder_is_described():
    text = (FOLDER / "README.md").read_text()
    for name in ("tiny", "small", "paper", "real", "digest", "CC BY-SA 3.0", "STAT2"):
        assert name in text

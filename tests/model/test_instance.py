"""Instance files: one digest for one sample, loss-free saving, frames."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given, settings

from mipmech import InputError, Instance
from mipmech.model import Known, Smoothing
from tests.samples import instances


def write(folder, name="a.json", **fields):
    path = folder / name
    path.write_text(json.dumps({"format": "mipmech/instance@1", "name": "test", **fields}))
    return path


BASE = {"agents": [[1, 2.5], [0.1, -0.0]], "quality": [1, 1], "visible": [0], "cost": 2}


def same(a, b):
    return (
        np.array_equal(a.agents, b.agents)
        and np.array_equal(a.quality, b.quality)
        and np.array_equal(a.cost, b.cost)
        and np.array_equal(a.weights, b.weights)
        and np.array_equal(a.view.matrix, b.view.matrix)
        and (a.name, a.quality_offset, a.smoothing, a.known, a.source)
        == (b.name, b.quality_offset, b.smoothing, b.known, b.source)
    )


def test_inline_csv_and_npy_have_one_digest(tmp_path):
    inline = Instance.load(write(tmp_path, **BASE))
    (tmp_path / "t.csv").write_text('\ufeffalpha,"be,ta"\r\n1,2.5\r\n0.1,-0.0\r\n')
    np.save(tmp_path / "t.npy", np.array(BASE["agents"]))
    by_csv = Instance.load(write(tmp_path, **{**BASE, "agents": {"csv": "t.csv"}}))
    by_npy = Instance.load(write(tmp_path, **{**BASE, "agents": {"npy": "t.npy"}}))
    assert inline.digest == by_csv.digest == by_npy.digest
    assert by_csv.features == ("alpha", "be,ta")
    named = Instance.load(
        write(tmp_path, **{**BASE, "agents": {"csv": "t.csv"}, "visible": ["alpha"]})
    )
    assert named.digest == inline.digest


def test_what_does_not_count_does_not_change_the_digest(tmp_path):
    digest = Instance.load(write(tmp_path, **BASE)).digest
    for extra in (
        {"known": {"gain": [0, 1], "how": "guess"}},
        {"name": "other"},
        {"source": "somewhere\nelse"},
        {"features": ["a", "b"]},
        {"weights": [1, 1]},
        {"cost": [2, 2]},
        {"quality_offset": -0.0},
    ):
        assert Instance.load(write(tmp_path, **{**BASE, **extra})).digest == digest
    view = {k: v for k, v in BASE.items() if k != "visible"}
    assert Instance.load(write(tmp_path, **view, view=[[1, 0]])).digest == digest


@pytest.mark.parametrize(
    "change",
    [
        {"agents": [[1, 2.5], [0.1, 1e-300]]},
        {"agents": [[0.1, 0], [1, 2.5]]},
        {"quality": [1, 2]},
        {"quality_offset": 1},
        {"visible": [1]},
        {"cost": 3},
        {"weights": [1, 2]},
        {"smoothing": {"sigma": 1, "radius": 1}},
    ],
)
def test_what_counts_changes_the_digest(tmp_path, change):
    digest = Instance.load(write(tmp_path, **BASE)).digest
    assert Instance.load(write(tmp_path, **{**BASE, **change})).digest != digest


def test_the_digest_is_the_documented_one():
    """Written out by hand, so that other programs can compute it from instances/README.md."""
    import hashlib
    import struct

    sample = Instance.from_arrays([[1.0, -0.0]], [0.5, 2.0], visible=[1], cost=4.0)
    numbers = [1.0, 0.0, 0.5, 2.0, 0.0, 4.0, 1.0, 0.0, 1.0]
    data = b"mipmech/instance@1" + struct.pack("<4q", 1, 2, 1, 0) + struct.pack("<9d", *numbers)
    assert sample.digest == hashlib.sha256(data).hexdigest()


@settings(max_examples=60)
@given(instances())
def test_saving_loses_nothing(tmp_path_factory, sample):
    folder = tmp_path_factory.mktemp("save")
    for kind in ("inline", "csv", "npy"):
        path = folder / f"{kind}.json"
        sample.save(path, kind)
        again = Instance.load(path)
        assert again.digest == sample.digest
        assert same(again, sample)
    assert sorted(p.name for p in folder.iterdir()) == [
        "csv.csv", "csv.json", "inline.json", "npy.json", "npy.npy",
    ]  # fmt: skip


def test_every_field_survives(tmp_path):
    sample = Instance.from_arrays(
        [[0.1, 1e-17], [1 / 3, -7e22]],
        [1.0, 0.0],
        view=[[1.0, 2.0], [2.0, 4.0]],
        cost=[1.0, 2.5],
        weights=[0.0, 3.0],
        quality_offset=-1.5,
        features=['quo"ted', "with, comma"],
        name="ünïcode",
        smoothing=Smoothing(0.5, 2.0),
        source="two\nlines",
        known=Known(0.25, 0.5, "by hand", ((0.6, 0.25, 0.5), (-0.3, 0.1, 1.0))),
    )
    for kind in ("inline", "csv", "npy"):
        sample.save(tmp_path / "x.json", kind)
        again = Instance.load(tmp_path / "x.json")
        assert same(again, sample)
        assert again.features == sample.features
        assert again.path == tmp_path / "x.json"


@pytest.mark.parametrize(
    ("densities", "said"),
    [
        (0.5, "is 0.5; give [[fraction"),
        ({"0.6": [0, 1]}, "give [[fraction"),
        ([0.6, 0, 1], "is 0.6; expected a list"),
        ([[0.6, 0.5]], "must be [fraction"),
        ([[0.6, 0.5, 0.4]], "must be [fraction"),
        ([[1.5, 0.5, 0.6]], "must be [fraction"),
        ([[0.6, -0.1, 0.6]], "must be [fraction"),
        ([[0.6, 0.5, 1.1]], "must be [fraction"),
        ([[0.6, 0.5, True]], "true"),
        ([[0.6, 0.5, 0.7], [0.6, 0.5, 0.6]], "0.6 twice"),
    ],
)
def test_densities_that_nobody_can_know(tmp_path, densities, said):
    known = {"gain": [0, 1], "how": "guess", "densities": densities}
    with pytest.raises(InputError) as error:
        Instance.load(write(tmp_path, **BASE, known=known))
    assert error.value.field == "known.densities"
    assert said in str(error.value)


def test_a_projection_becomes_a_view():
    p = np.full((2, 2), 0.5)
    sample = Instance.from_arrays([[1.0, 2.0]], [1.0, 0.0], projection=p, cost=1.0)
    assert sample.view.rank == 1
    assert sample.view.matrix.tolist() == [[0.5, 0.5]]
    whole = Instance.from_arrays([[1.0, 2.0]], [1.0, 0.0], projection=np.eye(2), cost=1.0)
    assert whole.view.columns == (0, 1)


def test_arrays_are_read_only_and_not_shared():
    agents = np.zeros((1, 1))
    sample = Instance.from_arrays(agents, [1.0], visible=[0], cost=1.0)
    agents[0, 0] = 5
    assert sample.agents[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        sample.agents[0, 0] = 1


@pytest.mark.parametrize("library", [pandas, polars])
def test_from_frame(library):
    frame = library.DataFrame(
        {"name": ["a", "b"], "sat": [1.0, 2.0], "gpa": [3, 4], "c": [1.0, 2.0], "w": [1, 3]}
    )
    sample = Instance.from_frame(
        frame, quality={"gpa": 2.0, "sat": 1.0}, visible=["sat"], cost="c", weights="w"
    )
    assert sample.features == ("sat", "gpa")
    assert sample.quality.tolist() == [1.0, 2.0]
    assert sample.agents.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert sample.cost.tolist() == [1.0, 2.0]
    assert sample.weights.tolist() == [1.0, 3.0]
    assert len(sample) == 2
    assert sample.reach.tolist() == [1.0, 0.5]
    with pytest.raises(InputError, match="give a list"):
        Instance.from_frame(frame, quality={"sat": 1.0}, visible="sat", cost=1.0)
    with pytest.raises(InputError, match="must map"):
        Instance.from_frame(frame, quality=[1.0], visible=["sat"], cost=1.0)
    with pytest.raises(InputError, match="not a pandas or polars data frame"):
        Instance.from_frame({"sat": [1.0]}, quality={"sat": 1.0}, visible=["sat"], cost=1.0)
    with pytest.raises(InputError, match="no column 'iq'"):
        Instance.from_frame(frame, quality={"iq": 1.0}, visible=["sat"], cost=1.0)
    with pytest.raises(InputError, match="column 'name'"):
        Instance.from_frame(frame, quality={"name": 1.0}, visible=["sat"], cost=1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agents": [[1.0], [2.0, 3.0]]}, "rows differ in length"),
        ({"agents": [1.0, 2.0]}, "1 dimensions"),
        ({"agents": np.zeros((0, 2))}, "at least one agent"),
        ({"agents": np.zeros((2, 0))}, "no features"),
        ({"agents": [[True, False]]}, "type bool"),
        ({"agents": [["a", "b"]]}, "plain numbers"),
        ({"agents": np.ma.masked_array([[1.0, 2.0]], [[True, False]])}, "masked"),
        ({"agents": [[2**60 + 1, 1]]}, "beyond 2"),
        ({"cost": 10**400}, "too large for a float"),
        ({"cost": True}, "expected a number"),
        ({"cost": None}, "expected a number"),
        ({"visible": None}, "found none"),
        ({"view": [[1.0, 0.0]]}, "found visible and view"),
    ],
)
def test_bad_arrays_are_refused(arguments, message):
    good = {"agents": [[1.0, 2.0]], "quality": [1.0, 1.0], "visible": [0], "cost": 1.0}
    with pytest.raises(InputError, match=message):
        Instance.from_arrays(**{**good, **arguments})


def test_a_table_never_overwrites_its_instance(tmp_path):
    sample = Instance.from_arrays([[1.0]], [1.0], visible=[0], cost=1.0)
    for name, kind, table in (("x.csv", "csv", None), ("x.npy", "npy", None), ("x", "npy", "x")):
        with pytest.raises(InputError, match="another ending"):
            sample.save(tmp_path / name, kind, table)


def test_names_that_are_numbers_are_no_csv_header(tmp_path):
    sample = Instance.from_arrays([[1.0]], [1.0], visible=[0], cost=1.0, features=["7"])
    with pytest.raises(InputError, match="no CSV header"):
        sample.save(tmp_path / "a.json", "csv")
    sample.save(tmp_path / "a.json", "npy")
    assert Instance.load(tmp_path / "a.json").features == ("7",)


def test_saving_follows_links_and_spares_devices(tmp_path):
    sample = Instance.load(write(tmp_path, **BASE))
    (tmp_path / "link.json").symlink_to("a.json")
    sample.save(tmp_path / "link.json", "npy")
    assert (tmp_path / "link.json").is_symlink()
    assert "npy" in (tmp_path / "a.json").read_text()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a plain file"):
        sample.save(tmp_path / "pipe")


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    sample = Instance.load(write(tmp_path, **BASE))
    before = (tmp_path / "a.json").read_bytes()

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match="no space left"):
        sample.save(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]

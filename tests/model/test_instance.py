"""Instance files: one digest for one sample, loss-free saving, frames."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipmech import InputError, Instance
from mipmech.model import Known, Smoothing, Units
from mipmech.model import view as views
from mipmech.theory.projection import gain_ceiling
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
        and (a.ids, a.units) == (b.ids, b.units)
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
        {"ids": ["x", "x"]},
        {"ids": [7, 8]},
        {"units": {"centre": [500, 3], "scale": [100, 0.5]}},
        {"features": ["a", "b"], "quality": {"b": 1, "a": 1}},
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


def test_the_documented_digest_of_costs():
    """What follows the weights and B: "reach", and norm and effort unless moves are Euclidean."""
    import hashlib
    import struct

    def digest(values, *rest):
        numbers = [1.0, 0.0, 0.5, 2.0, 0.0, *values, 1.0, 0.0, 1.0]
        data = b"mipmech/instance@1" + struct.pack("<4q", 1, 2, 1, 0)
        data += struct.pack(f"<{len(numbers)}d", *numbers)
        return hashlib.sha256(b"".join([data, *rest])).hexdigest()

    def made(**costs):
        return Instance.from_arrays([[1.0, -0.0]], [0.5, 2.0], visible=[1], **costs).digest

    sizes, entries = struct.Struct("<2q").pack, struct.pack
    assert made(reach=4.0) == digest([4.0], b"reach")
    assert made(cost=4.0, norm="l1") == digest([4.0], b"l1", sizes(0, 0))
    assert made(cost=4.0, effort=[1, 1], norm="linf") == digest([4.0], b"linf", sizes(0, 0))
    assert made(cost=4.0, effort=[2, 3]) == digest([4.0], b"l2", sizes(1, 2), entries("<2d", 2, 3))
    assert made(reach=4.0, effort=[[2, -0.0], [0, 1]]) == digest(
        [4.0], b"reach", b"l2", sizes(2, 2), entries("<4d", 2, 0, 0, 1)
    )
    assert made(cost=4.0, effort=[1, 1]) == made(cost=4.0, norm="l2") == made(cost=4.0)
    assert made(cost=4.0, effort=[[1, 0], [0, 1]]) == made(cost=4.0)


COSTS = [
    {"reach": 0.3},
    {"reach": [0.1, 0.7]},
    {"cost": 2, "norm": "l1"},
    {"cost": 2, "norm": "linf", "effort": [0.1, 3]},
    {"cost": 2, "effort": [3, 0.1]},
    {"cost": 2, "effort": [[2, -1], [-1, 1]]},
    {"cost": [1, 2], "effort": {"b": 3}, "features": ["a", "b"]},
]


@pytest.mark.parametrize("costs", COSTS, ids=str)
def test_costs_survive_in_every_kind_of_file(tmp_path, costs):
    sample = Instance.from_arrays([[1, 2.5], [0.1, -0.0]], [1, 1], visible=[0], **costs)
    for kind in ("inline", "csv", "npy"):
        sample.save(tmp_path / f"{kind}.json", kind)
        again = Instance.load(tmp_path / f"{kind}.json")
        assert again.digest == sample.digest
        assert (again.costs.norm, again.costs.given) == (sample.costs.norm, sample.costs.given)
        assert again.to_dict().get("effort") == sample.to_dict().get("effort")
    content = json.loads((tmp_path / "inline.json").read_text())
    assert ("norm" in content) == (sample.costs.norm != "l2")
    others = [Instance.from_arrays([[1, 2.5], [0.1, -0.0]], [1, 1], visible=[0], **other).digest
              for other in COSTS]  # fmt: skip
    assert others.count(sample.digest) == 1


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
        ids=["Zoë", "two\nlines \ud800"],
        units=Units((500.0, 0.1), (1 / 3, 1e-9)),
    )
    for kind in ("inline", "csv", "npy"):
        sample.save(tmp_path / "x.json", kind)
        again = Instance.load(tmp_path / "x.json")
        assert same(again, sample)
        assert again.features == sample.features
        assert again.path == tmp_path / "x.json"


MESSY = "id,group,sat,gpa,price,n\nZoë_1,a,700,3.5,2,1\nBo,b,650,2.5,3,4\n"


def test_a_csv_file_may_hold_more_than_features(tmp_path):
    (tmp_path / "t.csv").write_text(MESSY)
    by_column = Instance.load(
        write(
            tmp_path, agents={"csv": "t.csv"}, features=["gpa", "sat"], visible=["sat"],
            quality={"gpa": 0.5}, cost={"column": "price"}, weights={"column": "n"},
            ids={"column": "id"},
        )
    )  # fmt: skip
    inline = Instance.from_arrays(
        [[3.5, 700], [2.5, 650]], [0.5, 0.0], visible=[1], cost=[2, 3], weights=[1, 4]
    )
    assert by_column.digest == inline.digest
    assert by_column.features == ("gpa", "sat")
    assert [by_column.agent_name(i) for i in range(2)] == ["Zoë_1", "Bo"]


def test_columns_for_cost_weights_and_ids_are_no_features_unless_listed(tmp_path):
    (tmp_path / "t.csv").write_text("id,sat,price\nZoë_1,700,2\nBo,650,3\n")
    named = {"cost": {"column": "price"}, "ids": {"column": "id"}, "agents": {"csv": "t.csv"}}
    without = Instance.load(write(tmp_path, quality=[1], visible=["sat"], **named))
    assert without.features == ("sat",)
    listed = {"features": ["price", "sat"], "quality": {"sat": 1}, "visible": ["price"]}
    assert Instance.load(write(tmp_path, **listed, **named)).agents.tolist() == [[2, 700], [3, 650]]


@given(st.permutations(range(4)), st.integers(1, 4))
def test_a_selection_of_columns_is_the_matrix_without_the_others(tmp_path_factory, order, width):
    folder = tmp_path_factory.mktemp("select")
    agents = np.random.default_rng(5).standard_normal((6, 4))
    lines = [f"é,{a!r},_,{b!r},{c!r},{d!r}" for a, b, c, d in agents.tolist()]
    (folder / "t.csv").write_text("\n".join(["text,f0,more,f1,f2,f3", *lines]))
    chosen = order[:width]
    rest = {"features": [f"f{j}" for j in chosen], "quality": [1] * width, "visible": [0]}
    found = Instance.load(write(folder, agents={"csv": "t.csv"}, cost=1, **rest))
    assert np.array_equal(found.agents, agents[:, chosen])


def test_names_of_agents_are_fit_to_print():
    ids = ["two\nlines\x1b[31m", "x" * 100, 12]
    sample = Instance.from_arrays([[1.0]] * 3, [1.0], visible=[0], cost=1.0, ids=ids)
    shown = [sample.agent_name(i) for i in range(3)]
    assert all(name.isprintable() and len(name) <= 40 for name in shown)
    assert shown[2] == "12"
    assert Instance.from_arrays([[1.0]], [1.0], visible=[0], cost=1.0).agent_name(0) == "0"


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
    twice = pandas.DataFrame([[1, 2]], columns=["sat", "sat"])
    with pytest.raises(InputError, match="several columns have that name"):
        Instance.from_frame(twice, quality={"sat": 1.0}, visible=["sat"], cost=1.0)
    with pytest.raises(InputError, match="no column 'price'"):
        Instance.from_frame(frame, quality={"sat": 1.0}, visible=["sat"], cost="price")
    named = Instance.from_frame(frame, quality={"sat": 1}, visible=["sat"], cost=1, ids="name")
    assert named.ids == ("a", "b")


@pytest.mark.parametrize("library", [pandas, polars])
def test_a_frame_takes_a_view(library):
    frame = library.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0], "c": [0.0, 1.0]})
    given = {"quality": {"b": 1.0}, "cost": 1.0}
    rows = Instance.from_frame(frame, view=[{"a": 1, "c": 2}, {"b": 1}], **given)
    assert rows.view.matrix.tolist() == [[1, 0, 2], [0, 1, 0]]
    matrix = Instance.from_frame(frame, view=[[1, 0], [0, 2]], features=["c", "b"], **given)
    assert matrix.features == ("c", "b")
    assert matrix.view.matrix.tolist() == [[1, 0], [0, 2]]
    for view, said in (
        ([[1, 0]], "give 'features' with it"),
        ([{"d": 1}], "no column 'd'"),
        ([{"a": "1"}], "expected a number"),
        ([{"a": 1}, [1, 0]], "has rows of two kinds"),
        ({"a": 1}, "is an object; give a list"),
        ("ab", "is the text 'ab'; give a list"),
        (3, "is 3; give a list"),
        ([], "is an array; give 'features' with it"),
    ):
        with pytest.raises(InputError, match=said):
            Instance.from_frame(frame, view=view, **given)
    with pytest.raises(InputError, match="found visible and view"):
        Instance.from_frame(frame, view=[{"a": 1}], visible=["a"], **given)
    with pytest.raises(InputError, match="1 numbers, 2 expected"):
        Instance.from_frame(frame, view=[[1]], features=["c", "b"], **given)


def test_the_index_of_a_frame_names_the_agents():
    given = {"quality": {"x": 1.0}, "visible": ["x"], "cost": 1.0}
    frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0]})
    assert Instance.from_frame(frame, **given).ids is None
    assert Instance.from_frame(frame[frame.x > 1], **given).ids == ("1", "2")
    assert Instance.from_frame(frame.set_axis(["p", "q", "r"]), **given).ids == ("p", "q", "r")
    days = pandas.date_range("2026-01-01", periods=3)
    assert Instance.from_frame(frame.set_axis(days), **given).ids[0].startswith("2026-01-01")
    assert Instance.from_frame(frame.set_axis(days), ids="x", **given).ids == ("1.0", "2.0", "3.0")
    pairs = pandas.MultiIndex.from_tuples([("a", 1), ("b", 2), ("c", 3)])
    assert Instance.from_frame(frame.set_axis(pairs), **given).ids == ("a, 1", "b, 2", "c, 3")
    numbered = pandas.DataFrame(np.eye(2))
    assert Instance.from_frame(numbered, quality={"0": 1}, visible=["1"], cost=1).width == 2


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["1", "2"], "agents, row 0: column 'x': holds the text '1'; make it numbers"),
        ([1, "2"], "agents, row 1: column 'x': holds the text '2'"),
        ([1.0, None], "agents, row 1: has no number under 'x'; fill in what is missing, or leave"),
        (pandas.array([1, None], dtype="Int64"), "agents, row 1: has no number under 'x'"),
        ([True, False], "column 'x': holds values of type bool"),
        ([], "agents: is empty"),
    ],
)
@pytest.mark.parametrize("standardise", [False, True])
def test_columns_of_a_frame_that_are_no_numbers(column, said, standardise):
    given = {"quality": {"x": 1}, "visible": ["x"], "cost": 1, "standardise": standardise}
    with pytest.raises(InputError) as error:
        Instance.from_frame(pandas.DataFrame({"x": column}), **given)
    assert said in str(error.value)
    whole = pandas.DataFrame({"x": pandas.array([1, 2], dtype="Int64")})
    assert Instance.from_frame(whole, **given).width == 1


def test_standardised_features_leave_quality_and_rules_as_they_were(tmp_path):
    rng = np.random.default_rng(7)
    sat, gpa = rng.normal(500, 100, 50), rng.normal(3, 0.5, 50)
    frame = pandas.DataFrame({"sat": sat, "gpa": gpa})
    given = {"quality": {"sat": 0.002, "gpa": 0.7}, "quality_offset": 2.0, "cost": 2.0}
    view = [{"sat": 1.0, "gpa": 100.0}]
    plain = Instance.from_frame(frame, view=view, **given)
    made = Instance.from_frame(frame, view=view, standardise=True, **given)
    assert made.agents.mean(axis=0) == pytest.approx([0, 0])
    assert made.agents.std(axis=0) == pytest.approx([1, 1])
    back = np.array(made.units.centre) + made.agents * made.units.scale
    assert back == pytest.approx(plain.agents)
    quality = made.agents @ made.quality - made.quality_offset
    assert quality == pytest.approx(plain.agents @ plain.quality - 2.0)
    seen = (made.agents @ made.view.matrix.T).ravel()
    assert np.diff(seen) == pytest.approx(np.diff((plain.agents @ plain.view.matrix.T).ravel()))
    made.save(tmp_path / "a.json")
    assert same(Instance.load(tmp_path / "a.json"), made)
    frame["flat"] = 0.1
    with pytest.raises(InputError, match=r"'flat' = 0.1 for everyone"):
        Instance.from_frame(frame, visible=["flat"], standardise=True, **given)
    with pytest.raises(InputError, match="give 'view'"):
        Instance.from_frame(frame, projection=np.full((2, 2), 0.5), standardise=True, **given)


# What people have, all of it the table of MESSY.
WRITTEN = {
    "commas": MESSY,
    "a byte-order mark": "\ufeff" + MESSY,
    "old line ends": MESSY.replace("\n", "\r\n"),
    "semicolons": MESSY.replace(",", ";"),
    "decimal commas": MESSY.replace(",", ";").replace(".", ","),
    "tabs": MESSY.replace(",", "\t"),
    "quotes": MESSY.replace("700", '"700"'),
    "decimal commas in quotes": MESSY.replace("3.5", '"3,5"').replace("2.5", '"2,5"'),
    "semicolons and points": MESSY.replace(",", ";").replace("700", "700.00"),
    "blank lines": MESSY.replace("\nBo", "\n\n,,,,,\nBo"),
    "blanks around": MESSY.replace(",", " , "),
    "a line for Excel": "sep=;\n" + MESSY.replace(",", ";"),
    "marks in quotes": MESSY.replace("group,", '"group; a;b;c;d;e;f",'),
    "an index": "\n".join(f"{i - 1 if i else ''},{s}" for i, s in enumerate(MESSY.splitlines())),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_from_csv_reads_what_people_have(tmp_path, kind):
    (tmp_path / "t.csv").write_text(WRITTEN[kind], newline="")
    sample = Instance.from_csv(
        tmp_path / "t.csv", quality={"gpa": 0.5, "sat": 1}, visible=["sat"], cost="price",
        weights="n", ids="id",
    )  # fmt: skip
    assert sample.agents.tolist() == [[700, 3.5], [650, 2.5]]
    assert (sample.features, sample.ids) == (("sat", "gpa"), ("Zoë_1", "Bo"))
    assert (sample.cost.tolist(), sample.weights.tolist()) == ([2, 3], [1, 4])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x;y\n1,234;2\n5,678;3\n", "has '1,234' under 'x'; expected a plain number"),
        ("x;y\n1.234;2,5\n5.678;3\n", "has '1.234' under 'x', which may be read in two ways"),
        ("x;y\n1.234;2\n900;3\n", "write 1234 or 1.2340, and all of the column so"),
        ("x;y\n1.234,5;2,5\n5;3\n", "has '1.234,5' under 'x'; expected a plain number"),
        ("x,y\n1,5,2,5\n", "has 4 cells, the header has 2; fill or remove it, or write points"),
        (
            "x,y\n1,2\n,3\nNA,4\n",
            "agents, line 3: has no number under 'x', and 1 more row with gaps",
        ),
        ("x,y\n1,2,3\n", "has 3 cells, the header has 2"),
        ('x,y\n"1,2\n', "is not CSV"),
        ("x,x,y\n1,2,3\n", "there are 2 such columns"),
        ("", "is empty; start with a header"),
        ("x,y\n", "has a header but no agents"),
        ("1,2\n3,4\n", "starts with numbers"),
        ("x,z\n1,2\n", "there is no column 'y'"),
    ],
)
def test_csv_files_that_cannot_be_understood(tmp_path, text, said):
    (tmp_path / "t.csv").write_text(text)
    given = {"quality": {"x": 1, "y": 1}, "visible": ["x"], "cost": 1}
    with pytest.raises(InputError) as error:
        Instance.from_csv(tmp_path / "t.csv", **given)
    assert said in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "t.csv"))
    with pytest.raises(InputError, match="cannot be read"):
        Instance.from_csv(tmp_path / "none.csv", **given)


def test_rows_with_gaps_are_left_out_if_asked_for(tmp_path):
    (tmp_path / "t.csv").write_text("id,x,y,note\na,1,2,\nb,,3,\nc,n/a,4,\nd,5,6,\n")
    given = {"quality": {"y": 1}, "visible": ["x"], "cost": 1, "ids": "id", "drop_blank": True}
    assert Instance.from_csv(tmp_path / "t.csv", **given).ids == ("a", "d")
    (tmp_path / "t.csv").write_text("id,x,y\na,,2\nb,1,\n")
    with pytest.raises(InputError, match="gaps in every row"):
        Instance.from_csv(tmp_path / "t.csv", **given)


@pytest.mark.parametrize("source", [pandas.DataFrame, polars.DataFrame, "csv"])
def test_agents_keep_the_numbers_of_their_rows(tmp_path, source):
    columns = {"x": [1.0, None, 3.0, 4.0], "y": [1, 2, 3, 5], "w": [1.0, 1.0, None, 2.0]}
    given = {"quality": {"y": 1}, "visible": ["x"], "drop_blank": True}
    if source == "csv":
        pandas.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)

    def made(**more):
        if source == "csv":
            return Instance.from_csv(tmp_path / "t.csv", **given, **more)
        return Instance.from_frame(source(columns), **given, **more)

    sample = made(cost=1.0, weights="w")
    assert sample.ids == ("0", "3")
    assert sample.agents.tolist() == [[1, 1], [4, 5]]
    assert (sample.name, sample.weights.tolist()) == ("t" if source == "csv" else "unnamed", [1, 2])
    lists = made(cost=[1, 2, 3, 4], ids=["a", "b", "c", "d"], weights=[1, 1, 0, 1], name="n")
    assert (lists.ids, lists.cost.tolist(), lists.name) == (("a", "c", "d"), [1, 3, 4], "n")
    with pytest.raises(InputError, match="has 3 entries, 4 expected: one per row"):
        made(cost=[1, 2, 3])
    with pytest.raises(InputError) as error:
        made(cost=[1, 2, 3, 0])
    assert (error.value.field, error.value.row) == ("cost", 3)
    given["drop_blank"] = False
    with pytest.raises(InputError, match="no number under 'x'"):
        made(cost=1.0)


def test_what_a_frame_refuses_and_takes():
    frame = pandas.DataFrame({"x": pandas.Series([1, 2.5, 3], dtype=object), 7: [1, 2, 4]})
    given = {"quality": {"x": 1, 7: 2}, "visible": [7], "cost": 1}
    sample = Instance.from_frame(frame, **given)
    assert (sample.features, sample.quality.tolist()) == (("x", "7"), [1, 2])
    assert sample.agents.tolist() == [[1, 1], [2.5, 2], [3, 4]]
    for change, said in (
        ({"visible": [0]}, "visible: there is no column '0'"),
        ({"quality": {0: 1}}, "quality: there is no column '0'"),
        ({"cost": "c"}, "cost: there is no column 'c'"),
        ({"weights": "w"}, "weights: there is no column 'w'"),
        ({"features": [9]}, "features: there is no column '9'"),
        ({"features": "x7"}, "features: is the text 'x7'; give a list"),
        ({"standardise": "yes"}, "standardise: is the text 'yes'; give True or False"),
        ({"drop_blank": 1}, "drop_blank: is 1; give True or False"),
        ({"weights": [1, 2]}, "weights: has 2 numbers, 3 expected"),
    ):
        with pytest.raises(InputError) as error:
            Instance.from_frame(frame, **{**given, **change})
        assert str(error.value).startswith(said)
    with pytest.raises(TypeError, match=r"from_frame.*standardize"):
        Instance.from_frame(frame, **given, standardize=True)


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ('"45,000"', "write 45000 (or 45.000)"),
        ('"25.735,92"', "write 25735.92"),
        ("2%", "write 2"),
        ("$2000", "write 2000"),
        ("1 200", "write 1200"),
    ],
)
def test_numbers_as_people_write_them_get_a_remedy(tmp_path, cell, said):
    (tmp_path / "t.csv").write_text(f"x,y\n1,1\n{cell},2\n")
    with pytest.raises(InputError) as error:
        Instance.from_csv(tmp_path / "t.csv", quality={"x": 1}, visible=["x"], cost=1)
    assert str(error.value).endswith(f"expected a plain number; {said}")
    assert "agents, line 3: " in str(error.value)


def test_objects_of_the_file_are_taken_as_they_are():
    given = {"quality": [1.0], "visible": [0], "cost": 1.0}
    objects = {
        "smoothing": {"sigma": 1.0, "radius": 2.0},
        "known": {"gain": [0, 1], "how": "guess"},
        "units": {"centre": [5], "scale": [2]},
    }
    sample = Instance.from_arrays([[1.0]], **given, **objects)
    assert (sample.smoothing, sample.units) == (Smoothing(1.0, 2.0), Units((5.0,), (2.0,)))
    for field in objects:
        with pytest.raises(InputError, match=f"{field}: is an object; give"):
            Instance.from_arrays([[1.0]], **given, **{field: {}})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"agents": "xlsx"}, "agents: is the text 'xlsx'; give 'inline', 'csv' or 'npy'"),
        (
            {"agents": "csv", "table": "sub/x.csv"},
            "table: is 'sub/x.csv'; give a file's name alone",
        ),
    ],
)
def test_what_cannot_be_saved_is_named(tmp_path, arguments, said):
    sample = Instance.from_arrays([[1.0]], [1.0], visible=[0], cost=1.0)
    with pytest.raises(InputError, match=said):
        sample.save(tmp_path / "a.json", **arguments)


@pytest.mark.parametrize("name", ["a,b", "a;b", 'a";"b', ";"])
def test_a_name_with_a_separator_survives_a_table(tmp_path, name):
    sample = Instance.from_arrays([[1.0]], [1.0], visible=[0], cost=1.0, features=[name])
    sample.save(tmp_path / "a.json", "csv")
    assert Instance.load(tmp_path / "a.json").features == (name,)


def test_a_table_is_no_instance(tmp_path):
    (tmp_path / "marks.csv").write_text(MESSY)
    with pytest.raises(InputError, match=r"is a table; 'mipmech new marks.csv' makes an instance"):
        Instance.load(tmp_path / "marks.csv")
    with pytest.raises(InputError, match=r"did you mean 'marks.csv'"):
        Instance.load(tmp_path / "mark.csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"visible": 1}, "visible: is 1; give a list"),
        ({"visible": "b"}, "visible: is the text 'b'; give a list"),
        ({"features": "ab"}, "features: is the text 'ab'; give a list"),
        ({"ids": "ab"}, "ids: is the text 'ab'; give a list"),
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
        ({"cost": None}, "cost: is missing"),
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


def wide(rows, columns):
    """Numbers of very different size, which takes long whole numbers."""
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], (rows, columns))
    powers = -rng.integers(0, 490, (rows, columns))
    return np.ldexp(rng.uniform(0.5, 1, (rows, columns)) * signs, powers)


@pytest.mark.parametrize("rows", [6, 24])
@pytest.mark.parametrize("kind", ["twice", "sum"])
def test_dependent_rows_are_found_without_long_numbers(rows, kind, monkeypatch):
    """By elimination of whole numbers, 50 rows took minutes to read."""
    matrix = wide(rows, 60)
    if kind == "sum":
        matrix[:2] = np.random.default_rng(2).integers(-9, 10, (2, 60))
    matrix[-1] = matrix[0] + matrix[1] if kind == "sum" else 2 * matrix[-2]

    def eliminated(*_):
        raise AssertionError("whole numbers were eliminated")

    monkeypatch.setattr(views, "_without_common_factor", eliminated)
    assert views.exact_rank(matrix) == rows - 1
    matrix[-1, 7] = np.nextafter(matrix[-1, 7], 9.0)
    assert views.exact_rank(matrix) == rows


@pytest.mark.parametrize("primes", [(), (2,), (3, 5)])
def test_what_primes_do_not_tell_is_found_by_elimination(primes, monkeypatch):
    matrix = wide(5, 9)
    matrix[-1] = 2 * matrix[-2]
    quality = np.arange(9.0)
    seen = views.View(matrix, None, (0, 1, 2, 3))
    expected = seen.seen_square(quality)
    monkeypatch.setattr(views, "PRIMES", primes)
    assert views.exact_rank(matrix) == views.exact_rank(3 * matrix) == 4
    assert views.View(matrix, None, (0, 1, 2, 3)).seen_square(quality) == expected


def test_what_is_seen_of_quality_is_found_once(monkeypatch):
    """For a view of wide range it takes seconds, and is asked for in many places."""
    asked = []
    whole = views.solve_whole
    monkeypatch.setattr(views, "solve_whole", lambda *given: asked.append(1) or whole(*given))
    instance = Instance.from_arrays(np.zeros((2, 9)), np.arange(9.0), view=wide(4, 9), cost=1.0)
    for _ in range(3):
        gain_ceiling(instance)
    assert sum(asked) == 1


def test_a_general_view_has_few_numbers():
    """Its arithmetic is exact, and is done before any limit of time is looked at."""
    said = "view: has 50 rows of 4,001 features; at most 49 can be seen of so many; more columns"
    with pytest.raises(InputError, match=said):
        Instance.from_arrays(np.zeros((1, 4001)), np.ones(4001), view=wide(50, 4001), cost=1.0)

"""Groups of agents: read, refused, kept in every kind of file, counted exactly."""

from __future__ import annotations

import hashlib
import json
import pickle
import struct
from fractions import Fraction

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mipmech import InputError, Instance, Mechanism, recount
from mipmech.design.folds import split
from mipmech.model.groups import MOST_LABELS, Grouping, parse_groups
from tests import referee
from tests.samples import AT_ENDS, instances, mechanisms

ONE = {"quality": [1.0], "visible": [0], "cost": 1.0}
LABELS = st.sampled_from(["a", "b", "Zoë's", "1", 1, 2, 10, "is, it"])


def texts(sample):
    return sample.groups.to_dict()


def with_groups(sample, groups):
    return Instance.from_arrays(
        sample.agents, sample.quality, cost=sample.cost, weights=sample.weights,
        view=sample.view.matrix, quality_offset=sample.quality_offset, groups=groups,
    )  # fmt: skip


@st.composite
def grouped(draw, **options):
    """An instance with one or two groupings."""
    sample = draw(instances(**options))
    m = sample.size
    labels = st.lists(LABELS, min_size=m, max_size=m)
    groups = draw(st.dictionaries(st.sampled_from(["sex", "a b", "é"]), labels, min_size=1))
    return with_groups(sample, groups)


# ------------------------------------------------------------------ what is read


def test_the_text_of_a_label_is_what_counts():
    agents = [[0.0], [1.0], [2.0], [3.0]]
    sample = Instance.from_arrays(agents, groups={"school": [10, "9", 9, "10"]}, **ONE)
    grouping = sample.groups["school"]
    assert grouping.labels == ("10", "9")
    assert grouping.members.tolist() == [0, 1, 1, 0]
    assert not grouping.members.flags.writeable
    assert [(label, agents.tolist()) for label, agents in grouping.parts()] == [
        ("10", [0, 3]), ("9", [1, 2]),
    ]  # fmt: skip


def test_without_groups_there_is_an_empty_mapping():
    for groups in (None, {}):
        sample = Instance.from_arrays([[0.0]], groups=groups, **ONE)
        assert dict(sample.groups) == {}
        assert "groups" not in sample.to_dict()
    with pytest.raises(InputError, match="has no groups; add 'groups' to it"):
        sample.groups.named("sex")


def test_groups_of_an_instance_can_be_given_to_another():
    sample = Instance.from_arrays([[0.0], [1.0]], groups={"sex": ["f", "m"]}, **ONE)
    again = Instance.from_arrays([[0.0], [1.0]], groups=sample.groups, **ONE)
    assert again.digest == sample.digest
    assert isinstance(again.groups["sex"], Grouping)
    with pytest.raises(InputError, match=r"names 'sx', which is no grouping.*did you mean 'sex'"):
        sample.groups.named("sx")


def test_nobody_can_change_them():
    sample = Instance.from_arrays([[0.0], [1.0]], groups={"sex": ["f", "m"]}, **ONE)
    with pytest.raises(TypeError):
        sample.groups["age"] = sample.groups["sex"]
    with pytest.raises(ValueError, match="read-only"):
        sample.groups["sex"].members[0] = 1


def test_workers_get_them():
    sample = Instance.from_arrays([[0.0], [1.0]], groups={"sex": ["f", "m"]}, **ONE)
    assert pickle.loads(pickle.dumps(sample)).digest == sample.digest


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (["f", "m"], "groups: is a list of 2; give an object"),
        ({"": ["f", "m"]}, "groups: has a name that is empty"),
        ({7: ["f", "m"]}, "groups: has a name that is 7; expected text"),
        ({" sex": ["f", "m"]}, "groups: has a name that has spaces around it"),
        ({"sex": "fm"}, "groups: 'sex' is the text 'fm'; give a list of labels"),
        ({"sex": {"a": 1}}, "groups: 'sex' is an object; give a list of labels"),
        ({"sex": ["f"]}, "groups: 'sex' has 1 labels, 2 expected: one per agent"),
        ({"sex": ["f", None]}, "groups, row 1: a label of 'sex' is null; expected text or a whole"),
        ({"sex": [1, 2.0]}, "groups, row 1: a label of 'sex' is 2.0; expected text or a whole"),
        ({"sex": [True, False]}, "groups, row 0: a label of 'sex' is true; expected text"),
        ({"sex": np.array([True, False])}, "groups, row 0: a label of 'sex' is "),
        ({"sex": np.array([1, 2], "m8[D]")}, "groups, row 0: a label of 'sex' is "),
        ({"sex": ["f", ["m"]]}, "groups, row 1: a label of 'sex' is a list of 1; expected text"),
        ({"sex": ["f", " "]}, "groups, row 1: a label of 'sex' is empty"),
        ({"sex": ["f", "f "]}, "groups, row 1: a label of 'sex' has spaces around it: 'f '"),
        ({"sex": ["f", "m\x1b"]}, "groups, row 1: a label of 'sex' has a character that cannot"),
        ({"sex": ["f", "m" * 201]}, "groups, row 1: a label of 'sex' has 201 characters"),
    ],
)
def test_what_is_refused(groups, said):
    with pytest.raises(InputError) as caught:
        Instance.from_arrays([[0.0], [1.0]], groups=groups, **ONE)
    assert str(caught.value).startswith(said)


def test_labels_that_tell_everybody_apart_are_refused():
    assert len(parse_groups({"id": range(MOST_LABELS)}, MOST_LABELS)["id"].labels) == MOST_LABELS
    with pytest.raises(InputError, match=r"'id' has more than 1,000 labels; give fewer"):
        parse_groups({"id": range(MOST_LABELS + 1)}, MOST_LABELS + 1)


# ------------------------------------------------------------------ the digest


def test_the_documented_digest():
    def text(value):
        return struct.pack("<q", len(value.encode())) + value.encode()

    sample = Instance.from_arrays(
        [[1.0], [2.0]], groups={"sex": ["m", "f"], "é": [7, 7]}, norm="l1", **ONE
    )
    data = b"mipmech/instance@1" + struct.pack("<4q", 2, 1, 1, 0)
    data += struct.pack("<9d", 1, 2, 1, 0, 1, 1, 1, 1, 1) + b"l1" + struct.pack("<2q", 0, 0)
    data += b"groups" + struct.pack("<q", 2)
    data += text("sex") + struct.pack("<q", 2) + text("f") + text("m") + struct.pack("<2q", 1, 0)
    data += text("é") + struct.pack("<q", 1) + text("7") + struct.pack("<2q", 0, 0)
    assert sample.digest == hashlib.sha256(data).hexdigest()


def test_names_and_labels_count_and_their_order_does_not():
    def digest(**groups):
        return Instance.from_arrays([[0.0], [1.0]], groups=groups, **ONE).digest

    assert digest(a=[1, 2], b=["x", "x"]) == digest(b=["x", "x"], a=["1", "2"])
    different = [
        digest(), digest(a=[1, 2]), digest(b=[1, 2]), digest(a=[2, 1]), digest(a=["x", "y"]),
        digest(a=[1, 1]), digest(a=[1, 2], b=[1, 2]), digest(a=["x", "xy"]), digest(ax=["x", "y"]),
    ]  # fmt: skip
    assert len(set(different)) == len(different)


def test_digests_from_before_there_were_groups_stay():
    sample = Instance.from_arrays([[1.0, -0.0]], [0.5, 2.0], visible=[1], cost=4.0)
    assert sample.digest.startswith("3fedd430fbb5")


# ------------------------------------------------------------------ parts


@given(grouped(), st.data())
def test_parts_keep_the_labels_of_their_agents(sample, data):
    rows = data.draw(st.lists(st.integers(0, sample.size - 1), min_size=1))
    part = sample.part(np.array(rows), "some")
    for name, labels in texts(sample).items():
        assert texts(part)[name] == [labels[row] for row in rows]
        grouping = part.groups[name]
        assert list(grouping.labels) == sorted(set(texts(part)[name]))
        assert not grouping.members.flags.writeable


def test_folds_have_the_groups_of_their_agents():
    labels = ["a", "b", "c", "a", "b", "a"]
    agents = [[float(i)] for i in range(6)]
    sample = Instance.from_arrays(agents, groups={"g": labels}, **ONE)
    for inside in split(sample.weights, 3, seed=0):
        part = sample.part(inside, "a fold")
        assert texts(part)["g"] == [labels[int(x)] for x in part.agents[:, 0]]


# ------------------------------------------------------------------ files


@settings(max_examples=40)
@given(grouped())
def test_saving_keeps_them(tmp_path_factory, sample):
    folder = tmp_path_factory.mktemp("groups")
    for kind in ("inline", "csv", "npy"):
        sample.save(folder / f"{kind}.json", kind)
        again = Instance.load(folder / f"{kind}.json")
        assert again.digest == sample.digest
        assert list(again.groups) == list(sample.groups)
        assert texts(again) == texts(sample)


HEAD = {"format": "mipmech/instance@1", "name": "n", "visible": ["x"], "cost": 1}


def write(folder, table, **fields):
    (folder / "t.csv").write_text(table)
    path = folder / "a.json"
    path.write_text(json.dumps({**HEAD, "agents": {"csv": "t.csv"}, **fields}))
    return path


def test_a_column_of_the_table_is_no_feature(tmp_path):
    table = "x,sex,school\n1,f,7\n2, m ,8\n"
    groups = {"sex": {"column": "sex"}, "of": {"column": "school"}, "here": ["a", 1]}
    sample = Instance.load(write(tmp_path, table, quality=[1], groups=groups))
    assert sample.features == ("x",)
    assert texts(sample) == {"sex": ["f", "m"], "of": ["7", "8"], "here": ["a", "1"]}
    named = {"features": ["school", "x"], "quality": {"x": 1}}
    sample = Instance.load(write(tmp_path, table, groups=groups, **named))
    assert sample.features == ("school", "x")
    assert texts(sample)["of"] == ["7", "8"]


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({}, "groups: is empty; give labels by name"),
        ([], "groups: is a list of 0; give labels by name"),
        (None, "groups: is null; leave it out, or give it"),
        ({"sex": {"column": "sx"}}, "groups: there is no column 'sx'; there are x, sex"),
        ({"sex": {"columns": "sex"}}, "groups: is an object; one that names a column is written"),
        ({"sex": {"column": "sex"}}, "groups, line 3: a label of 'sex' is empty"),
        ({"sex": ["f", None]}, "groups, row 1: a label of 'sex' is null; expected text"),
        ({"sex": 3}, "groups: 'sex' is 3; give a list of labels"),
    ],
)
def test_files_are_refused_with_the_place(tmp_path, groups, said):
    path = write(tmp_path, "x,sex\n1,f\n2, \n", features=["x"], quality=[1], groups=groups)
    with pytest.raises(InputError) as caught:
        Instance.load(path)
    assert said in str(caught.value)


def test_a_column_needs_a_table(tmp_path):
    path = tmp_path / "a.json"
    content = {**HEAD, "agents": [[1.0]], "features": ["x"], "quality": [1]}
    path.write_text(json.dumps({**content, "groups": {"sex": {"column": "sex"}}}))
    with pytest.raises(InputError, match="but the agents are in no CSV file; give a list"):
        Instance.load(path)


# ------------------------------------------------------------------ tables

FRAME = {"x": [1.0, 2.0, 4.0], "sex": ["f", "m", "f"], "school": [7, 8, 8]}
GIVEN = {"quality": {"x": 1.0}, "visible": ["x"], "cost": 1.0}


@pytest.mark.parametrize("library", [pandas, polars])
def test_columns_of_a_frame(library):
    sample = Instance.from_frame(
        library.DataFrame(FRAME), groups=["sex", "school"], **GIVEN
    )  # fmt: skip
    assert sample.features == ("x",)
    assert texts(sample) == {"sex": ["f", "m", "f"], "school": ["7", "8", "8"]}


def test_gaps_in_labels_are_gaps():
    frame = pandas.DataFrame({**FRAME, "sex": ["f", None, "f"], "school": [7, 8, None]})
    for groups in (["sex"], ["school"], ["school", "sex"]):
        with pytest.raises(InputError, match=r"groups, row \d: has no label under"):
            Instance.from_frame(frame, groups=groups, **GIVEN)
    sample = Instance.from_frame(frame, groups=["school"], drop_blank=True, **GIVEN)
    assert texts(sample) == {"school": ["7", "8"]}
    sample = Instance.from_frame(frame, groups=["school", "sex"], drop_blank=True, **GIVEN)
    assert texts(sample) == {"school": ["7"], "sex": ["f"]}


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("sex", "groups: is the text 'sex'; give a list"),
        (["sex", "sex"], "groups: has 'sex' twice; give it once"),
        (["sx"], r"groups: there is no column 'sx'.*did you mean 'sex'"),
        (["half"], "groups, row 0: a label of 'half' is 0.5; expected text or a whole number"),
        (["when"], "groups, row 0: a label of 'when' is .*; expected text or a whole number"),
        (["huge"], "groups, row 1: a label of 'huge' is inf; expected text or a whole number"),
    ],
)
def test_columns_of_a_frame_that_are_no_groups(groups, said):
    when = pandas.date_range("2026-01-01", periods=3)
    more = {"half": [0.5, 1, 2], "when": when, "huge": [1, np.inf, 2]}
    with pytest.raises(InputError, match=said):
        Instance.from_frame(pandas.DataFrame({**FRAME, **more}), groups=groups, **GIVEN)


def test_rows_of_a_frame_keep_their_numbers_in_messages():
    frame = pandas.DataFrame({"x": [None, 1.0, 2.0], "g": ["a", "a", ""]})
    with pytest.raises(InputError, match=r"groups, row 2: a label of 'g' is empty"):
        Instance.from_frame(frame, groups=["g"], drop_blank=True, **GIVEN)


def test_columns_of_a_csv_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x;sex\n1,5;f\n2;\n4;m\n")
    with pytest.raises(InputError, match=r"t.csv: groups, line 3: has no label under 'sex'"):
        Instance.from_csv(path, groups=["sex"], **GIVEN)
    sample = Instance.from_csv(path, groups=["sex"], drop_blank=True, **GIVEN)
    assert texts(sample) == {"sex": ["f", "m"]}
    assert sample.agents.tolist() == [[1.5], [4.0]]


# ------------------------------------------------------------------ accepted shares


@given(grouped(), st.data())
def test_accepted_shares_are_those_of_the_referee(sample, data):
    rule = data.draw(mechanisms(sample, AT_ENDS))
    found = recount(sample, rule)
    weights = referee.exact_weights(sample, rule)
    inside = referee.truth(sample, weights, rule.threshold).inside
    agents = [[Fraction(float(value)) for value in row] for row in sample.agents]
    passed = [
        moves or referee.dot(weights, x) >= Fraction(rule.threshold)
        for moves, x in zip(inside, agents, strict=True)
    ]
    for name, labels in texts(sample).items():
        masses = {}
        exact = [Fraction(float(weight)) for weight in sample.weights]
        for label, weight, in_the_end in zip(labels, exact, passed, strict=True):
            of, whole = masses.get(label, (Fraction(0), Fraction(0)))
            masses[label] = of + weight * in_the_end, whole + weight
        rates = {label: of / whole for label, (of, whole) in sorted(masses.items()) if whole}
        assert found.accepted_by(name) == rates
        assert list(found.accepted_by(name)) == list(rates)
        shown = found.to_dict()["groups"][name]
        assert shown == {label: float(share) for label, share in rates.items()}


@given(grouped(), st.data())
def test_they_are_the_share_of_all_where_all_are_one_group(sample, data):
    found = recount(
        with_groups(sample, {"all": ["x"] * sample.size}), data.draw(mechanisms(sample))
    )
    assert found.accepted_by("all") == {"x": found.accepted_share}


def test_an_unknown_grouping_is_named():
    sample = Instance.from_arrays([[0.0]], groups={"sex": ["f"]}, **ONE)
    found = recount(sample, Mechanism((1.0,), 0.5))
    with pytest.raises(InputError, match=r"groups: names 'race', which is no grouping"):
        found.accepted_by("race")


def test_nothing_is_said_of_groups_where_there_are_none():
    sample = Instance.from_arrays([[0.0]], **ONE)
    assert "groups" not in recount(sample, Mechanism((1.0,), 0.5)).to_dict()

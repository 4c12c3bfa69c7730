"""`mipmech new`: from a table as people have it to an instance file, at the first attempt."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys

import pytest

from mipmech import Instance
from mipmech.cli import main
from mipmech.model.from_table import naming_column
from mipmech.model.tables import read_csv
from mipmech.validation import coefficients
from tests.conftest import ROOT

TABLE = """student_id,group,SAT,gpa,essay,admitted,price
S1,a,700,3.5,2,yes,2
S2,b,650,2.5,,no,2
S3,a,480,1.5,4,no,3
S4,b,520,2.0,1,no,2
"""
OPTIONS = ["--quality", "SAT=0.002, gpa=0.5", "--visible", "SAT,gpa", "--cost", "2", "--as-is"]


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "students.csv"
    path.write_text(TABLE)
    return path


def run(capsys, *arguments):
    status = main(["new", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_numbers_stay_in_a_table_beside_the_file(capsys, data):
    status, out, err = run(capsys, data, *OPTIONS)
    assert (status, err) == (0, "")
    path = data.with_suffix(".json")
    content = json.loads(path.read_text())
    assert content["agents"] == {"csv": "students.csv"}
    assert content["quality"] == {"SAT": 0.002, "gpa": 0.5}
    assert "students.csv" in content["source"]
    assert str(data.parent) not in path.read_text()
    made = Instance.load(path)
    assert made.features == ("SAT", "gpa")
    assert made.agents[0].tolist() == [700, 3.5]
    assert [made.agent_name(i) for i in range(4)] == ["S1", "S2", "S3", "S4"]
    assert "not used   group, essay, admitted, price" in out
    assert "Warning: SAT (standard deviation" in out
    assert f"mipmech show {path}\n" in out
    assert f"mipmech certify {path} --out {path.parent / 'students-proof.json'}\n" in out


def test_what_it_says_under_json_is_true(capsys, data):
    status, out, err = run(capsys, data, *OPTIONS, "--cost", "price", "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    made = Instance.load(told["file"])
    assert told["digest"] == made.digest
    assert (told["agents"], told["features"], told["rank"]) == (4, ["SAT", "gpa"], 2)
    assert (told["table"], told["ids"], told["left_out"]) == ("students.csv", "student_id", 0)
    assert len(told["warnings"]) == 1
    assert made.cost.tolist() == [2, 2, 3, 2]
    assert made.name == "students"


@pytest.mark.parametrize(
    "options",
    [["--standardise"], ["--drop-blank", "--features", "SAT,gpa,essay"], ["-o", "else/where.json"]],
)
def test_otherwise_they_are_copied(capsys, data, options, monkeypatch):
    monkeypatch.chdir(data.parent)
    (data.parent / "else").mkdir()
    status, out, _ = run(capsys, data, *OPTIONS, *options, "--json")
    told = json.loads(out)
    assert status == 0
    assert told["table"] is None
    assert Instance.load(told["file"]).digest == told["digest"]
    assert told["left_out"] == ("--drop-blank" in options)


def test_standardised_is_what_a_frame_gives(capsys, data):
    run(capsys, data, *OPTIONS[:-1], "--offset", "1")
    made = Instance.load(data.with_suffix(".json"))
    same = Instance.from_csv(
        data, quality={"SAT": 0.002, "gpa": 0.5}, visible=["SAT", "gpa"], cost=2,
        standardise=True, quality_offset=1,
    )  # fmt: skip
    assert made.digest == same.digest
    assert made.units == same.units
    assert "standard deviation" in made.source


def test_semicolons_and_decimal_commas_are_understood(capsys, data):
    data.write_text(TABLE.replace(",", ";").replace(".", ","))
    status, out, _ = run(capsys, data, *OPTIONS, "--json")
    assert status == 0
    assert json.loads(out)["table"] is None
    assert Instance.load(data.with_suffix(".json")).agents[1].tolist() == [650, 2.5]


def test_sums_may_be_seen(capsys, data):
    status, *_ = run(
        capsys, data, *OPTIONS[:2], "--cost", 1, "--as-is", "--view", "SAT=1,gpa=100;price=1"
    )
    assert status == 0
    made = Instance.load(data.with_suffix(".json"))
    assert made.features == ("SAT", "gpa", "price")
    assert made.view.matrix.tolist() == [[1, 100, 0], [0, 0, 1]]


def test_names_with_commas_are_quoted(capsys, data):
    data.write_text('"gpa, school",x=y\n1,2\n2,1\n')
    given = [
        "--quality",
        '"gpa, school=0.5",x=y=1',
        "--visible",
        '"gpa, school"',
        "--cost",
        1,
        "--as-is",
    ]
    assert run(capsys, data, *given)[0] == 0
    assert Instance.load(data.with_suffix(".json")).quality.tolist() == [0.5, 1]


def test_an_id_can_be_chosen_or_left_out(capsys, data):
    for given, named in (("group", "group"), ("", None)):
        _, out, _ = run(
            capsys, data, *OPTIONS, "--id", given, "-o", data.parent / "a.json", "--json"
        )
        assert json.loads(out)["ids"] == named


@pytest.mark.parametrize(
    ("header", "cells", "named"),
    [
        ("id,x", ["1,5", "2,5"], "id"),
        ("name,x,ID", ["Ann,5,1", "Bob,5,2"], "ID"),
        ("name,x,id", ["Ann,5,1", "Bob,5,1"], "name"),
        ("x,Applicant ID", ["5,1", "5,2"], "Applicant ID"),
        ("x,studentId", ["5,1", "5,2"], "studentId"),
        ("x,who", ["5,Ann", "5,Bob"], "who"),
        ("x,group", ["5,a", "5,a"], None),
        ("x,paid", ["5,1", "5,2"], None),
        ("x,name", ["5,Ann", "5,Ann"], None),
        ("x,who", ["5,Ann", "5,"], None),
    ],
)
def test_the_column_that_names_people_is_guessed(tmp_path, header, cells, named):
    (tmp_path / "t.csv").write_text("\n".join([header, *cells]))
    assert naming_column(read_csv(tmp_path / "t.csv"), ["x"]) == named


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], 'give --quality "SAT=0.3,gpa=0.2" --visible "SAT,gpa" --cost 2; columns with numbers'),
        (OPTIONS[:4], "give --cost 2; columns"),
        ([*OPTIONS, "--quality", "sat=1"], "(did you mean 'SAT'?)"),
        ([*OPTIONS, "--quality", "SAT"], "quality: has 'SAT'; give names and numbers, as in"),
        ([*OPTIONS, "--quality", "SAT=much"], "quality: has 'SAT=much'; give names and numbers"),
        ([*OPTIONS, "--quality", "SAT=1,SAT=2"], "quality: has 'SAT' twice"),
        ([*OPTIONS, "--quality", " , "], "quality: is empty"),
        ([*OPTIONS, "--quality", "SAT=0"], "quality: is zero"),
        ([*OPTIONS, "--quality", "group=1"], "agents, line 2: 'group' holds text, such as 'a'"),
        ([*OPTIONS, "--visible", "iq"], "visible: there is no column 'iq'; there are student_id,"),
        ([*OPTIONS, "--visible", ""], "visible: is empty"),
        ([*OPTIONS, "--view", "SAT=1"], "found visible and view"),
        ([*OPTIONS, "--features", "SAT"], "names 'gpa', which is not among the features 'SAT'"),
        ([*OPTIONS, "--features", "SAT,gpa,essay"], "line 3: has no number under 'essay'; fill"),
        ([*OPTIONS, "--quality", "SAT=0,002"], "quality: has 'SAT=0,002'; write 0.002, as in"),
        ([*OPTIONS, "--quality", "SAT=0,2;gpa=1"], "quality: has 'SAT=0,2'; write 0.2, as in"),
        ([*OPTIONS, "--quality", '{"SAT": 1'], "quality: is not JSON; give names and numbers"),
        ([*OPTIONS, "--quality", '{"SAT": "1"}'], "quality: is the text '1'; expected a number"),
        ([*OPTIONS, "--weights", "essay"], "weights, line 3: has no number under 'essay'"),
        ([*OPTIONS, "--cost", "essay"], "cost, line 3: has no number under 'essay'"),
        ([*OPTIONS, "--cost", "dear"], "cost: there is no column 'dear'"),
        ([*OPTIONS, "--cost", "-1"], "cost: is -1; it must be above 0"),
        ([*OPTIONS, "--cost", "nan"], "cost: is not a number"),
        ([*OPTIONS, "--reach", "2"], "reach: is given beside 'cost', of which it is the inverse"),
        ([*OPTIONS[:4], "--reach", "0"], "reach: is 0; it must be above 0"),
        ([*OPTIONS[:4], "--reach", "far"], "reach: there is no column 'far'; there are student_id"),
        ([*OPTIONS, "--norm", "l3"], "'--norm': 'l3' is not one of 'l2', 'l1', 'linf'"),
        ([*OPTIONS, "--norm", "l1", "--view", "SAT=1,gpa=1", "--visible", ""], "visible and view"),
        ([*OPTIONS, "--effort", "sat=2"], "effort: there is no column 'sat'; there are student_id"),
        ([*OPTIONS, "--effort", "essay=2"], "effort: names 'essay', which is not among the feat"),
        ([*OPTIONS, "--effort", "standrad"], 'as in "SAT=0.3,gpa=0.2", or standard (did you mean'),
        ([*OPTIONS, "--effort", "SAT=0"], "effort, row 0: has the price 0 for 'SAT'; it must be"),
        ([*OPTIONS, "--effort", "SAT=much"], "effort: has 'SAT=much'; give names and numbers"),
        ([*OPTIONS, "--effort", "SAT=2", "--standardise"], "leave out one of the two"),
        ([*OPTIONS, "--weights", "w"], "there is no column 'w'"),
        ([*OPTIONS, "--id", "who"], "there is no column 'who'"),
        ([*OPTIONS, "--offset", "inf"], "quality_offset: is infinite"),
        ([*OPTIONS, "-o", "students.csv"], "is the data; name another file"),
        ([*OPTIONS, "-o", "no/where.json"], "there is no folder"),
    ],
)  # fmt: skip
def test_what_is_missing_or_wrong_is_named_at_once(capsys, data, monkeypatch, options, said):
    monkeypatch.chdir(data.parent)
    status, out, err = run(capsys, "students.csv", *options)
    assert (status, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert said in err
    assert os.listdir() == ["students.csv"]
    assert data.read_text() == TABLE


def test_a_folder_is_no_table(capsys, data, monkeypatch):
    monkeypatch.chdir(data.parent)
    (data.parent / "book.xlsx").write_bytes(b"PK\x03\x04\x14\0\x08\0\xb5\xff")
    for name, said in (
        (".", "is a folder"),
        ("..", "cannot be read"),
        ("no.csv", "cannot be read"),
        ("studnts.csv", "no such file or directory (did you mean 'students.csv'?)"),
        ("book.xlsx", "is not text but a file of some program, such as a workbook; save it as CSV"),
    ):
        status, _, err = run(capsys, name, *OPTIONS)
        assert status == 2
        assert said in err


@pytest.mark.parametrize(
    "given",
    [
        "SAT:0.002, gpa:0.5",
        "SAT=0.002;gpa=0.5",
        '{"SAT": 0.002, "gpa": 0.5}',
        "SAT = 2e-3 ;gpa: .5",
    ],
)
def test_coefficients_are_read_as_people_write_them(given):
    assert coefficients(given, "quality") == {"SAT": 0.002, "gpa": 0.5}


def test_quality_that_the_planner_cannot_see_is_told_at_once(capsys, data):
    given = [data, "--quality", "price=1", "--visible", "SAT,gpa", "--cost", 2]
    _, out, _ = run(capsys, *given)
    assert "nothing that the planner sees carries quality" in " ".join(out.split())
    path = data.parent / "b.json"
    _, out, _ = run(capsys, *given, "-o", path, "--json", "--view", "SAT=1,price=1", *OPTIONS[:2])
    assert "visible and view" in out
    _, out, _ = run(capsys, *given[:3], "--view", "SAT=1;price=1", "--cost", 2, "-o", path)
    assert "carries quality" not in out


def test_rows_that_are_left_out_are_told_and_the_others_keep_their_numbers(capsys, data):
    given = [data, *OPTIONS[:-1], "--features", "SAT,gpa,essay", "--drop-blank"]
    _, out, _ = run(capsys, *given, "--id", "", "--json")
    assert json.loads(out)["warnings"] == ["1 row of 4 left out for gaps: essay has 1"]
    assert Instance.load(data.with_suffix(".json")).ids == ("0", "2", "3")
    assert (
        "rows, from 0 below the header"
        in run(capsys, *given, "--id", "", "-o", data.parent / "b.json")[1]
    )


def test_warnings_are_of_the_table_and_not_of_a_rule(capsys, data):
    data.write_text("who,x,flat\na,1,3\na,2,3\nb,9,3\n")
    _, out, _ = run(
        capsys, data, "--quality", "x=1", "--visible", "x,flat", "--cost", 0.001, "--as-is",
        "--id", "who", "--json",
    )  # fmt: skip
    said = json.loads(out)["warnings"]
    assert said[:2] == ["flat is 3 for everyone; leave it out", "1 id repeats in who"]
    assert not any("rule people move" in sentence for sentence in said)


def test_a_number_that_is_also_a_column_is_no_cost(capsys, data):
    data.write_text("x,2020\n1,3\n2,4\n")
    given = [data, "--quality", "x=1", "--visible", "x", "--cost"]
    status, _, err = run(capsys, *given, "2020")
    assert status == 2
    assert "cost: is 2020, and a column has that name; write 2020.0" in err
    assert run(capsys, *given, "2020.0")[0] == 0


def test_a_file_is_replaced_only_where_it_is_named(capsys, data):
    path = data.with_suffix(".json")
    path.write_text("mine")
    status, _, err = run(capsys, data, *OPTIONS)
    assert status == 2
    assert "exists already; name the file to write by -o" in err
    assert path.read_text() == "mine"
    assert run(capsys, data, *OPTIONS, "-o", path)[0] == 0
    assert Instance.load(path).size == 4


def test_prices_norms_and_reaches_are_options(capsys, data):
    given = [data, *OPTIONS[:4], "--json"]
    files = (data.parent / f"{i}.json" for i in range(9))

    def made(*options):
        file = next(files)
        status, out, _ = run(capsys, *given, *options, "-o", file)
        assert status == 0
        return Instance.load(file), json.loads(out)

    sample, told = made("--cost", 2, "--effort", "standard", "--norm", "l1")
    same = Instance.from_csv(
        data, quality={"SAT": 0.002, "gpa": 0.5}, visible=["SAT", "gpa"], cost=2,
        effort="standard", norm="l1",
    )  # fmt: skip
    assert sample.digest == told["digest"] == same.digest
    assert (told["standardised"], told["table"]) == (False, "students.csv")
    assert told["cost"] == (
        "a move of 1 standard deviation in one feature costs 2; the costs of moves in several"
        " features add up"
    )
    assert "prices are 1/standard deviation" in sample.source

    sample, told = made("--reach", "price", "--effort", "SAT=0.02,gpa=10", "--norm", "linf")
    assert sample.costs.given == "reach"
    assert sample.costs.values.tolist() == [2, 2, 3, 2]
    assert sample.costs.effort.tolist() == [0.02, 10]
    assert "people move by up to 50 times price in SAT" in told["cost"]

    sample, told = made("--reach", "0.5")
    assert told["standardised"]
    assert told["cost"] == "people move in one feature by up to 0.5 standard deviations to pass"


def test_what_a_move_costs_is_printed(capsys, data):
    _, out, _ = run(capsys, data, *OPTIONS[:4], "--cost", "2")
    assert "cost       a move of 1 standard deviation in one feature costs 2" in out


class Terminal(io.StringIO):
    def isatty(self):
        return True


def answer(monkeypatch, *lines):
    monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in lines)))


def test_what_is_missing_is_asked_for(capsys, data, monkeypatch):
    answer(monkeypatch, "SAT=0.002,gpa=high", "SAT=0.002,essay=0.5", "sat", "SAT", "", "", "")
    status, out, err = run(capsys, data)
    assert status == 0
    assert "4 rows; numbers: SAT, gpa, essay, price; text: student_id, group, admitted" in err
    assert "has 'gpa=high'; give names and numbers" in err
    assert "did you mean 'SAT'?" in err
    assert "What does a move of one standard deviation cost" in err
    assert "1 row of 4 have gaps" in err
    assert "1 row of 4 left out for gaps: essay has 1" in " ".join(out.split())
    made = Instance.load(data.with_suffix(".json"))
    assert (made.size, made.features, made.view.columns) == (3, ("SAT", "essay"), (0,))
    assert (made.units is not None, made.cost.tolist()) == (True, [2, 2, 2])


def test_the_defaults_are_sound(capsys, data, monkeypatch):
    answer(monkeypatch, "gpa=1", "", "gpa", "maybe", "no", "price")
    status, _, err = run(capsys, data)
    assert status == 0
    assert "answer yes or no" in err
    made = Instance.load(data.with_suffix(".json"))
    assert (made.features, made.units, made.cost.tolist()) == (("gpa",), None, [2, 2, 3, 2])


def test_a_reach_or_prices_leave_out_their_questions(capsys, data, monkeypatch):
    answer(monkeypatch, "SAT=0.002", "SAT,gpa", "2")
    status, _, err = run(capsys, data, "--effort", "gpa=10")
    assert status == 0
    assert "standard deviations?" not in err
    assert "What does a move of 1 at the price 1 cost" in err
    assert Instance.load(data.with_suffix(".json")).costs.effort.tolist() == [1, 10]
    answer(monkeypatch, "SAT=0.002", "SAT,gpa", "yes")
    status, _, err = run(capsys, data, "--reach", "price", "-o", data.parent / "b.json")
    assert status == 0
    assert "cost, if passing" not in err
    answer(monkeypatch, "SAT=0.002", "yes")
    status, _, err = run(
        capsys, data, "--view", "SAT=1,gpa=1", "--norm", "l1", "-o", data.parent / "c.json"
    )
    assert status == 2  # an option that no answer mends
    assert "norm: is l1, which needs" in err


def test_what_cannot_gain_is_told_at_its_question(capsys, data, monkeypatch):
    answer(monkeypatch, "price=1", "gpa", "", "", "")
    status, out, err = run(capsys, data)
    assert status == 0
    assert "A coefficient says by how much quality rises" in err
    assert "regression done beforehand" in err
    assert err.index("nothing that the planner sees carries quality") < err.index("Measure")
    assert "no rule gains anything" in " ".join(out.split())


def test_each_answer_is_tried_at_its_own_question(capsys, data, monkeypatch):
    """What is typed, and what is said to it."""
    said = {
        "group=1": "'group' holds text, such as 'a'; expected plain numbers (line 2)",
        "gpa=0": "is zero",
        "gpa=0,5": "write 0.5",
        "gpa=0.5,essay=0.1": None,
        "admitted": "'admitted' holds text",
        "gpa": None,
        "yes": None,
        "0": "is 0; it must be above 0",
        "group": "'group' holds text",
        "price": None,
        "no": "agents with gaps cannot be used",
        "": None,
    }
    answer(monkeypatch, *said)
    status, _, err = run(capsys, data)
    assert status == 0
    for words in filter(None, said.values()):
        assert words in err
    assert Instance.load(data.with_suffix(".json")).cost.tolist() == [2, 3, 2]


def test_a_column_without_a_deviation_is_only_refused_where_it_matters(capsys, data, monkeypatch):
    data.write_text("x,flat\n1,3\n2,3\n")
    answer(monkeypatch, "x=1,flat=1", "x", "yes", "no", "")
    status, _, err = run(capsys, data)
    assert status == 0
    assert err.count("has 'flat' = 3 for everyone") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--weights", "w"], "weights: there is no column 'w'"),
        (["--weights", "group"], "weights, line 2: 'group' holds text"),
        (["--features", "w"], "features: there is no column 'w'"),
        (["--features", "gpa,group"], "features, line 2: 'group' holds text"),
        (["--offset", "nan"], "quality_offset: is not a number (NaN); give a number"),
    ],
)
def test_no_answer_mends_an_option(capsys, data, monkeypatch, options, said):
    answer(monkeypatch, *["gpa=1"] * 9)
    status, _, err = run(capsys, data, *options)
    assert status == 2
    assert said in err
    assert err.count("True quality") <= 1


def test_questions_and_options_lead_to_one_instance(capsys, data, monkeypatch):
    answer(monkeypatch, "SAT=0.002,gpa=0.5", "", "", "")
    run(capsys, data)
    asked = Instance.load(data.with_suffix(".json"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    run(capsys, data, *OPTIONS[:-1], "-o", data.parent / "b.json")
    assert Instance.load(data.parent / "b.json").to_dict() == asked.to_dict()
    assert asked.units is not None


def test_no_answer_is_an_error_and_nothing_is_written(capsys, data, monkeypatch):
    answer(monkeypatch, "gpa=1")
    status, out, err = run(capsys, data)
    assert (status, out) == (2, "")
    assert err.endswith("error: visible: was asked for and not answered\n")
    assert not data.with_suffix(".json").exists()


def test_json_asks_nothing(capsys, data, monkeypatch):
    answer(monkeypatch, "gpa=1", "gpa", "no", "2")
    status, out, err = run(capsys, data, "--json")
    assert (status, err) == (2, "")
    assert "more must be known" in json.loads(out)["error"]["message"]


@pytest.mark.slow
def test_on_a_real_terminal(data):
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "mipmech", "new", "students.csv"], cwd=data.parent, stdin=theirs,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        os.write(ours, b"SAT=0.002,gpa=0.5\nSAT\nyes\n2\n")
        out, _ = process.communicate(timeout=60)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 0
    assert "wrote students.json" in out
    assert Instance.load(data.with_suffix(".json")).units is not None


def test_groups_are_columns_and_no_features(capsys, data):
    status, out, err = run(capsys, data, *OPTIONS, "--groups", "group, admitted")
    assert (status, err) == (0, "")
    assert "groups     group, admitted" in out
    assert "not used   essay, price" in out
    content = json.loads(data.with_suffix(".json").read_text())
    assert content["groups"] == {
        "group": {"column": "group"}, "admitted": {"column": "admitted"},
    }  # fmt: skip
    made = Instance.load(data.with_suffix(".json"))
    assert made.features == ("SAT", "gpa")
    assert made.groups["group"].of_each() == ["a", "b", "a", "b"]
    again = Instance.from_csv(
        data, quality={"SAT": 0.002, "gpa": 0.5}, visible=["SAT", "gpa"], cost=2,
        groups=["group", "admitted"],
    )  # fmt: skip
    assert again.digest == made.digest


def test_groups_are_copied_with_the_numbers(capsys, data):
    standardised = OPTIONS[:-1]
    status, out, _ = run(capsys, data, *standardised, "--groups", "group", "--json")
    told = json.loads(out)
    assert (status, told["table"], told["groups"]) == (0, None, ["group"])
    assert json.loads(data.with_suffix(".json").read_text())["groups"] == {
        "group": ["a", "b", "a", "b"]
    }


def test_a_gap_in_a_group_is_a_gap(capsys, data):
    data.write_text(TABLE.replace("S3,a", "S3,NA"))
    status, _, err = run(capsys, data, *OPTIONS, "--groups", "group")
    assert status == 2
    assert "groups, line 4: has no label under 'group'" in err
    status, out, _ = run(capsys, data, *OPTIONS, "--groups", "group", "--drop-blank")
    assert status == 0
    assert "1 row of 4 left out for gaps: group has 1" in " ".join(out.split())


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("grup", "groups: there is no column 'grup'"),
        ("group,group", "groups: has 'group' twice; give it once"),
    ],
)
def test_groups_that_are_none(capsys, data, groups, said):
    status, _, err = run(capsys, data, *OPTIONS, "--groups", groups)
    assert status == 2
    assert said in err

"""Rules as people write them: read, turned into the instance's numbers, graded exactly."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipmech import (
    InputError,
    Instance,
    Mechanism,
    best_threshold,
    certify,
    make_instance,
    recount,
)
from mipmech.cli import main
from mipmech.design.grade import Optimum, certified_optimum, grade
from mipmech.design.printed import printed
from mipmech.model import Known, Side
from mipmech.model.requirements import Requirements
from mipmech.model.typed_rules import in_known_units, load_rule, written_rule
from mipmech.model.units import Units
from mipmech.terminal.groups import rate_entries, size_entries
from tests.conftest import ROOT
from tests.samples import instances, mechanisms

STUDENTS = ROOT / "instances" / "real" / "first-year.json"
VIEW = ROOT / "instances" / "real" / "satgpa-view.json"


@given(st.data())
def test_a_rule_that_the_program_printed_is_graded_as_itself(data):
    sample = data.draw(instances())
    rule = data.draw(mechanisms(sample))
    kept = json.loads(json.dumps(rule.to_dict()))
    for held in (kept, {"mechanism": kept, "gain": 1}, {"witness": kept}):
        found = grade(sample, written_rule(sample, held))
        assert found.recount.gain == recount(sample, rule).gain
        assert found.recount.covered.tolist() == recount(sample, rule).covered.tolist()


@given(st.data())
def test_weights_by_name_are_the_same_as_a_list(data):
    sample = data.draw(instances(kinds=("visible",)))
    rule = data.draw(mechanisms(sample))
    named = dict(zip(sample.feature_names, rule.weights, strict=True))
    for value, threshold in (
        (named, rule.threshold),
        ({"weights": named, "threshold": 7}, rule.threshold),
    ):
        assert written_rule(sample, value, threshold).mechanism == rule


DYADIC = st.integers(-6, 6).map(lambda i: i / 4)


@given(st.data())
def test_in_known_units_the_rule_is_about_known_numbers(data):
    """Where nothing is rounded: who passes is decided by w·(centre + scale·x) ≥ b."""
    rows = data.draw(st.lists(st.lists(DYADIC, min_size=2, max_size=2), min_size=1, max_size=8))
    centre = data.draw(st.lists(DYADIC, min_size=2, max_size=2))
    scale = data.draw(st.lists(st.sampled_from([0.25, 1.0, 8.0]), min_size=2, max_size=2))
    weights = data.draw(st.lists(DYADIC, min_size=2, max_size=2).filter(any))
    threshold = data.draw(DYADIC)
    bare = Instance.from_arrays(rows, [1.0, 0.5], visible=[0, 1], features=["a", "b"], cost=1.0)
    sample = replace(bare, units=Units(tuple(centre), tuple(scale)))
    found = written_rule(sample, {"a": weights[0], "b": weights[1]}, threshold)
    scores = (np.array(centre) + np.array(scale) * np.array(rows)) @ np.array(weights)
    graded = recount(sample, found.mechanism)
    assert ((graded.sides == Side.ABOVE) == (scores > threshold)).all()
    back = in_known_units(sample, found.mechanism)
    assert dict(back.weights) == {k: w for k, w in zip("ab", weights, strict=True) if w}
    assert back.threshold == threshold


@given(st.data())
def test_the_best_threshold_has_the_gain_that_is_shown(data):
    sample = data.draw(instances(kinds=("visible",)))
    rule = data.draw(mechanisms(sample))
    found = grade(sample, written_rule(sample, rule.to_dict()))
    if found.best is None:
        assert found.recount.gain <= 0
        return
    best, graded = found.best
    typed = written_rule(sample, dict(best.weights), best.threshold)
    assert recount(sample, typed.mechanism).gain == graded.gain
    assert graded.gain >= found.recount.gain * (1 - Fraction(1, 10**6))


def test_weights_of_any_length():
    sample = make_instance("ties", 30, 2, seed=1)
    best = certify(sample).mechanism
    usual = grade(sample, written_rule(sample, best.to_dict(), 0.0))
    for power in (-500, 500):
        long = [w * 2.0**power for w in best.weights]
        found = grade(sample, written_rule(sample, {"weights": long}, 0.0))
        assert found.recount.gain == usual.recount.gain
        assert found.best[1].gain == pytest.approx(usual.best[1].gain, rel=1e-5)


def test_shares_are_stated_against_both_ends():
    sample = make_instance("ties", 30, 2, seed=1)
    rule = written_rule(sample, certify(sample).mechanism.to_dict())
    gain = float(grade(sample, rule).recount.gain)
    assert grade(sample, rule).share is None  # nothing is known
    for ends, share in (
        ((gain * 2, gain * 4), (0.25, 0.5)),
        ((gain / 2, gain * 2), (0.5, 1.0)),
        ((0.0, gain * 2), (0.5, 1.0)),
        ((gain, gain), (1.0, 1.0)),
    ):
        found = grade(sample, rule, optimum=Optimum(*ends, "somebody"))
        assert found.share == pytest.approx(share)
        assert not found.contradicted
    known = replace(sample, known=Known(gain / 4, gain / 2, "by mistake"))
    assert grade(known, rule).contradicted


def test_a_rule_against_quality():
    sample = Instance.from_arrays([[0.0], [1.0]], [1.0], visible=[0], cost=1.0)
    found = grade(sample, written_rule(sample, {"x0": -1}, 0.5))
    assert found.recount.gain < 0
    assert found.best is None


@pytest.mark.parametrize(
    ("rule", "threshold", "field", "message"),
    [
        ("{}", 1.0, "rule", "is empty"),
        ('{"HSGPA": 0}', 1.0, "rule", "only weights of 0"),
        ('{"HSGPA": 1}', None, "threshold", "add --threshold NUMBER"),
        ('{"hsgpa": 1}', 1.0, "rule", "did you mean 'HSGPA'?"),
        ('{"HSGPA": 1, "HU": 2}', 1.0, "rule", "cannot see it; the planner sees HSGPA, SATV, SATM"),
        ('{"HSGPA": "2"}', 1.0, "rule.HSGPA", "is the text '2'"),
        ('{"HSGPA": true}', 1.0, "rule.HSGPA", "is true"),
        ('{"HSGPA": NaN}', 1.0, "rule.HSGPA", "not a number"),
        ('{"HSGPA": 1e999}', 1.0, "rule.HSGPA", "infinite"),
        ('{"HSGPA": 1, "HSGPA": 2}', 1.0, "rule", "twice"),
        ('{"weights": [1, 2]}', 1.0, "weights", "has 2 numbers, 5 expected"),
        ('{"weights": [0, 0, 0, 0, 0]}', 1.0, "weights", "are all 0"),
        ('{"weights": [1, 0, 0, 2, 0], "threshold": 1}', None, "weights", "cannot see it"),
        ('{"weights": 3, "threshold": 1}', None, "weights", "expected a list"),
        ('{"weights": [1, 0, 0, 0, 0], "treshold": 1}', None, "rule", "did you mean 'threshold'?"),
        ('{"weights": [1, 0, 0, 0, 0], "threshold": "1"}', None, "threshold", "is the text '1'"),
        ('{"weights": {"SATV": 1}, "view_weights": [1]}', 1.0, "view_weights", "leave them out"),
        ('{"mechanism": null, "gain": 0}', 1.0, "rule", "holds no rule"),
        ("{HSGPA: 2}", 1.0, "rule", "is not JSON"),
        ('{"a": ' * 20_000, 1.0, "rule", ""),
        ("no such file", 1.0, "rule", "give a file, or a rule such as"),
        ("\0", 1.0, "rule", "give a file, or a rule such as"),
    ],
)
def test_rules_that_cannot_be(rule, threshold, field, message):
    with pytest.raises(InputError) as caught:
        written_rule(Instance.load(STUDENTS), load_rule(rule), threshold)
    assert caught.value.field == field
    assert message in str(caught.value)


def test_a_view_takes_what_it_can_compute():
    sample = replace(Instance.load(VIEW), units=None)
    names = sample.feature_names
    row = dict(zip(names, sample.view.matrix[0].tolist(), strict=True))
    found = written_rule(sample, row, 1.0)
    by_view = Mechanism.on_view(sample, [1.0] + [0.0] * (len(sample.view.matrix) - 1), 1.0)
    assert recount(sample, found.mechanism).gain == recount(sample, by_view).gain
    hidden = next(name for name in names if not row[name])
    alone = next(name for name in names if row[name])
    with pytest.raises(InputError, match="mipmech show says what it sees"):
        written_rule(sample, {**row, alone: 3.0, hidden: 0.0}, 1.0)


def test_the_rule_printed_for_a_view_of_short_rows_is_on_the_view():
    """Rows that a person wrote: 100 gpa + sat, and gpa is worth 100 points wherever it stands."""
    rng = np.random.default_rng(2)
    agents = np.column_stack([rng.normal(500, 90, 50), rng.normal(3, 0.5, 50)])
    sample = Instance.from_arrays(
        agents, [0.001, 0.4], view=[[1.0, 100.0]], cost=0.02, features=["sat", "gpa"]
    )
    for digits in (None, 1, 2, 5):
        rule = printed(certify(sample).recount, digits)
        assert rule.weights == {"sat": 1, "gpa": 100}
        assert rule.off == 0


def test_a_view_of_long_rows_takes_a_rule_that_is_nearly_on_it():
    rows = [[0.1234567, 0.2345678, 1 / 3]]
    sample = Instance.from_arrays(
        [[1.0, 2.0, 3.0], [2.0, 1.0, 0.0], [0.0, 0.5, 1.0]], [1.0, 1.0, 0.5], view=rows, cost=1.0
    )
    rule = printed(best_threshold(sample, Mechanism.on_view(sample, [1.0], 0.0)))
    weights = {name: float(w) for name, w in rule.weights.items()}
    found = grade(sample, written_rule(sample, weights, float(rule.threshold)))
    assert 0 < found.rule.off <= 1e-3
    assert found.recount.gain == rule.gain
    with pytest.raises(InputError, match="no combination of what the planner sees"):
        written_rule(sample, {**weights, "x0": weights["x0"] * 1.01}, 1.0)


# ------------------------------------------------------------------ at the command line


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_grade_in_words_and_as_json(capsys, tmp_path):
    rule = ("--rule", '{"HSGPA": 2, "SATV": 3}', "--threshold", "3.5")
    picture, students = tmp_path / "rule.png", tmp_path / "students.json"
    replace(Instance.load(STUDENTS), units=None).save(students)
    status, out, err = run(capsys, "grade", students, *rule, "--plot", picture)
    assert (status, err) == (0, "")
    for words in (
        "accept if 2 HSGPA +3 SATV ≥ 3.5",
        "agents 2, 4, 13",
        "best for these weights is",
    ):
        assert words in out
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert picture.stat().st_size > 5000
    status, out, err = run(capsys, "grade", students, *rule, "--json")
    assert (status, err) == (0, "")
    shown = json.loads(out)
    sample = Instance.load(students)
    graded = recount(sample, Mechanism((2.0, 3.0, 0.0, 0.0, 0.0), 3.5))
    assert Fraction(shown["gain_exact"]) == graded.gain
    assert shown["covered"] == graded.covered.tolist()
    assert shown["rule"] == {"weights": {"HSGPA": 2.0, "SATV": 3.0}, "threshold": 3.5}
    assert shown["share"]["lower"] <= float(graded.gain) / sample.known.upper
    assert shown["share"]["upper"] >= float(graded.gain) / sample.known.lower
    better = (
        "--rule",
        json.dumps(shown["rule"]),
        "--threshold",
        shown["best_threshold"]["threshold"],
    )
    status, out, _ = run(capsys, "grade", students, *better, "--json")
    assert json.loads(out)["gain"] == shown["best_threshold"]["gain"] > shown["gain"]


def test_a_rule_from_a_file_against_a_certificate(capsys, tmp_path):
    path, proof = tmp_path / "sample.json", tmp_path / "proof.json"
    sample = make_instance("gaussian-mixture", 20, 2, seed=1)
    sample.save(path)
    assert run(capsys, "certify", path, "--out", proof)[0] == 0
    status, out, _ = run(capsys, "grade", path, "--rule", proof, "--certified", proof, "--json")
    shown = json.loads(out)
    assert status == 0
    assert shown["share"]["lower"] >= 0.999
    assert shown["optimum"]["source"].endswith(", proved")
    status, out, _ = run(capsys, "grade", path, "--rule", '{"x0": 1}', "--threshold", 0)
    assert "--certified takes it" in " ".join(out.split())
    status, out, _ = run(capsys, "grade", path, "--rule", proof, "--threshold", -1000, "--json")
    assert json.loads(out)["gain"] == 0
    (tmp_path / "rule.json").write_text('{"weights": {"x0": 1, "nowhere": 1}, "threshold": 1}')
    status, out, err = run(capsys, "grade", path, "--rule", tmp_path / "rule.json")
    assert (status, out) == (2, "")
    assert str(tmp_path / "rule.json") in err


def test_a_certificate_that_was_not_checked_to_the_end_is_not_called_rejected(tmp_path):
    path, proof = tmp_path / "sample.json", tmp_path / "proof.json"
    make_instance("gaussian-mixture", 20, 2, seed=1).save(path)
    certify(Instance.load(path)).save(proof)
    with pytest.raises(InputError) as error:
        certified_optimum(proof, Instance.load(path), seconds=0.0)
    assert "was not checked to the end" in str(error.value)
    assert "no fault so far" in str(error.value)
    assert "rejected" not in str(error.value)
    assert certified_optimum(proof, Instance.load(path), seconds=1e6).source.endswith("proved")


def test_certificates_that_say_nothing_of_this_gain(capsys, tmp_path):
    proof, rule = tmp_path / "proof.json", ("--rule", '{"HSGPA": 1}', "--threshold", "1")
    sample = make_instance("gaussian-mixture", 20, 2, seed=1)
    certify(sample).save(proof)
    assert "is rejected" in run(capsys, "grade", STUDENTS, *rule, "--certified", proof)[2]
    proof.write_text("[1]")
    assert "is not a certificate" in run(capsys, "grade", STUDENTS, *rule, "--certified", proof)[2]
    proof.write_text('{"claim": {"kind": "density"}}')
    assert (
        "not about the greatest gain"
        in run(capsys, "grade", STUDENTS, *rule, "--certified", proof)[2]
    )
    proof.unlink()
    status, out, err = run(capsys, "grade", STUDENTS, *rule, "--certified", proof)
    assert (status, out) == (2, "")
    assert "cannot be read" in err


def test_a_file_that_is_wrong_about_the_best_is_told(capsys, tmp_path):
    sample = make_instance("gaussian-mixture", 20, 2, seed=1)
    replace(sample, known=Known(0.0, 1e-9, "a guess")).save(tmp_path / "a.json")
    (tmp_path / "rule.json").write_text(json.dumps(certify(sample).to_dict()))
    status, out, _ = run(capsys, "grade", tmp_path / "a.json", "--rule", tmp_path / "rule.json")
    assert status == 1
    assert "contradicted: this rule gains more" in " ".join(out.split())


def test_a_certificate_is_its_own_optimum(tmp_path, capsys):
    sample = make_instance("gaussian-mixture", agents=20, rank=2, seed=1)
    sample.save(tmp_path / "a.json")
    certify(replace(sample, path=tmp_path / "a.json")).save(tmp_path / "proof.json")
    status, out, _ = run(capsys, "grade", tmp_path / "a.json", "--rule", tmp_path / "proof.json")
    assert status == 0
    assert "proved);thisisbetween99.9%and100%ofit" in "".join(out.split())


def test_a_printed_rule_is_read_back_from_its_json():
    sample = make_instance("gaussian-mixture", agents=20, rank=2, seed=1)
    rule = certify(sample).printed
    assert grade(sample, rule.to_dict()).recount.gain == rule.gain


def test_features_may_be_named_like_the_parts_of_a_rule():
    sample = Instance.from_arrays(
        [[0.0, 1.0]], [1.0, 1.0], visible=[0, 1], cost=1.0, features=["weights", "threshold"]
    )
    weights = {"weights": 1.0, "threshold": 0.5}
    rule = written_rule(sample, {"weights": weights, "threshold": 1.0})
    assert rule.mechanism == written_rule(sample, weights, 1.0).mechanism


def test_a_lone_feature_that_begins_with_a_digit_keeps_its_weight():
    sample = Instance.from_arrays([[0.0]], [1.0], visible=[0], cost=1.0, features=["1 2"])
    assert str(certify(sample).printed).startswith("1 1 2 ≥ ")


@given(st.data())
def test_no_threshold_that_is_called_best_is_below_ones_own(data):
    sample = data.draw(instances())
    found = grade(sample, data.draw(mechanisms(sample)))
    assert found.best is None or found.best[1].gain >= found.recount.gain


@pytest.mark.parametrize("table", [False, True])
def test_a_threshold_that_is_typed_is_in_the_units_of_the_table(table):
    """Weights that a result keeps are in the instance's numbers; what is typed never is."""
    sample = Instance.load(STUDENTS)
    assert sample.units is not None
    kept = certify(sample, gap=0.1).to_dict()
    usual = in_known_units(sample, Mechanism.from_dict(kept["mechanism"], sample))
    value = {"weights": dict(usual.weights)} if table else kept
    found = grade(sample, value, threshold=usual.threshold * 0.99)
    assert found.rule.threshold == usual.threshold * 0.99
    assert dict(found.rule.weights) == dict(usual.weights)


def test_rules_of_other_instances_and_files_without_rules_are_refused():
    sample, other = Instance.load(STUDENTS), make_instance("ties", 12, 2, seed=1)
    for kept in (certify(other).to_dict(), certify(other).content()):
        with pytest.raises(InputError, match="is for another instance"):
            written_rule(sample, kept)
    with pytest.raises(InputError, match="holds no rule"):
        written_rule(sample, other.to_dict())


def test_who_stands_on_the_threshold_is_in_the_json_and_no_share_of_nothing(capsys, tmp_path):
    sample = Instance.from_arrays(
        [[0.3], [0.3], [0.9]], [1.0], visible=[0], cost=1.0, known={"gain": [0.5, 0.6], "how": "-"}
    )
    sample.save(tmp_path / "a.json")
    rule = ("--rule", "x0=1", "--threshold", 0.3)
    status, out, _ = run(capsys, "grade", tmp_path / "a.json", *rule, "--json")
    shown = json.loads(out)
    assert (status, shown["on_threshold"], shown["moving_share"]) == (0, 2, 0.0)
    assert shown["share"] is None
    out = " ".join(run(capsys, "grade", tmp_path / "a.json", *rule)[1].split())
    assert "who moves nobody; 2 stand on the threshold, and pass without moving" in out
    assert "% of that" not in out


def test_rules_in_python():
    sample = Instance.load(STUDENTS)
    name = sample.feature_names[sample.view.columns[0]]
    found = grade(sample, {name: 1}, threshold=0.5)
    assert found.recount.gain == grade(sample, found.rule.mechanism).recount.gain
    with pytest.raises(InputError, match="rule: is the text 'gpa'; give weights by feature"):
        grade(sample, "gpa")
    with pytest.raises(InputError, match="threshold: is missing"):
        grade(sample, {name: 1})


def test_people_have_names(capsys, monkeypatch):
    sample = Instance.from_arrays(
        [[0.0], [0.5], [9.0]], [2.0], visible=[0], features=["sat"], cost=1.0
    )
    known = replace(sample, ids=("Ada", "Bob", "Eve"), units=Units((500.0,), (100.0,)))
    monkeypatch.setattr("mipmech.model.instance.Instance.load", lambda _: known)
    status, out, _ = run(capsys, "grade", "a.json", "--rule", '{"sat": 1}', "--threshold", "590")
    assert status == 0
    assert "66.7%: Ada, Bob" in out
    assert "sat +65" in out
    assert "accept if sat ≥ 590" in out
    assert "is 600, with a gain of 1" in out


GROUPED = {
    "features": ["x"], "visible": ["x"], "cost": 1.0, "weights": [1.0, 2.0, 1.0, 0.0],
    "groups": {"sex": ["f", "m", "f", "x"]},
}  # fmt: skip


def test_accepted_shares_of_groups_are_told(tmp_path, capsys):
    sample = Instance.from_arrays([[0.0], [0.5], [2.0], [2.0]], [1.0], **GROUPED)
    sample.save(tmp_path / "a.json")
    command = ["grade", str(tmp_path / "a.json"), "--rule", "x=1", "--threshold", "1.25"]
    assert main(command) == 0
    assert "by sex     f: 50.0%, m: 100.0%; 50.0 points apart\n" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["groups"] == {"sex": {"f": 0.5, "m": 1.0}}
    assert told == {
        **grade(sample, {"x": 1}, threshold=1.25).to_dict(),
        "plot": None,
        "movers": None,
    }


def test_sizes_of_groups_are_shown(tmp_path, capsys):
    sample = Instance.from_arrays([[0.0], [0.5], [2.0], [2.0]], [1.0], **GROUPED)
    sample.save(tmp_path / "a.json")
    assert main(["show", str(tmp_path / "a.json")]) == 0
    assert "by sex     f: 50.0%, m: 50.0%, x: 0.0%\n" in capsys.readouterr().out
    assert main(["show", str(tmp_path / "a.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["groups"] == {"sex": {"f": 0.5, "m": 0.5, "x": 0.0}}


def test_many_groups_are_told_in_few_words(tmp_path, capsys):
    agents = [[float(i)] for i in range(20)]
    groups = {"a very long name of schools": [f"no, {i}" for i in range(20)],
              "a very long name of hools": range(20), "all": ["x"] * 20}  # fmt: skip
    kept = {"features": ["x"], "visible": ["x"], "cost": 1.0}
    Instance.from_arrays(agents, [1.0], groups=groups, **kept).save(tmp_path / "a.json")
    file = str(tmp_path / "a.json")
    assert main(["show", file]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "by a very…schools no, 0: 5.0%; no, 1: 5.0%; no, 10: 5.0%; " in shown
    assert "; 13 more" in shown
    assert main(["grade", file, "--rule", "x=1", "--threshold", "10"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "no, 0: 0.0%; no, 10: 100.0%; 18 more between; 100.0 points apart" in shown
    assert "by all x: 55.0% who moves" in shown


def test_names_that_are_cut_alike_are_told_apart():
    shares = {"aaaaaaaa 1 bbbbbbbb": {"x": Fraction(1)}, "aaaaaaaa 2 bbbbbbbb": {"x": Fraction(1)}}
    assert len(rate_entries(shares)) == len(size_entries(shares)) == 2


PUPILS = Instance.from_arrays(
    [[3.0, 1.0], [2.0, 2.0], [1.0, 3.0], [0.0, 0.0]], [1.0, 0.5], features=["gpa", "sat"],
    visible=["gpa", "sat"], cost=1.0, groups={"school": ["n", "n", "s", "s"]},
)  # fmt: skip


def test_a_rule_is_held_against_requirements():
    demanded = {"accepted": [0, 0.25], "parity": {"groups": "school", "within": 0.25}}
    graded = grade(PUPILS, {"gpa": 1.0}, threshold=2.5, require=demanded)
    missed = {failure.field: failure.by for failure in graded.failures}
    assert missed == {"accepted": Fraction(1, 4), "parity": Fraction(3, 4)}
    content = graded.to_dict()
    assert content["met"] is False
    assert [failure["requirement"] for failure in content["failures"]] == ["accepted", "parity"]
    met = grade(PUPILS, {"gpa": 1.0}, threshold=2.5, require={"nonnegative": "all"})
    assert met.to_dict()["met"] is True
    assert met.best is not None
    assert "met" not in grade(PUPILS, {"gpa": 1.0}, threshold=2.5).to_dict()


def test_the_best_threshold_meets_the_requirements():
    found = grade(PUPILS, {"gpa": 1.0}, threshold=9.0, require={"accepted": [0.5, 0.5]})
    assert found.best is not None
    assert found.best[1].accepted_share == Fraction(1, 2)


def test_a_certificate_with_requirements_is_for_rules_under_the_same(tmp_path):
    path, proof = tmp_path / "pupils.json", tmp_path / "proof.json"
    PUPILS.save(path)
    sample = Instance.load(path)
    demanded = Requirements(accepted=[0, 0.25])
    certify(sample, require=demanded).save(proof)
    with pytest.raises(InputError, match="give the same ones"):
        certified_optimum(proof, sample, seconds=1e6)
    optimum = certified_optimum(proof, sample, seconds=1e6, require=demanded)
    outside = grade(sample, {"gpa": 1.0, "sat": 1.0}, threshold=4.9, optimum=optimum,
                    require=demanded)  # fmt: skip
    # It gains more than any rule that is allowed, and is none of them.
    assert outside.recount.gain > Fraction(optimum.upper)
    assert outside.failures
    assert not outside.contradicted
    assert outside.share is None

"""Requirements in comparisons and plans: who meets them, what a job is, what is recorded."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

import mipmech
from mipmech import Budget, InputError, Instance, Mechanism, Oracle, certify, recount
from mipmech.model.geometry import geometry_of
from mipmech.model.requirements import Own, Requirements
from mipmech.oracles.registry import as_oracle
from mipmech.report.reading import read
from mipmech.studies.batch import (
    Plan,
    RunFolder,
    expand,
    export_run,
    merge_runs,
    run_plan,
    status_of,
)
from mipmech.studies.batch.asking import ComparisonSettings, Reference, reduced
from mipmech.studies.batch.records import instance_file
from mipmech.studies.comparison.compare import compare
from tests.batches import HEAD, lines, write_plan
from tests.conftest import ROOT
from tests.requirements_brute_force import best_gain

FEATURES = ("verbal", "math", "effort")
SIGNS = {"nonnegative": "all", "accepted": [0.1, 0.5]}
FAIR = {"parity": {"groups": "sex", "within": 0.05}, "accepted": [0.2, 1.0]}
# Two groups of different sizes, of which no rule can accept exactly half each.
IMPOSSIBLE = {"parity": {"groups": "sex", "within": 0.0}, "accepted": [0.5, 0.5]}
# Every rule makes agents worse, and some must be accepted.
HARMFUL = {"nonpositive": ["verbal"], "nonnegative": ["math"], "accepted": [0.3, 1.0]}


def sample(seed=0, agents=15, features=FEATURES, name=None, groups=True):
    rng = np.random.default_rng(seed)
    labels = ["men" if i % 3 else "women" for i in range(agents)]
    return Instance.from_arrays(
        rng.normal(size=(agents, 3)).round(2), [1.0, -0.5, 0.5], visible=[0, 1], cost=2.0,
        groups={"sex": labels} if groups else None, features=list(features),
        name=name or f"sample-{seed}",
    )  # fmt: skip


def asked(require, samples=None, oracles=("cells", "random"), **options):
    options = {"eta_fractions": (0.9, 0.5), "seeds": (0,), "workers": 1} | options
    return compare(samples or [sample()], oracles, require=require, **options)


@dataclass(frozen=True)
class Careless(Oracle):
    """An exact oracle that does not look at requirements."""

    def __call__(self, geometry, eta, budget: Budget):
        found = as_oracle("cells")(replace(geometry, demands=None), eta, budget)
        return replace(found, oracle=repr(self))


# ------------------------------------------------------------------ comparisons


@pytest.mark.parametrize("require", [SIGNS, FAIR, HARMFUL])
def test_everything_is_about_the_rules_that_are_allowed(require):
    instance = sample()
    demands = geometry_of(instance, require).demands
    found = asked(require, [instance], ["cells", "random", Careless()])
    gain = found.problems[0].gain
    proof = certify(instance, require=require)
    assert found.complete
    assert found.violations == []
    assert gain.level == "proved"
    # Two certificates of one optimum.
    assert max(gain.lower, float(proof.lower)) <= min(gain.upper, proof.upper)
    rule = recount(instance, Mechanism.from_dict(gain.best, instance))
    assert demands.failures(rule) == []
    assert gain.accepted == pytest.approx(float(rule.accepted_share))
    assert (gain.rates is None) == ("parity" not in require)
    for run in found.runs:
        assert run.error is None
        if run.gain is not None:
            best = recount(instance, Mechanism.from_dict(run.mechanism, instance))
            assert demands.failures(best) == []
            assert run.gain == pytest.approx(float(best.gain))
            assert run.gain <= gain.upper
        for call in run.calls:
            assert call.missed is None or call.lower == 0


def test_references_hold_the_true_optimum():
    instance = sample(3, agents=6)
    for require in (SIGNS, FAIR, HARMFUL):
        labels = instance.groups["sex"].members.tolist()
        best = best_gain(instance, require, labels)
        bounds = asked(require, [instance], ["random"]).problems[0].gain
        assert bounds.lower <= best.at_most + 1e-9
        assert best.surely - 1e-9 <= bounds.upper


def test_answers_that_are_not_allowed_count_as_none():
    instance = sample()
    found = asked(SIGNS, [instance], [Careless()])
    demands = geometry_of(instance, SIGNS).demands
    calls = [call for run in found.runs for call in run.calls]
    assert any(call.missed for call in calls)
    for call in calls:
        alone = as_oracle("cells")(geometry_of(instance), call.eta, Budget(5.0))
        assert (call.missed is None) == demands.met(alone.recount)
        assert call.lower == (0.0 if call.missed else pytest.approx(float(alone.density)))
    rows = [dict(zip(found.to_frame().columns, row, strict=True)) for row in found.rows()]
    assert [row["missed"] for row in rows] == [call.missed for call in calls]


def test_no_rule_at_all_is_a_result(tmp_path):
    found = asked(IMPOSSIBLE, [sample()], ["cells", "random", Careless()], out=tmp_path)
    gain = found.problems[0].gain
    assert (gain.lower, gain.upper, gain.level) == (None, None, "proved")
    assert gain.infeasible
    assert gain.closed
    assert found.complete
    assert found.violations == []
    assert [run.gain for run in found.runs] == [None] * 3
    assert found.gains("random") == {}
    assert found.summary("cells").gain is None
    content = json.loads(json.dumps(found.to_dict()))
    assert content["problems"][0]["gain"]["upper"] is None
    assert content["settings"]["requirements"]["accepted"] == [0.5, 0.5]
    (record,) = [
        record
        for record in RunFolder.open(tmp_path).records().last.values()
        if record.task == "reference" and record.options["eta_fraction"] is None
    ]
    assert (record.status, record.bounds.status) == ("done", "infeasible")
    assert (record.lower, record.upper, record.gap) == (None, None, None)


def test_a_rule_where_none_should_be_is_seen():
    found = asked(IMPOSSIBLE)
    with_rule = replace(found.runs[0].calls[0], gain=0.1)
    forged = replace(found, runs=(replace(found.runs[0], calls=(with_rule,)), *found.runs[1:]))
    assert [v.what for v in forged.violations] == [
        "gain, where no rule should meet the requirements"
    ]


def test_shares_of_bounds_that_are_missing_or_below_0():
    harmful = Reference(-0.2, 0.0, "proved", 0.1)
    assert (harmful.gap, harmful.closed, harmful.share(-0.2)) == (1.0, False, 0.0)
    unknown = Reference(None, 0.5, "attested", 0.1)
    assert (unknown.gap, unknown.closed, unknown.infeasible) == (1.0, False, False)
    assert unknown.share(None) == 0.0
    assert Reference(0.0, 0.0, "proved", 0.1).share(0.0) == 1.0


def test_where_no_rule_has_an_eta_there_is_nothing_to_find():
    """Of the two directions with this η in the plane, none has its weights at least 0."""
    found = asked({"nonnegative": "all"}, [sample()], eta_fractions=(0.97,))
    empty = replace(found.problems[0].densities[0], lower=0.0, upper=0.0)
    changed = replace(found.problems[0], densities=(empty,))
    silent = {"lower": 0.0, "upper": None, "status": "gap"}
    calls = [replace(call, **silent) for run in found.runs for call in run.calls]
    runs = tuple(replace(r, calls=(c,)) for r, c in zip(found.runs, calls, strict=True))
    forged = replace(found, problems=(changed,), runs=runs)
    assert forged.questions == []
    assert forged.qualities("random") == {}
    assert forged.summary("random").density is None
    assert forged.quality_over_time("random", [1.0]) == []
    assert forged.violations == []
    higher = replace(runs[0], calls=(replace(calls[0], lower=0.5),))
    assert len(replace(forged, runs=(higher, *runs[1:])).violations) == 1


def test_what_a_file_states_is_about_all_rules():
    instance = Instance.load(ROOT / "instances" / "tiny" / "two-on-a-line.json")
    assert instance.known is not None
    free = asked(None, [instance], ["random"])
    bound = asked({"accepted": [0.0, 0.0]}, [instance], ["random"])
    assert free.problems[0].gain.lower > 0
    assert bound.problems[0].gain.lower == 0
    assert bound.doubts == ()


def test_only_what_was_asked_under_these_requirements_is_used_again(tmp_path):
    first = asked(SIGNS, out=tmp_path)
    count = len(lines(tmp_path))
    again = asked(Requirements.of(SIGNS), out=tmp_path)
    assert len(lines(tmp_path)) == count
    assert again.to_dict()["runs"] == first.to_dict()["runs"]
    other = asked(FAIR, out=tmp_path)
    assert len(lines(tmp_path)) == 2 * count
    free = asked(None, out=tmp_path)
    assert len(lines(tmp_path)) == 3 * count
    # Each has its own results only, also read back from the folder.
    assert other.settings.requirements["parity"] == FAIR["parity"]
    assert "requirements" not in free.settings.to_dict()
    assert len({str(f.problems[0].gain.best) for f in (first, other, free)}) == 3
    assert read(tmp_path).comparisons[0].problems[0].gain == free.problems[0].gain
    asked(FAIR, out=tmp_path)
    assert read(tmp_path).comparisons[0].problems[0].gain == other.problems[0].gain


def test_a_file_and_its_content_are_one(tmp_path):
    file = tmp_path / "wanted.toml"
    file.write_text('nonnegative = "all"\naccepted = [0.1, 0.5]\n')
    asked(SIGNS, out=tmp_path / "out")
    count = len(lines(tmp_path / "out"))
    asked(file, out=tmp_path / "out")
    assert len(lines(tmp_path / "out")) == count
    assert asked({}).settings.requirements is None


@pytest.mark.parametrize(
    ("require", "field", "said"),
    [
        ({"nonnegative": ["mathh"]}, "requirements.nonnegative", "did you mean 'math'"),
        ({"nonnegative": ["effort"]}, "requirements.nonnegative", "does not see"),
        ({"parity": {"groups": "race", "within": 0.1}}, "requirements.parity", "'race'"),
        ({"nonnegative": "all", "nonpositive": "all"}, "requirements", "contradict"),
        ({"acepted": [0, 1]}, "acepted", "did you mean 'accepted'"),
        (Requirements(own=Own(lambda _: None, lambda _: True)), "require", "of your own"),
    ],
)
def test_requirements_that_make_no_sense_are_refused_before_the_work(
    tmp_path, require, field, said
):
    with pytest.raises(InputError, match=said) as error:
        asked(require, [sample(1, name="the second"), sample(2)], out=tmp_path)
    assert error.value.field == field
    if field.startswith("requirements"):
        assert "the second" in error.value.message
    assert not (tmp_path / "records.jsonl").exists()
    assert not list(tmp_path.glob("instances/*"))


def test_one_instance_without_the_groups_is_named():
    with pytest.raises(InputError, match=r"has no 'groups'.*instance alone"):
        asked(FAIR, [sample(), sample(1, name="alone", groups=False)])


def test_names_of_features_are_looked_up_anew(tmp_path):
    """A file with its names changed has the same digest; its jobs are others all the same."""
    require = {"nonpositive": ["verbal"], "accepted": [0.2, 0.8]}
    one, other = sample(), sample(features=("math", "verbal", "effort"))
    assert one.digest == other.digest
    first = asked(require, [one], out=tmp_path)
    count = len(lines(tmp_path))
    second = asked(require, [other], out=tmp_path)
    assert len(lines(tmp_path)) == 2 * count
    assert first.problems[0].best["weights"][0] <= 0
    assert second.problems[0].best["weights"][1] <= 0
    assert second.problems[0].gain.upper != first.problems[0].gain.upper
    assert Instance.load(tmp_path / instance_file(one.digest)).features == other.features
    with pytest.raises(InputError, match="under other names"):
        asked(require, [one, other])
    assert asked(SIGNS, [one, other]).complete  # which needs no names
    assert reduced(other).instance.features == other.features


@pytest.mark.slow
def test_workers_get_the_requirements():
    here = asked(FAIR, [sample(), sample(1)])
    there = asked(FAIR, [sample(), sample(1)], workers=2)
    assert [p.gain.best for p in here.problems] == [p.gain.best for p in there.problems]
    assert [run.mechanism for run in here.runs] == [run.mechanism for run in there.runs]


def test_settings_without_requirements_read_as_before():
    content = ComparisonSettings(("cells",)).checked().to_dict()
    assert "requirements" not in content


# ------------------------------------------------------------------ plans


def plan_of(tmp_path, text, tasks='[[tasks]]\ntask = "certify"\n'):
    for seed in (0, 1):
        sample(seed).save(tmp_path / f"sample-{seed}.json")
    head = HEAD + text + "\n[[instances]]\nfiles = 'sample-*.json'\n"
    return Plan.load(write_plan(tmp_path, head + tasks))


def required_in(plan):
    return [piece.options.get("requirements") for piece in plan.pieces]


WRITTEN = '[requirements]\nnonnegative = "all"\naccepted = [0.1, 0.5]\n'
# As a record has it.
RECORDED = {"format": "mipmech/requirements@1", **SIGNS}
EVERY_TASK = """
[[tasks]]
task = "certify"
[[tasks]]
task = "solve"
oracle = "cells"
[[tasks]]
task = "oracle"
oracle = "cells"
eta_fraction = 0.5
[[tasks]]
task = "compare"
oracles = "random"
seeds = 0
eta_fractions = 0.5
seconds = 1
"""


def test_a_table_for_all_tasks(tmp_path):
    plan = plan_of(tmp_path, WRITTEN, EVERY_TASK)
    assert required_in(plan) == [RECORDED] * 6
    assert plan.comparisons[0].requirements == RECORDED
    json.dumps(expand(plan).to_dict())


def test_a_task_says_something_else(tmp_path):
    (tmp_path / "fair.toml").write_text('parity = {groups = "sex", within = 0.05}\n')
    tasks = """
[[tasks]]
task = "certify"
[[tasks]]
task = "certify"
require = "fair.toml"
[[tasks]]
task = "certify"
[tasks.requirements]
accepted = [0, 0.5]
[[tasks]]
task = "certify"
requirements = {}
"""
    found = required_in(plan_of(tmp_path, WRITTEN, tasks))
    assert found[0] == RECORDED
    assert found[1]["parity"] == {"groups": "sex", "within": 0.05}
    assert found[2] == {"format": RECORDED["format"], "accepted": [0.0, 0.5]}
    assert found[3] is None
    (tmp_path / "sub").mkdir()
    plan = plan_of(tmp_path, "require = 'fair.toml'\n", tasks.replace("fair", "./fair"))
    assert required_in(plan)[0] == found[1]


def test_ids_hang_on_requirements(tmp_path):
    def ids(text):
        return {job.id for job in expand(plan_of(tmp_path, text)).jobs}

    free, signs = ids(""), ids(WRITTEN)
    assert ids("[requirements]\n") == free
    (tmp_path / "same.json").write_text(json.dumps(SIGNS))
    assert ids("require = 'same.json'\n") == signs
    others = [
        '[requirements]\nnonnegative = "all"\n',
        '[requirements]\nnonnegative = "all"\naccepted = [0.1, 0.6]\n',
        '[requirements]\nnonpositive = "all"\naccepted = [0.1, 0.5]\n',
        '[requirements]\nnonnegative = ["verbal"]\n',
    ]
    found = [free, signs, *map(ids, others)]
    assert len(set().union(*found)) == 2 * len(found)


@pytest.mark.parametrize(
    ("text", "tasks", "field", "said"),
    [
        ("[requirements]\nacepted = [0, 1]\n", "", "requirements.acepted", "did you mean"),
        ("[requirements]\naccepted = [0, 2]\n", "", "requirements.accepted", "from 0 to 1"),
        ("requirements = 3\n", "", "requirements", "give a table"),
        ("require = 'none.toml'\n", "", None, "none.toml"),
        ("require = 'x.toml'\n" + WRITTEN, "", "require", "one of the two"),
        ("", "requirements = {order = [[1]]}\n", "tasks[1].requirements.order", "not a pair"),
        (WRITTEN, "require = 7\n", "tasks[1].require", "is"),
    ],
)
def test_faults_are_named(tmp_path, text, tasks, field, said):
    with pytest.raises(InputError) as error:
        plan_of(tmp_path, text, '[[tasks]]\ntask = "certify"\n' + tasks)
    assert error.value.field == field
    assert said in str(error.value)


def test_a_plan_whose_requirements_do_not_fit_an_instance(tmp_path):
    plan = plan_of(tmp_path, "[requirements]\nnonnegative = ['maths']\n")
    with pytest.raises(InputError, match=r"did you mean 'math'.*instance sample-0") as error:
        run_plan(plan, tmp_path / "run", workers=1)
    assert error.value.field == "requirements.nonnegative"
    assert error.value.file == str(tmp_path / "plan.toml")


@pytest.mark.slow
def test_certificates_under_requirements_in_a_batch(tmp_path):
    tasks = """
[[tasks]]
task = "certify"
requirements = { parity = { groups = "sex", within = 0.0 }, accepted = [0.5, 0.5] }
[[tasks]]
task = "certify"
requirements = { nonpositive = ["verbal"], nonnegative = ["math"], accepted = [0.3, 1.0] }
[[tasks]]
task = "certify"
"""
    plan = plan_of(tmp_path, WRITTEN, tasks)
    for k in (1, 2):
        run_plan(plan, tmp_path / str(k), workers=1, part=(k, 2))
    merge_runs([tmp_path / "1", tmp_path / "2"], tmp_path / "all")
    assert status_of(tmp_path / "all").counts == {"done": 6}
    assert run_plan(plan, tmp_path / "all", workers=1).done == 0
    folder = RunFolder.open(tmp_path / "all")
    for record in folder.records().last.values():
        instance = folder.instance(record.instance.digest)
        proof = certify(instance, require=record.requirements)
        assert record.bounds.status == proof.status
        assert record.infeasible == proof.infeasible
        if not proof.infeasible:
            rule = Mechanism.from_dict(record.result["mechanism"], instance)
            demands = geometry_of(instance, record.requirements).demands
            assert demands.failures(recount(instance, rule)) == []
            assert record.result["accepted"] == float(recount(instance, rule).accepted_share)
            assert record.lower <= record.upper
        assert mipmech.check(tmp_path / "all" / record.certificate).accepted
    states = {record.bounds.status for record in folder.records().last.values()}
    assert "infeasible" in states
    table = list(csv.DictReader(io.StringIO(export_run(tmp_path / "all", None))))
    none = [row for row in table if row["outcome"] == "infeasible"]
    assert {(row["lower"], row["upper"], row["gap"], row["status"]) for row in none} == {
        ("", "", "", "done")
    }
    assert all("requirements" in json.loads(row["options"]) for row in table)


@pytest.mark.slow
def test_no_rule_is_recorded_that_is_not_allowed(tmp_path):
    """A job either ends with a rule that meets the requirements, or fails and says so."""
    tasks = EVERY_TASK + "[[tasks]]\ntask = 'certify'\nengine = 'milp'\n"
    run_plan(plan_of(tmp_path, WRITTEN, tasks), tmp_path / "run", workers=1)
    folder = RunFolder.open(tmp_path / "run")
    for record in folder.records().last.values():
        assert record.status in ("done", "failed")
        if record.status == "failed":
            assert record.task in ("solve", "oracle", "certify")
            assert "RequirementsMissed" in record.reason
            continue
        rule = record.result.get("mechanism") or record.result.get("best")
        if rule is not None:
            instance = folder.instance(record.instance.digest)
            demands = geometry_of(instance, record.requirements).demands
            assert demands.failures(recount(instance, Mechanism.from_dict(rule, instance))) == []

"""Comparisons: the same questions for all, graded by the truth, held against proofs."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import mipmech
from mipmech import (
    Budget,
    InputError,
    Instance,
    Mechanism,
    ask,
    certify,
    certify_density,
    make_instance,
    recount,
)
from mipmech.cli import main
from mipmech.model import reduce
from mipmech.oracles.registry import oracle_named
from mipmech.report import reading as report_reading
from mipmech.studies.batch import RunFolder
from mipmech.studies.batch.asking import CLOSED, ComparisonSettings, Reference
from mipmech.studies.comparison.compare import compare, sources_of
from mipmech.studies.comparison.results import CALLS
from mipmech.studies.spread import Spread
from tests.conftest import ROOT
from tests.terminal import read_on

SMALL = ROOT / "instances" / "small"
MIXTURE = SMALL / "gaussian-mixture-m40-k4-s2.json"
ETAS = (1.0, 0.8, 0.3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("compared")


@pytest.fixture(scope="module")
def found(folder):
    hidden = Instance.from_arrays(
        [[0.0, 1.0, 0.5], [2.0, 0.0, 1.0]], [0.0, 0.0, 1.0], visible=[0, 1], cost=1.0, name="p = 0"
    )
    tiny = ROOT / "instances" / "tiny" / "two-on-a-line.json"
    return compare(
        [MIXTURE, "ties-m20-k3-s1", hidden, tiny],
        ["cells", "ransac", "random", "projection", "sweep", "cells-soft"],
        eta_fractions=ETAS, seeds=(0, 1), workers=1, out=folder,
    )  # fmt: skip


def test_everything_is_asked_once(found):
    assert found.complete
    assert [problem.name for problem in found.problems][1:3] == ["ties-m20-k3-s1", "p = 0"]
    asked = [(run.instance, run.oracle, run.seed) for run in found.runs]
    assert len(set(asked)) == len(asked) == 4 * (4 + 2 * 2)
    for run in found.runs:
        assert run.error is not None or [call.eta_fraction for call in run.calls] == list(ETAS)
        assert (run.seed is not None) == (run.oracle in ("ransac", "random"))


def test_answers_are_those_of_the_oracles(found):
    instance = Instance.load(MIXTURE)
    geometry = reduce(instance)
    for run in found.runs_of("ransac", found.problems[:1]):
        for call in run.calls:
            again = ask(geometry, call.eta, oracle=_asked(run), budget=Budget(60.0))
            assert call.lower == pytest.approx(float(again.density))
            assert call.upper is None
            assert call.trace == tuple(sorted(call.trace))
            assert call.trace[-1][1] <= call.lower
        rule = Mechanism.from_dict(run.mechanism, instance)
        assert run.gain == pytest.approx(float(recount(instance, rule).gain))
        assert 0 < run.gain_two <= run.gain


def _asked(run):
    return oracle_named(run.oracle, seed=run.seed)


def test_references_are_proved_and_never_beaten(found):
    assert found.violations == []
    for problem in found.problems:
        assert problem.gain.level == "proved"
        assert problem.gain.closed
        for bounds in problem.densities:
            assert bounds.lower <= bounds.upper
    exact = found.qualities("cells", found.problems[:2])
    assert all(q == [1.0] for q in exact.values())
    assert len(exact) == 2 * 2  # at η = ‖P w_f‖ there is nothing to choose


def test_a_violated_bound_is_seen(found):
    problem = found.problems[0]
    for change in (
        {"densities": tuple(replace(b, upper=b.upper / 2, lower=0.0) for b in problem.densities)},
        {"gain": replace(problem.gain, upper=problem.gain.upper / 10, lower=0.0)},
    ):
        forged = replace(found, problems=(replace(problem, **change), *found.problems[1:]))
        assert {v.instance for v in forged.violations} == {problem.digest}
        assert all(v.value > v.upper for v in forged.violations)


def test_oracles_that_cannot_answer_say_so(found):
    lost = [run for run in found.runs if run.error is not None]
    assert {run.oracle for run in lost} == {"sweep"}
    assert "circle" in lost[0].error or "rank" in lost[0].error or lost[0].error
    assert found.summary("sweep").failures == len(lost)


def test_summaries_show_the_spread(found):
    for name in ("ransac", "random"):
        summary = found.summary(name)
        assert summary.calls == 4 * 2 * len(ETAS)
        assert summary.density.min <= summary.density.median <= summary.density.max <= 1
        assert summary.seed_spread.count == 6  # with those where nothing is visible
        assert summary.gain.count == 4 * 2
    assert found.summary("cells").seed_spread is None
    assert found.summary("cells-soft").density is None
    assert found.summary("cells-soft").gain.median >= found.summary("cells").gain.median - CLOSED
    profile = found.profile("random")
    assert profile["best"] <= profile["median"] <= profile["worst"]
    late = found.quality_over_time("ransac", [0.0, 1e-3, 1e9])
    assert [s.median for s in late] == sorted(s.median for s in late)
    assert late[-1].median == found.summary("ransac").density.median


def test_nothing_visible_and_one_direction(found):
    hidden, line = found.problems[2:]
    assert (hidden.gain.lower, hidden.gain.upper) == (0, 0)
    assert found.gains("cells", [hidden])[hidden.digest] == [1.0]
    statuses = {call.status for run in found.runs_of("cells", [line]) for call in run.calls}
    assert statuses == {"optimal", "infeasible"}
    assert found.qualities("cells", [line]) == {}


def again(folder):
    """The comparison that a run's folder holds."""
    (found,) = report_reading.read(folder).comparisons
    return found


def figures(found):
    """Everything but times."""
    runs = [
        (
            run.instance, run.oracle, run.seed, run.record, run.error, run.mechanism,
            [(c.eta_fraction, c.lower, c.upper, c.status, c.gain, c.gain_two) for c in run.calls],
        )
        for run in found.runs
    ]  # fmt: skip
    problems = [
        (p.digest, p.name, p.group, p.gain.lower, p.gain.upper, p.gain.level, p.gain.best,
         [(b.lower, b.upper, b.level) for b in p.densities])
        for p in found.problems
    ]  # fmt: skip
    return runs, problems, found.settings, found.doubts, found.complete


def test_the_record_comes_back(found, folder):
    back = again(folder)
    assert figures(back) == figures(found)
    assert back.runs == found.runs
    assert repr(back) == repr(found)
    for problem in back.problems:
        copy = Instance.load(folder / problem.file)
        assert copy.digest == problem.digest


def test_what_is_on_record_is_not_done_again(found, folder):
    told = []
    same = compare(
        [MIXTURE, "ties-m20-k3-s1", *(Instance.load(folder / p.file) for p in found.problems[2:])],
        ["cells", "ransac", "random", "projection", "sweep", "cells-soft"],
        eta_fractions=ETAS, seeds=(0, 1), workers=1, out=folder, watch=told.append,
    )  # fmt: skip
    assert told[-1].done == told[0].done == told[0].total
    assert same.runs == found.runs


def test_bounds():
    bounds = Reference(0.3, np.nextafter(0.3, 1), "proved", 0.0)
    assert bounds.closed
    assert bounds.share(0.3) == 1
    assert bounds.share(0.15) == pytest.approx(0.5)
    assert Reference(0.0, 0.0, "proved", 0.0).share(0.0) == 1
    assert not Reference(0.3, 0.4, "proved", 0.0).closed
    assert Spread.of([]) is None
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(1, 1.5, 2, 2.5, 3, 3)


@pytest.mark.slow
def test_workers_change_nothing_but_the_time():
    samples = [make_instance("gaussian-mixture", 25, 3, seed) for seed in (1, 2)]
    one, two = (
        compare(samples, ["ransac", "cells"], seeds=[0], eta_fractions=[0.5], workers=n)
        for n in (1, 2)
    )
    assert figures(one) == figures(two)


def test_frames_and_pictures(found):
    frame = found.to_frame()
    assert list(frame.columns) == list(CALLS)
    assert len(frame) == sum(len(run.calls) or 1 for run in found.runs)
    assert found.plot().axes


def test_progress_is_told():
    told = []
    sample = make_instance("uniform-ball", 15, 2, seed=1)
    compare([sample], ["random"], seeds=[0], eta_fractions=[0.5], workers=1, watch=told.append)
    assert [p.done for p in told] == [0, 1, 2, 3]
    assert {p.total for p in told} == {3}
    assert told[-1].left == 0
    assert told[0].left > 0
    assert sample.name in told[1].note


def test_no_time_leaves_an_empty_record():
    found = compare(
        [make_instance("uniform-ball", 15, 2, seed=1)], ["random"], workers=1, budget=Budget(0.0)
    )
    assert not found.complete
    assert (found.problems, found.runs, found.violations) == ((), (), [])


def test_runs_whose_references_did_not_come_are_kept(tmp_path):
    sample = make_instance("uniform-ball", 15, 2, seed=1)
    compare([sample], ["random"], eta_fractions=[0.9, 0.5], seeds=[0], workers=1, out=tmp_path)
    records = tmp_path / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(b"".join(line for line in lines if b'"task":"ask"' in line))
    found = again(tmp_path)
    (problem,), (run,) = found.problems, found.runs
    assert not found.complete
    assert problem.digest == run.instance == sample.digest
    assert [bounds.upper for bounds in problem.densities] == [1.0, 1.0]
    assert problem.gain.upper == mipmech.theory.gain_ceiling(sample)
    assert found.qualities("random") == {}
    assert found.summary("random").unknown.median == 1
    assert found.violations == []


def test_an_open_reference_takes_what_the_file_states():
    from mipmech.model import Known

    sample = make_instance("uniform-ball", 60, 5, seed=1)

    def compared(upper):
        stated = replace(sample, known=Known(0.01, upper, "somebody says so"))
        return compare(
            [stated], ["random"], seeds=[0], eta_fractions=[0.5], workers=1, reference_seconds=0.0
        )

    true = certify(sample, gap=0.3).upper
    found = compared(true)
    (problem,) = found.problems
    assert (problem.gain.level, problem.gain.upper) == ("stated", true)
    assert found.doubts == ()
    # A file that is wrong is named; its word does not count, and nothing is blamed on a proof.
    wrong = compared(0.001)
    (problem,) = wrong.problems
    assert problem.gain.level == "proved"
    assert wrong.violations == []
    (doubt,) = wrong.doubts
    assert "known: the greatest gain is said to be at most 0.001, but there is a rule with" in doubt


def test_an_open_density_takes_what_the_file_states():
    from mipmech.model import Known

    sample = make_instance("clustered-lines", 60, 7, seed=0)

    def compared(lower, upper):
        known = Known(0.0, 1.0, "somebody says so", ((0.5, lower, upper),))
        return compare(
            [replace(sample, known=known)], ["ransac"], seeds=[0], eta_fractions=[0.5, 0.2],
            workers=1, reference_seconds=0.0,
        )  # fmt: skip

    found = compared(0.8, 0.8)
    (problem,), (run,) = found.problems, found.runs
    known, unknown = problem.densities
    assert (known.level, known.lower, known.upper) == ("stated", 0.8, 0.8)
    assert (unknown.level, unknown.upper) == ("proved", 1.0)
    assert found.qualities("ransac") == {(sample.digest, 0.5): [run.calls[0].lower / 0.8]}
    assert (found.violations, found.doubts) == ([], ())
    # A file that is wrong is named, and nothing is blamed on a proof: here a run refutes it.
    certified = certify_density(reduce(sample), 0.5 * reduce(sample).p_norm, Budget(0.0))
    between = (float(certified.lower) + run.calls[0].lower) / 2
    assert float(certified.lower) < between < run.calls[0].lower
    wrong = compared(between, between)
    assert wrong.violations == []
    (doubt,) = wrong.doubts
    assert "known: the greatest density at η = 0.5 ‖P w_f‖ is said to be at most" in doubt
    assert wrong.to_dict()["doubts"] == [doubt]
    # Its word does not count then: nobody knows the optimum.
    assert (wrong.problems[0].densities[0].level, wrong.qualities("ransac")) == ("proved", {})
    # And here our own reference does.
    (doubt,) = compared(0.001, 0.001).doubts
    assert "is said to be at most 0.001, but there is a rule with" in doubt


def test_what_is_stated_too_high_is_named():
    from mipmech.model import Known

    sample = make_instance("uniform-ball", 15, 2, seed=1)
    known = Known(0.9, 0.95, "somebody says so", ((0.5, 0.99, 1.0),))
    found = compare([replace(sample, known=known)], ["projection"], eta_fractions=[0.5], workers=1)
    gain, density = found.doubts
    assert "the greatest gain is said to be at least 0.9, but no rule has more than 0.0" in gain
    assert "is said to be at least 0.99, but no rule has more than 0.3" in density
    assert all(bounds.level == "proved" for bounds in found.problems[0].densities)


def test_runs_refute_what_is_stated_even_if_the_reference_failed():
    bounds, stated = Reference(0.0, 1.0, "proved", 0.0), (0.2, 0.3)
    assert bounds.settled(0.3, stated)[0] == Reference(0.2, 0.3, "stated", 0.0)
    same, doubt = bounds.settled(0.4, stated)
    assert (same, doubt) == (bounds, "at most 0.3, but there is a rule with 0.4")
    closed = Reference(0.25, 0.25, "proved", 0.0)
    assert closed.settled(0.25, stated) == (closed, None)
    # As narrow as a hand writes it.
    third = (1 / 3, 1 / 3)
    assert bounds.settled(np.nextafter(1 / 3, 1), third)[1] is None


def test_what_is_known_is_kept_whichever_of_two_is_named_first():
    from mipmech.model import Known

    sample = make_instance("clustered-lines", 60, 7, seed=0)
    known = replace(sample, known=Known(0.0, 1.0, "x", ((0.5, 0.8, 0.8),)))
    for order in ([sample, known], [known, sample]):
        found = compare(
            order, ["projection"], eta_fractions=[0.5], workers=1, reference_seconds=0.0
        )
        assert found.problems[0].densities[0].level == "stated"


def test_the_same_instance_under_two_names_is_said():
    sample = make_instance("uniform-ball", 15, 2, seed=1)
    found = compare(
        [sample, replace(sample, name="again"), sample], ["projection"], workers=1,
        reference_seconds=0.0,
    )  # fmt: skip
    assert len(found.problems) == 1
    assert found.left_out == ("again is uniform-ball-m15-k2-s1 under another name",)


def test_a_family_is_told_by_its_whole_name():
    sample = replace(make_instance("costs", 12, 2, seed=1), name="costs-medical")
    found = compare([sample], ["projection"], workers=1, reference_seconds=0.0)
    assert found.groups == ["given"]


def test_the_best_rule_may_be_an_oracles():
    """Where the certificate had no time, a run may have found a better rule than it."""
    sample = make_instance("uniform-ball", 40, 4, seed=2)
    found = compare([sample], ["cells"], eta_fractions=[0.9, 0.6], workers=1, reference_seconds=0.0)
    (problem,), (run,) = found.problems, found.runs
    best = recount(sample, Mechanism(tuple(problem.best["weights"]), problem.best["threshold"]))
    assert float(best.gain) >= max(run.gain, problem.gain.lower) - 1e-12


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        ({"oracles": ()}, "oracles"),
        ({"oracles": ("cells", "cells")}, "oracles"),
        ({"eta_fractions": (1.5,)}, "etas"),
        ({"eta_fractions": (float("nan"),)}, "etas"),
        ({"seeds": ()}, "seeds"),
        ({"seeds": (-1,)}, "seeds"),
        ({"seconds_per_call": 0.0}, "seconds_per_call"),
        ({"seconds_per_call": float("inf")}, "seconds_per_call"),
        ({"reference_seconds": -1.0}, "reference_seconds"),
    ],
)
def test_settings_are_checked(bad, field):
    with pytest.raises(InputError) as error:
        ComparisonSettings(**{"oracles": ("cells",), **bad}).checked()
    assert error.value.field == field


def test_instances_are_found(tmp_path):
    assert len(sources_of(SMALL)) == len(list(SMALL.glob("*.json")))
    assert sources_of("costs-m9-k2-s5")[0].load().size == 9
    with pytest.raises(InputError, match="no instance files"):
        sources_of(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        sources_of("magic-m9-k2-s5")
    with pytest.raises(InputError, match="there are none"):
        compare([], ["cells"])


# ------------------------------------------------------------------ the command line


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_the_command(capsys, tmp_path):
    status, out, err = run(
        capsys, "compare", "ties-m12-k2-s1", "uniform-ball-m12-k3-s1", "--oracles",
        "cells,random", "--seeds", "0,1", "--etas", "0.9,0.5", "--workers", 1, "--out",
        tmp_path / "run",
    )  # fmt: skip
    assert status == 0
    assert "2 oracles on 2 instances" in out
    assert "greatest gain known for 2 of 2" in out
    assert "random" in out
    assert "12 of 12 done" in err
    assert len(again(tmp_path / "run").runs) == 2 * 3
    page = tmp_path / "page.html"
    status, out, _ = run(capsys, "report", tmp_path / "run", "-o", page)
    assert status == 0
    assert "wrote" in out
    assert page.read_text().lower().startswith("<!doctype html>")


def test_the_command_as_json(capsys):
    status, out, err = run(
        capsys, "compare", "ties-m12-k2-s1", "--oracles", "random", "--workers", 1, "--json"
    )
    assert (status, err) == (0, "")
    content = json.loads(out)
    assert content["format"] == "mipmech/comparison@2"
    assert content["violations"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--oracles", "best"], "there is no oracle 'best'"),
        (["--etas", "0.5,x"], "etas"),
        (["--seeds", "0.5"], "whole numbers"),
        (["--workers", "0"], "workers"),
        (["--out", "/dev/null/here"], "cannot be used for a run"),
    ],
)
def test_bad_commands(capsys, arguments, said):
    status, _, err = run(capsys, "compare", "ties-m12-k2-s1", *arguments)
    assert status == 2
    assert said in err


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(tmp_path):
    """On a terminal, where Ctrl-C reaches the workers too."""
    terminal, other = pty.openpty()
    program = subprocess.Popen(
        [
            sys.executable, "-m", "mipmech", "compare", "ties-m12-k2-s1",
            "uniform-ball-m60-k7-s1", "--oracles", "random", "--full-time", "--seconds-per-call",
            "3", "--reference-seconds", "3", "--seeds", "0", "--etas", "0.5", "--workers", "2",
            "--out", str(tmp_path),
        ],
        stdin=other, stdout=subprocess.PIPE, stderr=other, start_new_session=True, text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(other)
    shown = b""
    deadline = time.monotonic() + 120
    while not re.search(rb"[3-5]/6", shown) and time.monotonic() < deadline:
        shown += os.read(terminal, 4096)
    assert b"left" in shown
    read_on(terminal)
    os.killpg(program.pid, signal.SIGINT)
    out, _ = program.communicate(timeout=60)
    os.close(terminal)
    assert program.returncode == 1
    assert "cut short" in out
    kept = again(tmp_path)
    assert not kept.complete
    assert 3 <= len(RunFolder.open(tmp_path).records().last) < 6

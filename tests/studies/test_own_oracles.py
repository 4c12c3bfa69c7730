"""Comparisons with oracles that are not the package's."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass, replace
from functools import partial

import pytest

import mipmech
from mipmech import InputError, compare, make_instance
from mipmech.budget import Stop
from mipmech.oracles.base import grade
from mipmech.studies.batch import RunFolder
from tests.own_oracles import Boaster, Draws, NoRounds, Silent
from tests.studies.test_compare import again, figures


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_oracles_of_ones_own(workers, tmp_path):
    """As objects, or registered by name; the records hold what they are."""
    mipmech.register_oracle("draws-few", partial(Draws, 3))
    asked = ["cells", Draws(number=5), Silent(), "draws-few"]
    sample = make_instance("uniform-ball", 15, 2, seed=1)
    found = compare(
        [sample], asked, seeds=[0, 1], eta_fractions=[0.5], workers=workers, out=tmp_path
    )
    assert found.oracles == ["cells", "Draws", "Silent", "draws-few"]
    assert [run.record for run in found.runs_of("Draws")] == [
        "Draws(number=5, seed=0)", "Draws(number=5, seed=1)"
    ]  # fmt: skip
    assert [run.record for run in found.runs_of("draws-few")] == [
        "Draws(number=3, seed=0)", "Draws(number=3, seed=1)"
    ]  # fmt: skip
    assert [run.seed for run in found.runs_of("Silent")] == [None]
    assert {run.error for run in found.runs} == {None}
    assert found.summary("Draws").density.min > 0
    assert figures(again(tmp_path)) == figures(found)


def test_what_is_no_oracle_is_refused():
    class Mute:
        def __call__(self, *asked):
            return asked

    sample = make_instance("uniform-ball", 15, 2, seed=1)
    for bad, said in (
        (Mute(), "does not say whether it is soft"),
        (Draws, "cannot be called with"),
        ("drows", "there is no oracle 'drows'"),
    ):
        with pytest.raises(InputError, match=said):
            compare([sample], [bad], workers=1)
    with pytest.raises(InputError, match="two of the class Draws"):
        compare([sample], [Draws(2), Draws(3)], workers=1)
    with pytest.raises(InputError, match="give a list of oracles"):
        compare([sample], "cells", workers=1)


def asked_at_half(*oracles, **options):
    sample = make_instance("uniform-ball", 15, 3, seed=1)
    return compare([sample], oracles, eta_fractions=[0.5], seeds=[0], workers=1, **options)


def test_full_time_needs_no_rounds():
    found = asked_at_half(NoRounds(3), "random", full_time=True, seconds_per_call=0.1)
    assert [run.oracle for run in found.runs] == ["NoRounds", "random"]
    assert all(len(run.calls) == 1 for run in found.runs)


def test_no_oracle_grades_itself():
    """Answers that did not come from `grade` are recounted here."""
    for how, said in (("infeasible", "is infeasible, which it is not"), ("another rule", "got a")):
        (run,) = asked_at_half(Boaster(how)).runs
        assert said in run.error
    low = asked_at_half(Boaster("a low bound"), "cells")
    (violation,) = low.violations
    assert violation.what.startswith("bound of density")
    assert (violation.oracle, violation.value > violation.upper) == ("Boaster", True)
    found = asked_at_half(Boaster("nothing"))
    assert found.violations == []
    # What it claimed on the way, 99, is drawn as no more than what it had in the end.
    late = found.quality_over_time("Boaster", [0.0, 1e9])
    assert late[-1].max <= found.summary("Boaster").density.max <= 1


def test_an_oracle_is_its_class_and_its_text(tmp_path):
    """Two classes of one name and one repr share no record; a name of the package is refused."""

    def made(reach):
        @dataclass(frozen=True)
        class Mine(mipmech.Oracle):
            def __call__(self, geometry, eta, budget):
                return Draws(reach)(geometry, eta, budget)

        return Mine

    other = type("Mine", (Draws,), {"__module__": "elsewhere", "__doc__": "Draws, renamed."})
    first = asked_at_half(made(1)(), out=tmp_path)
    second = asked_at_half(other(30), out=tmp_path)
    assert first.runs[0].calls[0].lower <= second.runs[0].calls[0].lower
    records = RunFolder.open(tmp_path).records().last.values()
    assert sum(record.task == "ask" for record in records) == 2
    cells = dataclass(frozen=True)(type("cells", (Draws,), {}))
    with pytest.raises(InputError, match="the name of an oracle of mipmech"):
        asked_at_half(cells())
    bare = type("Bare", (mipmech.Oracle,), {"__call__": Draws.__call__})
    with pytest.raises(InputError, match="has no repr"):
        asked_at_half(bare())


def test_a_result_that_cannot_be_read_back_is_a_failure(tmp_path):
    @dataclass(frozen=True)
    class Backwards(mipmech.Oracle):
        def __call__(self, geometry, eta, budget):
            return replace(Draws(3)(geometry, eta, budget), seconds=-1.0)

    (run,) = asked_at_half(Backwards(), out=tmp_path).runs
    assert "cannot be recorded" in run.error
    assert [run.error for run in again(tmp_path).runs] == [run.error]


def test_an_oracle_that_leaves_the_program_costs_its_run():
    @dataclass(frozen=True)
    class Quits(mipmech.Oracle):
        def __call__(self, *asked):
            raise SystemExit(len(asked))

    assert "SystemExit" in asked_at_half(Quits()).runs[0].error


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"seeds": ["a"]}, "settings"),
        ({"eta_fractions": 0.8}, "settings"),
        ({"seconds_per_call": "a"}, "settings"),
        ({"seconds_per_call": 1e18}, "seconds_per_call"),
        ({"reference_seconds": 1e18}, "reference_seconds"),
        ({"seeds": [2**63]}, "seeds"),
    ],
)
def test_arguments_are_refused_with_the_field(arguments, field):
    with pytest.raises(InputError) as error:
        compare("uniform-ball-m15-k2-s1", ["projection"], workers=1, **arguments)
    assert error.value.field == field


def test_ctrl_c_in_this_process_drops_what_it_cut_short(tmp_path):
    """With one worker the oracle listens to Ctrl-C itself; the run hears it all the same."""
    interrupted = []

    def interrupt(progress):
        if progress.done == 2 and not interrupted:
            interrupted.append(threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)))
            interrupted[0].start()

    sample = make_instance("uniform-ball", 60, 7, seed=1)
    found = compare(
        [sample], ["random"], eta_fractions=[0.5], seeds=[0, 1, 2], workers=1, full_time=True,
        seconds_per_call=1, reference_seconds=0.0, out=tmp_path, watch=interrupt,
    )  # fmt: skip
    assert (found.stop, found.complete) == ("interrupted", False)
    assert len(found.runs) < 3
    assert {call.stop for run in found.runs for call in run.calls} <= {"time limit"}
    whole = compare(
        [sample], ["random"], eta_fractions=[0.5], seeds=[0, 1, 2], workers=1, full_time=True,
        seconds_per_call=1, reference_seconds=0.0, out=tmp_path,
    )  # fmt: skip
    assert (len(whole.runs), whole.complete) == (3, True)


def test_an_oracle_that_cannot_travel_is_refused_with_the_remedy():
    @dataclass(frozen=True)
    class Local(mipmech.Oracle):
        def __call__(self, geometry, eta, budget):
            return grade(self, geometry, eta, None, stop=Stop.NO_ANSWER, timer=budget.start())

    sample = make_instance("uniform-ball", 15, 2, seed=1)
    with pytest.raises(InputError, match="or give workers=1"):
        compare([sample], [Local()], eta_fractions=[0.5], workers=2, reference_seconds=0.0)
    for workers in (1, None):  # by default, in this process if it has to be
        compare([sample], [Local()], eta_fractions=[0.5], workers=workers, reference_seconds=0.0)

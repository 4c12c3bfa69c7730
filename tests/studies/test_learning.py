"""Learning curves: graded by the truth, reproducible, honest about what was not finished."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest

from mipmech import Budget, InputError, Instance, Mechanism, certify, make_instance, recount, theory
from mipmech.budget import Stop
from mipmech.model import Smoothed, families, reduce
from mipmech.plots.drawn import Drawn
from mipmech.plots.learning import learning_picture
from mipmech.plots.rule import save
from mipmech.studies.learning.curve import learn
from mipmech.studies.learning.source import (
    default_sizes,
    draw,
    largest_size,
    open_source,
    population,
)
from mipmech.studies.spread import Spread
from mipmech.terminal.learning import tell_learning
from tests.conftest import ROOT
from tests.plain import typed_rule

SIZES = [25, 100, 400]
REAL = str(ROOT / "instances" / "real" / "satgpa-view.json")
HOSTILE = "$x_1$ [red]{0} %s <b> & \\ ' \" ‖ " + "W" * 160


@pytest.fixture(scope="module")
def mixture():
    return population("gaussian-mixture", rank=2, seed=3)


@pytest.fixture(scope="module")
def curve(mixture):
    return learn(mixture, sizes=SIZES, repeats=6, seed=5)


@pytest.fixture(scope="module")
def data():
    return make_instance("clustered-lines", agents=120, rank=2, seed=2)


@pytest.fixture(scope="module")
def from_data(data):
    return learn(data, sizes=[20, 90], repeats=4)


def blind():
    """The planner sees x1 only, and quality does not depend on it."""
    return Instance.from_arrays(
        [[0.0, 1.0], [1.0, 0.0], [2.0, 0.5], [3.0, 0.1]], [1.0, 0.0], visible=[1], cost=1.0
    )


# ------------------------------------------------------------------ smoothed populations


def test_gains_are_those_of_the_truth(mixture, curve):
    assert [(p.size, p.repeat) for p in curve.points] == [(m, r) for m in SIZES for r in range(6)]
    for point in curve.points:
        drawn = draw(mixture, point.size, point.repeat, seed=5)
        assert drawn.sample.size == drawn.held_out.size == point.size
        assert drawn.sample.digest != drawn.held_out.digest
        assert point.gain == mixture.gain(point.mechanism)
        exact = recount(drawn.sample, point.mechanism).gain
        assert Fraction(point.lower) <= exact <= Fraction(point.upper)
        assert point.lower == pytest.approx(float(exact), rel=1e-15)
        found = theory.held_out_bound(
            drawn.held_out, point.mechanism, 0.05, "bernstein", curve.source.largest_reach
        )
        assert point.held_out == found
        assert point.held_out.mean == float(recount(drawn.held_out, point.mechanism).gain)


def test_the_rule_is_the_certified_optimum(mixture, curve):
    point = curve.points[-1]
    proof = certify(draw(mixture, point.size, point.repeat, seed=5).sample, gap=1e-3)
    assert (point.mechanism, point.upper, point.gap) == (proof.mechanism, proof.upper, proof.gap)


def test_bounds_hold(mixture, curve):
    largest = reduce(mixture.base).p_norm * float(mixture.base.reach.max())
    assert curve.source.largest_gain == pytest.approx(largest, rel=1e-12)
    for point in curve.points:
        assert 0 < point.lower <= point.upper
        assert point.gap <= 1e-3
        assert point.closed
        expected = theory.uniform_deviation(point.size, 2, largest, 0.05)
        assert point.deviation == pytest.approx(expected, rel=1e-12)
        assert abs(point.lower - point.gain) <= point.deviation
        assert point.gain <= point.upper + point.deviation
        assert point.promised <= point.gain <= curve.best.gain <= curve.at_most(point)
        assert point.at_least <= point.gain


def test_confidence_bounds_fail_no_more_often_than_they_may(mixture):
    found = learn(mixture, sizes=[60], repeats=60, delta=0.2, gap=0.01)
    failed = sum(point.at_least > point.gain for point in found.points)
    assert failed <= 0.2 * 60
    assert any(point.at_least > 0 for point in found.points)


def test_more_data_learn_better_rules(curve):
    rows = curve.summary()
    assert [row.size for row in rows] == SIZES
    medians = [row.gain.median for row in rows]
    assert medians[-1] > medians[0]
    assert rows[-1].sample.median < rows[0].sample.median  # less and less too good to be true
    assert rows[-1].error.median < rows[0].error.median
    assert rows[-1].at_least.median > rows[0].at_least.median
    for row in rows:
        gains = [point.gain for point in curve.points if point.size == row.size]
        assert row.gain == Spread.of(gains)
        assert (row.samples, row.still_open) == (6, 0)


def test_the_best_known_rule(mixture, curve):
    best = curve.best
    assert best.searched
    assert best.gain == mixture.gain(best.mechanism)
    assert best.gain >= max(point.gain for point in curve.points)
    # A grid over all directions and thresholds finds nothing better.
    base = mixture.base
    scores = np.linspace(-3, 3, 121)
    for angle in np.linspace(0, 2 * np.pi, 73):
        weights = (float(np.cos(angle)), float(np.sin(angle)), 0.0)
        if np.dot(weights, base.quality) > 0:
            rule = Mechanism(weights, 0.0)
            assert max(mixture.gain(rule.at(float(b))) for b in scores) <= best.gain * (1 + 1e-9)


def test_samples_do_not_depend_on_what_else_is_asked(mixture, curve):
    fewer = learn(mixture, sizes=[100], repeats=2, seed=5)

    def content(point):
        return {key: value for key, value in point.to_dict().items() if key != "seconds"}

    there = [p for p in curve.points if p.size == 100][:2]
    assert [content(p) for p in fewer.points] == [content(p) for p in there]
    digests = {
        draw(mixture, size, repeat, seed).sample.digest
        for size in (50, 51)
        for repeat in (0, 1)
        for seed in (0, 1)
    }
    assert len(digests) == 8
    assert draw(mixture, 50, 1).sample.digest == draw(mixture, 50, 1).sample.digest


def test_threads_do_not_matter(mixture):
    one, two = (learn(mixture, sizes=[80], repeats=2, budget=Budget(threads=n)) for n in (1, 2))
    assert [p.mechanism for p in one.points] == [p.mechanism for p in two.points]
    assert one.best == two.best


def test_from_where_the_theorem_speaks(curve):
    size = curve.says_something_from
    assert curve.source.deviation(size, 0.05) < curve.best.gain
    assert curve.source.deviation(size - 1, 0.05) >= curve.best.gain


def test_unequal_costs_and_weights_of_a_population():
    smooth = population("costs", rank=2, seed=1)
    assert (smooth.base.weights != smooth.base.weights[0]).any()
    found = learn(smooth, sizes=[40], repeats=2)
    assert found.complete
    assert not found.source.equal_costs
    assert found.source.largest_reach == smooth.base.reach[smooth.base.weights > 0].max()
    assert found.source.notes == ()  # the population's reach is known
    equal = theory.uniform_deviation(10**6, 2, found.source.largest_gain, 0.05)
    assert found.source.deviation(10**6, 0.05) > equal


def test_general_views():
    base = Instance.from_arrays(
        np.random.default_rng(0).standard_normal((8, 3)),
        [1.0, 2.0, -1.0],
        view=[[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]],
        cost=2.0,
    )
    smooth = Smoothed(base, 0.2)
    found = learn(smooth, sizes=[30], repeats=2)
    assert found.complete
    for point in found.points:
        assert point.mechanism.view_weights is not None
        assert point.gain == smooth.gain(point.mechanism) <= found.best.gain


# ------------------------------------------------------------------ data


def test_held_out_rows_are_others(data, from_data):
    for point in from_data.points:
        drawn = draw(data, point.size, point.repeat)
        learned, rest = drawn.rows
        assert len(learned) == point.size
        assert not set(learned) & set(rest)
        assert sorted([*learned, *rest]) == list(range(data.size))
        assert (drawn.sample.agents == data.agents[learned]).all()
        assert (drawn.held_out.agents == data.agents[rest]).all()
        assert point.gain == float(recount(drawn.held_out, point.mechanism).gain)
        assert point.held_out.size == data.size - point.size
        assert point.at_least <= point.gain
        exact = recount(drawn.sample, point.mechanism).gain
        assert Fraction(point.lower) <= exact <= Fraction(point.upper)
    assert from_data.best is None
    assert from_data.complete
    assert draw(data, 20, 0).rows[0].tolist() != draw(data, 20, 1).rows[0].tolist()
    # Sizes have streams of their own: a smaller sample is not a part of a larger one.
    assert set(draw(data, 20, 0).rows[0]) - set(draw(data, 21, 0).rows[0])


def test_a_part_forgets_what_is_known_of_the_whole():
    sample = Instance.load(ROOT / "instances" / "paper" / "example1.json")
    part = draw(sample, 10, 0).sample
    assert (part.known, part.path) == (None, None)
    assert not part.agents.flags.writeable


def test_costs_follow_their_rows():
    instance = make_instance("costs", 60, 2, seed=1)
    equal = Instance.from_arrays(
        instance.agents, instance.quality, visible=[0, 1], cost=instance.cost
    )
    learned, rest = draw(equal, 30, 0).rows
    assert (draw(equal, 30, 0).sample.cost == equal.cost[learned]).all()
    found = learn(equal, sizes=[30], repeats=2)
    assert found.source.largest_reach == equal.reach.max()
    assert "largest reach in the data" in found.source.notes[0]
    assert found.to_dict()["source"]["notes"] == list(found.source.notes)
    point = found.points[0]
    bound = theory.held_out_bound(
        draw(equal, 30, 0).held_out, point.mechanism, largest_reach=equal.reach.max()
    )
    assert point.held_out == bound
    assert len(rest) == 30


def test_default_sizes(data):
    assert largest_size(data) == 90
    assert default_sizes(data) == (25, 50, 90)
    assert default_sizes(Instance.load(REAL)) == (25, 50, 100, 200, 400, 750)
    assert default_sizes(blind()) == (1, 2)
    three = make_instance("uniform-ball", 3, 1, seed=0)
    assert default_sizes(three) == (1,)
    assert learn(three).complete
    for rank, top in ((1, 12_800), (2, 12_800), (3, 3200), (4, 400), (5, 100), (9, 50)):
        sizes = default_sizes(population("gaussian-mixture", rank))
        assert (sizes[0], sizes[-1]) == (25, top)
        assert list(sizes) == sorted(set(sizes))


# ------------------------------------------------------------------ extremes


@pytest.mark.parametrize("source", [blind(), Smoothed(blind(), 0.1)])
def test_nothing_visible_gains_nothing(source, tmp_path, capsys):
    found = learn(source, sizes=[1, 2], repeats=2)
    assert found.complete
    for point in found.points:
        assert (point.lower, point.upper, point.gap, point.gain) == (0, 0, 0, 0)
        assert (point.at_least, point.deviation, point.mechanism) == (0, 0, None)
    assert found.says_something_from is None
    assert found.best is None or found.best.gain == 0
    save(found.plot(), tmp_path / "nothing.png")
    tell_learning(found)
    assert "every gain is 0" in capsys.readouterr().out


def test_one_dimension_one_agent_one_size(tmp_path):
    found = learn(population("uniform-ball", rank=1, seed=2), sizes=[1], repeats=1)
    assert found.complete
    (point,) = found.points
    assert point.at_least == 0  # one agent held out says nothing of the spread
    assert point.lower > 0
    save(found.plot(), tmp_path / "one.png")


def test_no_time_no_points(mixture, tmp_path, capsys):
    found = learn(mixture, budget=Budget(0))
    assert (found.points, found.best, found.stop) == ((), None, Stop.TIME)
    assert not found.complete
    assert found.summary() == ()
    assert "0 of" in repr(found)
    assert json.loads(found.save(tmp_path).read_text())["points"] == []
    save(found.plot(), tmp_path / "none.png")
    tell_learning(found)
    assert "from none of" in capsys.readouterr().out


def test_a_certificate_that_does_not_close_is_kept(capsys):
    hard = population("gaussian-mixture", rank=5, seed=1)
    found = learn(hard, sizes=[10, 300], repeats=1, gap=1e-9, budget=Budget(1.0))
    last = found.points[-1]
    assert found.stop is Stop.TIME
    assert not found.complete
    assert found.seconds < 3
    assert not last.closed
    assert 0 <= last.lower <= last.upper
    assert last.gap > 1e-9
    assert found.best.gain >= last.gain == hard.gain(last.mechanism)
    tell_learning(found)
    assert "did not close" in capsys.readouterr().out


def test_limits_on_nodes_are_per_certificate(mixture):
    found = learn(mixture, sizes=[30, 60], repeats=2, gap=0.0, budget=Budget(nodes=100))
    assert len(found.points) == found.asked
    assert found.stop is Stop.FINISHED
    assert not found.complete
    assert [row.still_open for row in found.summary()] == [2, 2]


def test_ctrl_c_keeps_what_was_learned(mixture):
    events = []

    def watch(event):
        events.append(event)
        if event.work == 3:
            signal.raise_signal(signal.SIGINT)

    found = learn(mixture, sizes=[20, 40], repeats=2, budget=Budget(watch=watch))
    assert found.stop is Stop.INTERRUPTED
    assert len(found.points) == 3
    whole = learn(mixture, sizes=[20, 40], repeats=2)
    assert [p.mechanism for p in found.points] == [p.mechanism for p in whole.points[:3]]
    assert found.best.gain == max(point.gain for point in found.points)
    assert not found.best.searched
    assert events[-1].note == "3 of 4 samples, m = 40"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ------------------------------------------------------------------ errors


def error_of(source, **arguments):
    with pytest.raises(InputError) as caught:
        learn(source, **arguments)
    return caught.value


def test_weights_must_be_equal():
    weighted = make_instance("costs", 40, 2, seed=1)
    error = error_of(weighted)
    assert error.field == "weights"
    assert "sigma" in error.message
    assert learn(Smoothed(weighted, 0.1), sizes=[10], repeats=1).complete


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("sizes", {"sizes": []}),
        ("sizes", {"sizes": [0]}),
        ("sizes", {"sizes": [-3]}),
        ("sizes", {"sizes": [91]}),
        ("sizes", {"sizes": [20, 20]}),
        ("sizes", {"sizes": [20.5]}),
        ("sizes", {"sizes": [True]}),
        ("sizes", {"sizes": ["20"]}),
        ("repeats", {"repeats": 0}),
        ("repeats", {"repeats": 2.0}),
        ("gap", {"gap": 1.0}),
        ("gap", {"gap": float("nan")}),
        ("delta", {"delta": 0.0}),
        ("delta", {"delta": 1.0}),
        ("seed", {"seed": -1}),
    ],
)
def test_faults_name_their_field(data, field, arguments):
    assert error_of(data, **arguments).field == field


def test_too_little_data_and_too_much():
    two = make_instance("uniform-ball", 2, 1, seed=0)
    assert error_of(two).field == "agents"
    assert error_of(population("uniform-ball"), sizes=[10**12]).field == "sizes"
    assert error_of("uniform-ball").field == "source"


# ------------------------------------------------------------------ sources


@pytest.mark.parametrize("name", families.NAMES)
def test_every_family_is_a_population(name):
    smooth = population(name, rank=2, seed=4)
    found = learn(smooth, sizes=[20], repeats=1)
    assert found.complete
    assert found.source.sigma == smooth.sigma
    if name == "gaussian-mixture":
        assert (smooth.base.size, smooth.sigma) == (4, 0.3)
    else:
        base = make_instance(name, 50, 2, seed=4)
        assert smooth.base.digest == base.digest
        assert smooth.sigma == np.median(base.reach[base.weights > 0]) / 4
    assert population(name, seed=4, sigma=0.7).sigma == 0.7


def test_populations_refuse_nonsense():
    for field, arguments in (
        ("family", {"name": "uniform-bal"}),
        ("rank", {"name": "gaussian-mixture", "rank": 0}),
        ("rank", {"name": "gaussian-mixture", "rank": 10**9}),
        ("rank", {"name": "example1", "rank": 3}),
        ("seed", {"name": "gaussian-mixture", "seed": -1}),
        ("hidden", {"name": "ties", "hidden": -1}),
        ("agents", {"name": "ties", "base_agents": 0}),
        ("base_agents", {"name": "gaussian-mixture", "base_agents": 9}),
        ("sigma", {"name": "ties", "sigma": 0.0}),
        ("sigma", {"name": "gaussian-mixture", "sigma": float("nan")}),
        ("cost", {"name": "gaussian-mixture", "cost": -1.0}),
    ):
        with pytest.raises(InputError) as caught:
            population(**arguments)
        assert caught.value.field == field


def test_sources_by_name(tmp_path):
    assert isinstance(open_source("ties", rank=3, seed=2), Smoothed)
    assert open_source("ties", rank=3, seed=2).base.name == "ties-m50-k3-s2"
    assert isinstance(open_source(REAL), Instance)
    smooth = open_source(REAL, sigma=0.5)
    assert (smooth.sigma, smooth.base.size) == (0.5, 1000)
    for field, text, arguments in (
        ("source", "tis", {}),
        ("rank", REAL, {"rank": 2}),
        (None, str(tmp_path / "nowhere.json"), {}),
    ):
        with pytest.raises(InputError) as caught:
            open_source(text, **arguments)
        assert caught.value.field == field
    with pytest.raises(InputError, match="did you mean 'ties'"):
        open_source("tis")


# ------------------------------------------------------------------ files, words, pictures


@pytest.mark.parametrize("which", ["curve", "from_data"])
def test_files_hold_what_is_printed(which, tmp_path, request):
    found = request.getfixturevalue(which)
    file = found.save(tmp_path / "deep" / "folder")
    assert file.name == "learning.json"
    content = json.loads(file.read_text(), parse_constant=pytest.fail)
    assert content["format"] == "mipmech/learning@2"
    assert content == json.loads(json.dumps(found.to_dict(), allow_nan=False))


def test_a_folder_that_is_a_file_is_not_replaced(curve, tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(InputError) as caught:
        curve.save(tmp_path / "taken")
    assert caught.value.field == "out"
    assert (tmp_path / "taken").read_text() == "mine"


def test_rules_are_in_the_users_units(capsys, monkeypatch):
    """To so many digits that typed weights score as the rule in the instance's numbers does."""
    monkeypatch.setenv("COLUMNS", "500")
    base = Instance.load(ROOT / "instances" / "real" / "medical.json")
    found = learn(Smoothed(base, 0.2), sizes=[30], repeats=1)
    tell_learning(found)
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("  rule")]
    weights, threshold = typed_rule(line.split(maxsplit=1)[1], base.feature_names)
    rule, scale = found.best.mechanism, np.array(base.units.scale)
    typed = weights * scale
    size = np.linalg.norm(typed) / np.linalg.norm(rule.weights)
    assert typed == pytest.approx(size * np.array(rule.weights), rel=1e-5, abs=1e-6)
    level = threshold - float(weights @ base.units.centre)
    assert level == pytest.approx(size * rule.threshold, abs=1e-5)
    assert found.to_dict()["source"]["units"] == asdict(base.units)


def test_words(curve, from_data, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    tell_learning(curve, Drawn(tmp_path / "a.png"))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert f"{curve.best.gain:.6g} on the population" in out
    assert "probability 0.95" in out
    assert f"from about m = {curve.says_something_from:,} on" in " ".join(out.split())
    tell_learning(from_data, out=tmp_path / "learning.json")
    out = capsys.readouterr().out
    assert "held out" in out
    assert "learning.json" in out


def test_hostile_names_and_extreme_units(capsys, tmp_path):
    for scale in (1e-12, 1e9):
        base = Instance.from_arrays(
            scale * np.random.default_rng(1).standard_normal((30, 2)),
            [1.0, 1.0],
            visible=[0],
            features=[HOSTILE[:190], "b"],
            cost=1 / scale,
            name=HOSTILE[:200],
        )
        for source in (base, Smoothed(base, 0.2 * scale)):
            found = learn(source, sizes=[8, 16], repeats=2)
            assert found.complete
            tell_learning(found)
            assert "[red]{0} %s <b>" in " ".join(capsys.readouterr().out.split())
            assert json.loads(found.save(tmp_path).read_text())["source"]["name"] == base.name
    assert learning_picture(found).get_suptitle().startswith("$x_1$ [red]{0}")


def test_pictures(curve, from_data, tmp_path):
    for number, found in enumerate((curve, from_data)):
        file = tmp_path / f"{number}.png"
        save(found.plot(), file)
        assert file.read_bytes().startswith(b"\x89PNG")
    texts = [text.get_text() for text in learning_picture(curve).axes[0].get_legend().texts]
    assert any("vacuous" in text for text in texts)
    with pytest.raises(InputError):
        save(curve.plot(), tmp_path / "picture")

"""Certificates with requirements: what is changed is refused, or true."""

from __future__ import annotations

import functools
from fractions import Fraction

import numpy as np

from mipmech import Instance, certify
from mipmech.checker import check
from mipmech.checker.agents import Agents
from mipmech.checker.bounds import LeafBounds, all_of, context_of
from mipmech.checker.demanded import ClaimedRequirements
from mipmech.checker.together import Chains, Limits, together
from mipmech.checker.tree import halves
from mipmech.checker.witness import ExactInstance
from tests.checker.test_check import changed, packed, tree

# ------------------------------------------------------------------ rows of the cone and the frame

ORDER = {"order": [[0, 1]]}
# A third feature that is dear, and not to be seen apart from the others.
DEAR = [1.0, 1.0, 1000.0]


@functools.cache
def two_rows_of_a_view():
    """A sample whose planner sees two sums with a dear feature, and an honest certificate."""
    agents = [[0.04, -0.04, 0.0], [0.03, -0.16, 0.0], [0.39, 0.28, 0.0], [-0.38, 0.01, 0.0]]
    instance = Instance.from_arrays(
        agents, [0.2, 1.0, 0.0], view=[[1.0, 0.0, 1.0], [0.0, 1.0, 0.5]], norm="l2", effort=DEAR,
        reach=1.0,
    )  # fmt: skip
    return instance, certify(instance, require=ORDER, gap=1e-5)


def bent(frame, instance, error):
    """The frame moved out of the row space, by so much, so that the row of `ORDER` is moved most.

    That is along the weights M g, for g with g·w = v_0 − v_1, less what is in the row space.
    """
    square = np.square(instance.costs.effort)
    view = instance.view.matrix
    g = view.T @ np.linalg.solve(view @ view.T, [1.0, -1.0])
    along = np.linalg.solve((frame / square) @ frame.T, frame @ g)
    outside = square * g - frame.T @ along
    outside /= np.sqrt((outside**2 / square).sum())
    a, b = frame @ g
    rim = np.array([-b, a]) / np.hypot(a, b)  # where both weights are equal, and above 0
    return frame - error * np.outer(rim, outside)


def grown(agents, enough, most=2000):
    """A tree, level by level, all of whose leaves are low enough; or as far as it got."""
    context = context_of(agents, enough)
    axes = np.eye(2)
    level = [
        ((s * axes[j])[None], (1 - axes[j])[None], np.array([agents.low]), np.array([agents.high]))
        for j in range(2) for s in (1.0, -1.0)
    ]  # fmt: skip
    symbols = bytearray()
    while level and len(symbols) < most:
        below = []
        for box in level:
            bounds = LeafBounds(context, all_of(agents), lambda: None)
            bounds.leaves(box, all_of(agents))
            bounds.tilt()
            if bounds.highest <= context.enough:
                symbols.append(0)
                continue
            j = int(np.argmax(box[1][0]))
            symbol = 2 + j if box[1][0, j] > (box[3] - box[2])[0] / 2 else 1
            symbols.append(symbol)
            both = halves(np.array([symbol], np.uint8), box)
            below += [tuple(values[i : i + 1] for values in both) for i in (0, 1)]
        level = below
    return bytes(symbols) + bytes(len(level))


def test_a_frame_that_is_a_little_off_does_not_hide_rules():
    """Frames may be off by 1e-3; rows a·x have that much room for each unit of the length of x."""
    instance, honest = two_rows_of_a_view()
    assert honest.status == "optimal"
    content = honest.content()
    frame = bent(np.array(content["proof"]["frame"]), instance, 7e-4)
    low, high = content["proof"]["thresholds"]
    proof = {**content["proof"], "frame": frame.tolist(), "thresholds": [low - 0.01, high + 0.01]}
    exact = ExactInstance(instance, lambda: None)
    agents = Agents(exact, proof, None, Fraction(0), ClaimedRequirements(ORDER, exact))
    proof["tree"] = packed(grown(agents, 0.99 * float(honest.lower)))
    forged = changed(
        content,
        lambda c: c.update(
            proof=proof, upper=0.99 * float(honest.lower), witness=None, lower=None, gap=1.0
        ),
    )
    verdict = check(forged, instance)
    assert not verdict or float(honest.lower) <= verdict.upper


# ------------------------------------------------------------------ knapsacks of unsure agents


def test_what_many_agents_bring_is_rounded_up():
    """Of seven agents one is accepted in any case, though it brings less than nothing."""
    limits = Limits(np.array([16.0, 2.0]), 12.0, 18.0, 0.875)
    values = np.array([-1.0, 0, 0, 0, 0, 0, 0])
    mass = np.array([[10.0, 0], [1, 0], [1, 0], [1, 0], [1, 0], [1, 0], [1, 0]])
    loose = Chains(np.arange(7), np.zeros(1, np.bool_))
    brought, fate = together(limits, np.zeros((1, 2)), np.zeros(7, np.int64), values, mass, loose)
    assert fate[0] == 1
    assert brought[0] >= -1.0


def test_that_there_is_no_rule_takes_the_whole_tree():
    """SAT scores alone: no rule with these signs and places treats the sexes alike."""
    scores = Instance.from_csv(
        "instances/real/raw/satgpa.csv", quality={"sat_v": 0.0165, "sat_m": 0.0124, "hs_gpa": 0.58},
        visible=["sat_v", "sat_m"], cost=2, effort="standard", groups=["sex"],
    )  # fmt: skip
    demanded = {
        "nonnegative": "all", "accepted": [0.25, 0.3], "parity": {"groups": "sex", "within": 0.05},
    }  # fmt: skip
    content = certify(scores, require=demanded).content()
    assert content["claim"]["kind"] == "infeasible"
    assert content["proof"]["leaves"] > 50
    assert check(content, scores)
    cut_off = changed(content, tree(lambda _: bytes(4)))
    assert "may have a rule" in check(cut_off, scores).reason
    for looser in ({"accepted": [0.2, 0.3]}, {"nonnegative": ["sat_v"]}):
        claim = {"kind": "infeasible", "requirements": {**demanded, **looser}}
        loosened = changed(content, lambda result, claim=claim: result.update(claim=claim))
        verdict = check(loosened, scores)
        assert bool(verdict) == (
            certify(scores, require={**demanded, **looser}).status == "infeasible"
        )

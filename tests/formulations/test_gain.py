"""The gain's model: tangents cut off no rule that gains enough, and few that do not."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest

from formulations import Exact, cell, gain_model, set_gain
from mipmech.solver import Has, Program


def sample(seed, m=7, k=3):
    random = np.random.default_rng([seed, 5])
    z = random.uniform(-1, 1, (m, k)) / np.sqrt(k)
    p = random.standard_normal(k)
    return (
        random,
        z,
        random.uniform(0.1, 0.8, m),
        random.uniform(0.5, 2.0, m),
        p / np.linalg.norm(p),
    )


def best(z, reach, weight, u):
    """The best threshold, who is in its margin, and the soft density."""
    scores = z @ u
    found = (0.0, 0.0, np.zeros(len(z), dtype=bool))
    for b in scores + reach:
        inside = (b >= scores) & (b <= scores + reach + 1e-12)
        found = max(found, (float(weight @ np.where(inside, b - scores, 0)), b, inside),
                    key=lambda one: one[0])  # fmt: skip
    return found


@pytest.mark.parametrize("seed", range(8))
def test_rules_that_gain_enough_are_feasible(seed):
    random, z, reach, weight, p = sample(seed)
    model = gain_model(
        z, reach, weight, p, (0.0, 1.0), least_gain=1.0, rates=(0.1, 1.0), norm=Exact(), widen=1e-7
    )
    rows = [row for row in model.component_data_objects(pyo.Constraint) if row.lower is not None]
    tried = 0
    for _ in range(60):
        u = random.standard_normal(3)
        u /= np.linalg.norm(u)
        rate = float(u @ p)
        if rate < 0.15:
            continue
        soft, b, inside = best(z, reach, weight, u)
        gain = rate * soft
        set_gain(model, least_gain=gain * (1 - 1e-9), rates=(rate * 0.8, min(1.0, rate * 1.1)))
        for j in range(3):
            model.u[j] = u[j]
        model.b, model.rate = b, rate
        for i in range(len(z)):
            model.s[i] = int(inside[i])
            model.t[i] = float(b - z[i] @ u) if inside[i] else 0.0
        for row in rows:
            assert pyo.value(row.body) >= pyo.value(row.lower) - 1e-9, row.name
        # More than that is not reached at the rates of the tangents.
        set_gain(model, least_gain=gain * 1.001, rates=(rate, rate))
        assert any(pyo.value(r.body) < pyo.value(r.lower) for r in model.tangents.values())
        tried += 1
    assert tried > 5


@pytest.mark.parametrize("seed", range(4))
def test_what_no_rule_of_a_small_cone_gains_is_infeasible(seed):
    random, z, reach, weight, p = sample(seed)
    axis = int(np.abs(p).argmax())
    sign = int(np.sign(p[axis]))
    others = p / abs(p[axis])
    # 0.03 is about the radius of this cone, so all its rates are above 0.98.
    low, high = np.clip(others - 0.02, -1, 1), np.clip(others + 0.02, -1, 1)
    low[axis] = high[axis] = sign
    cone = cell(axis, sign, np.delete(low, axis), np.delete(high, axis))
    greatest = 0.0
    for _ in range(3000):
        x = random.uniform(low, high)
        u = x / np.linalg.norm(x)
        greatest = max(greatest, float(u @ p) * best(z, reach, weight, u)[0])
    rates = (0.98, 1.0)
    model = gain_model(
        z, reach, weight, p, (0.0, 1.0), least_gain=greatest * 0.999, rates=rates, norm=cone,
        widen=1e-6,
    )  # fmt: skip
    program = Program(model)
    assert program.solve().has in (Has.OPTIMUM, Has.SOLUTION)
    set_gain(model, least_gain=greatest * 1.1, rates=rates)
    assert program.solve().has is Has.INFEASIBLE


def test_what_is_refused():
    _, z, reach, weight, p = sample(0)
    for wrong in ({"least_gain": 0.0, "rates": (0.1, 1.0)}, {"least_gain": 1.0, "rates": (0.0, 1)}):
        with pytest.raises(ValueError, match="above 0"):
            gain_model(z, reach, weight, p, (0.0, 1.0), norm=Exact(), **wrong)
    with pytest.raises(ValueError, match="least_gain"):
        gain_model(
            z, reach, weight, p, (0.0, 1.0), norm=Exact(), least_gain=1.0, rates=(0.1, 1.0),
            at_least=1.0,
        )  # fmt: skip

"""Upper bounds of the gain over a cone, rate and distances added before they are bounded.

With r = u·p̂ and S the soft density, the gain is ‖p‖ r S, and for every λ > 0

    r S ≤ (S + λr)² / 4λ,

with equality for λ = S/r: the line S + λr = const is a tangent of the hyperbola r S = const. Its
left side is a sum of distances and a rate, all of them linear in u; so they are added before they
are bounded over the cone, and what one direction adds to the rate and takes from the distances
cancels.

Let score_i lie in [lo_i, hi_i] over the cone. At a threshold b, agent i moves at most

    0                    b < lo_i,   or   b > hi_i + ℓ_i
    b − lo_i             lo_i ≤ b ≤ hi_i          (it may be beyond the threshold)
    b − u·z_i            hi_i ≤ b ≤ lo_i + ℓ_i    (it is in the margin all over the cone)
    ℓ_i                  lo_i + ℓ_i ≤ b ≤ hi_i + ℓ_i      (it may be out of reach)

For fixed u the sum of these rises with b, and falls only where b passes some hi_i or some
hi_i + ℓ_i; so it is enough to look at these. A best threshold is some end of reach, hence at a b
where no agent may be out of reach the sum is of no interest. With V = λp̂ − Σ ω_i z_i over the
agents that are in all over the cone, c its centre, t = c·V, and u·V as in `cones`,

    S + λr ≤ (constants, and ω_i b) + max(t, t cos α) + Σ_j |V_j − t c_j| h_j / min‖x‖.

The row Σ ω_i t_i + λr ≥ 2√(λT) is also what the MILP knows of r S ≥ T (`formulations.gain`).
"""

from __future__ import annotations

import numpy as np

from mipmech.oracles.shared.cones import LOT, Ranges
from mipmech.tolerances import EPSILON
from mipmech.validation import Floats

# λ is S/r at the centre; where S is smaller than this share of the best S of the cone, that share.
LEAST_SHARE = 0.05


def gain_together(
    where: Ranges, z: Floats, reach: Floats, weight: Floats, p: Floats, doubt: float
) -> Floats:
    """No direction of a cone has more than this r S, (n,) array; for cones with c·p̂ > 0, sine < 1.

    z : (m, k) array; p : (k,) array p̂; reach, weight : (m,) arrays
    doubt : what u·p̂ and Σ ω_i u·z_i together may be off by, for the rounding of z and p
    """
    n, size = len(where.centre), max(1, LOT // (4 * len(reach)))
    lots = [where[start : start + size] for start in range(0, n, size)]
    bounds = [_together(lot, z, reach, weight, p, doubt) for lot in lots]
    return np.concatenate(bounds) if bounds else np.empty(0)


def _together(
    where: Ranges, z: Floats, reach: Floats, weight: Floats, p: Floats, doubt: float
) -> Floats:
    low, high, centre = where.low, where.high, where.centre
    (n, m), k = low.shape, z.shape[1]
    full = low + reach
    inside = high < full  # in all over the cone for some b
    # In this order: begins; is in; may be out; has ended (one float later, as in `cones.stab`).
    entry = np.where(inside, high, full)
    points = np.concatenate([low, entry, full, np.nextafter(high + reach, np.inf)], axis=1)
    order = np.argsort(points, axis=1)
    nothing = np.zeros(m)
    # What is true before each event but the first: of W in Wb, the constant, and the open ends.
    before = order[:, :-1]
    slope = np.cumsum(np.concatenate([weight, nothing, -weight, nothing])[before], axis=1)
    ends = np.cumsum(np.repeat([0, 0, 1, -1], m)[before], axis=1)
    begun = weight * low
    known = np.where(inside, begun, 0.0)
    moved = weight * reach
    constant = np.concatenate(
        [-begun, known, begun - known + moved, np.broadcast_to(-moved, (n, m))], axis=1
    )
    b = np.take_along_axis(points, order[:, 1:], axis=1)
    base = slope * b + np.cumsum(np.take_along_axis(constant, before, axis=1), axis=1)
    added = np.zeros((n, 4 * m))
    sums, at_centre = [], np.zeros_like(base)
    for j in range(k):
        added[:, m : 2 * m] = inside * (weight * z[:, j])
        added[:, 2 * m : 3 * m] = -added[:, m : 2 * m]
        sums.append(np.cumsum(np.take_along_axis(added, before, axis=1), axis=1))
        at_centre += centre[:, j : j + 1] * sums[j]
    falls = (order[:, 1:] // m) % 2 == 1
    falls &= ends > 0
    rate = (centre @ p)[:, None]
    soft = base - at_centre
    top = np.where(falls, soft, 0.0).max(axis=1, keepdims=True)
    tilt = np.maximum(soft, LEAST_SHARE * np.maximum(top, 1e-9)) / rate
    along = tilt * rate - at_centre
    off, term = np.zeros_like(along), np.empty_like(along)
    for j in range(k):
        np.multiply(along, -centre[:, j : j + 1], out=term)
        term += tilt * p[j]
        term -= sums[j]
        np.abs(term, out=term)
        term *= where.steps[:, j : j + 1]
        off += term
    cosine = np.sqrt(np.maximum(0.0, 1 - where.sine**2))[:, None]
    total = base + np.maximum(along, along * cosine) + off
    # Sums of 4m terms of size at most the largest end, k + 2 times; and λ times the rate.
    size = np.abs(points).max(axis=1, keepdims=True) + float(reach.max()) + 1 + tilt
    total += doubt * (1 + tilt) + 32 * m * (k + 2) * EPSILON * size
    bound = total**2 / (4 * tilt) * (1 + 16 * EPSILON)
    return np.asarray(np.where(falls, bound, 0.0).max(axis=1))

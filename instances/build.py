"""Make every shipped instance file again: `make instances`.

The real samples come from the raw CSV files in `real/raw`; the others from named families and by
hand. A test compares what this script makes with what is shipped. What is known of their best gain
and densest margins stands in `known.json`, which `certify.py` writes. The large ones are not
stored: --large makes them.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the referee is part of the tests, not of the package

from mipmech import Instance, make_instance  # noqa: E402
from mipmech.model import Known, Units, example1  # noqa: E402
from mipmech.rationals import round_down, round_up  # noqa: E402
from tests import referee  # noqa: E402

HERE = ROOT / "instances"
KNOWN = HERE / "known.json"

# family, agents, rank, seed
SMALL = [
    ("gaussian-mixture", 60, 2, 1),
    ("gaussian-mixture", 40, 4, 2),
    ("gaussian-mixture", 12, 3, 15),
    ("gaussian-mixture", 25, 7, 16),
    ("uniform-ball", 50, 3, 3),
    ("uniform-ball", 30, 6, 4),
    ("uniform-ball", 16, 8, 17),
    ("heavy-tails", 50, 2, 5),
    ("heavy-tails", 30, 5, 6),
    ("heavy-tails", 12, 8, 18),
    ("clustered-lines", 60, 3, 7),
    ("clustered-lines", 40, 5, 8),
    ("clustered-lines", 50, 4, 19),
    ("ties", 40, 2, 9),
    ("ties", 30, 4, 10),
    ("ties", 24, 6, 20),
    ("adversarial", 60, 2, 11),
    ("adversarial", 40, 6, 12),
    ("adversarial", 50, 4, 21),
    ("costs", 50, 3, 13),
    ("costs", 25, 8, 14),
    ("costs", 30, 5, 22),
]
MEDIUM = [
    ("gaussian-mixture", 500, 3, 31),
    ("gaussian-mixture", 300, 5, 32),
    ("uniform-ball", 200, 4, 33),
    ("uniform-ball", 100, 6, 34),
    ("heavy-tails", 500, 3, 35),
    ("clustered-lines", 300, 4, 36),
    ("clustered-lines", 120, 5, 37),
    ("ties", 200, 5, 38),
    ("adversarial", 400, 4, 39),
    ("costs", 250, 4, 40),
    ("needle", 800, 4, 42),
    ("needle", 800, 4, 44),
    ("needle", 750, 4, 45),
]
# family, agents, rank, seed, norm, effort
PRICED = [
    ("gaussian-mixture", 40, 3, 61, "l1", None),
    ("uniform-ball", 30, 4, 62, "linf", None),
    ("heavy-tails", 40, 3, 63, "l2", "spread"),
    ("clustered-lines", 50, 3, 64, "l1", "spread"),
    ("clustered-lines", 40, 2, 65, "l1", None),
    ("heavy-tails", 30, 3, 66, "linf", None),
    ("adversarial", 40, 2, 67, "linf", "spread"),
    ("costs", 40, 3, 68, "l1", "spread"),
]
# Not stored: made again from the seed (`make instances-large`), or asked for by name.
LARGE = [
    ("gaussian-mixture", 5000, 3, 51),
    ("uniform-ball", 5000, 2, 52),
    ("uniform-ball", 1500, 4, 53),
    ("heavy-tails", 5000, 3, 54),
    ("clustered-lines", 3000, 3, 55),
    ("ties", 3000, 3, 56),
    ("adversarial", 5000, 3, 57),
    ("costs", 3000, 3, 58),
]

BY_REFEREE = "brute force over all critical angles and stationary points (tests/referee.py)"


def with_referee(instance: Instance) -> Instance:
    best = referee.best_gain(instance)
    return replace(instance, known=Known(best * (1 - 1e-9), best * (1 + 1e-9), BY_REFEREE))


def by_hand(gain: Fraction | float, why: str) -> Known:
    exact = Fraction(gain)
    return Known(round_down(exact), round_up(exact), f"by hand: {why}")


def tiny() -> dict[str, Instance]:
    make = Instance.from_arrays
    rng = np.random.default_rng(2020)
    cloud = np.round(rng.standard_normal((12, 3)), 3)
    return {
        "one-agent": make(
            [[2.0, 7.0]], [3.0, 4.0], visible=[0, 1], cost=1.0, name="one agent",
            known=by_hand(5.0, "it moves its whole reach of 1 along w_f, which has length 5"),
        ),
        "all-equal": make(
            [[1.5, -2.0, 8.0]] * 6, [3.0, 4.0, 9.0], visible=[0, 1], cost=2.0, name="all equal",
            known=by_hand(2.5, "everybody moves the whole reach of 1/2 along P w_f of length 5"),
        ),
        "two-on-a-line": make(
            [[0.0, 3.0], [0.5, 1.0]], [1.0, 1.0], visible=[0], cost=1.0, name="two on a line",
            known=by_hand(0.75, "threshold 1 moves both, by 1 and by 1/2"),
        ),
        "three-dimensions": make(
            [[1.0, 2.0, 2.0, 5.0]] * 3, [1.0, 2.0, 2.0, 7.0], visible=[0, 1, 2], cost=[1, 2, 4],
            name="three dimensions, unequal reach", weights=[1, 1, 2],
            known=by_hand(0.75, "all stand at one point, so a rule moves those whose reach is at"
                          " least d by d along w_f of length 3: shares 1, 1/2, 1/4 at 1/4, 1/2, 1"),
        ),
        "sum-is-seen": make(
            [[0.0, 0.0, 1.0], [0.5, -0.5, 2.0], [0.25, -0.25, 0.0]], [1.0, 1.0, 1.0],
            view=[[1.0, 1.0, 0.0]], cost=1.0, name="only the sum is seen",
            known=Known(1.414213562373095, 1.4142135623730954,
                        "by hand: all have the sum 0 and move 1 along P w_f of length √2"),
        ),
        "projected": make(
            [[0.0, 0.0], [3.0, -3.0]], [2.0, 0.0], projection=[[0.5, 0.5], [0.5, 0.5]], cost=2.0,
            name="a projection",
            known=Known(0.7071067811865474, 0.7071067811865477,
                        "by hand: both have the same score and move 1/2 along P w_f of length √2"),
        ),
        "hidden-quality": make(
            [[0.0, 3.0], [0.5, 1.0], [2.0, 2.0]], [0.0, 1.0], visible=[0], cost=1.0,
            name="quality is hidden", known=by_hand(0.0, "P w_f = 0, so no visible rule helps"),
        ),
        "negative-side": make(
            [[-4.0], [-3.75], [-3.5]], [1.0], visible=[0], cost=1.0, name="negative side",
            source="errata E1: the grid of Theorem 2 as printed moves nobody here",
            known=by_hand(0.75, "threshold −3 moves everybody, by 1, 3/4 and 1/2"),
        ),
        "tenths": with_referee(make(
            [[0.0], [0.1], [0.2], [0.3], [0.4], [0.5]], [1.0], visible=[0], cost=10.0,
            name="tenths", source="reach exactly 1/10, agents at floats near tenths",
        )),
        "touching": make(
            [[0.0], [1.0], [2.0]], [1.0], visible=[0], cost=1.0, name="touching margins",
            source="closed margins [0, 1], [1, 2], [2, 3] meet in single points",
            known=by_hand(Fraction(1, 3), "no threshold moves two agents by more than 1 in all"),
        ),
        "square": with_referee(make(
            [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], [1.0, 0.25], visible=[0, 1],
            cost=0.5, name="square",
        )),
        "weights": with_referee(make(
            [[0.0, 0.0], [4.0, 0.0], [4.1, 0.3]], [1.0, 0.0], visible=[0, 1], cost=2.0,
            weights=[0.5, 0.3, 0.21], name="0.5 against 0.3 + 0.21",
        )),
        "unequal-costs": with_referee(make(
            cloud[:9, :2], [1.0, 2.0], visible=[0, 1], name="unequal costs",
            cost=[0.5, 1, 1, 2, 2, 4, 4, 8, 8], weights=[1, 2, 3, 1, 2, 3, 1, 2, 0],
        )),
        "cloud": with_referee(make(
            cloud, [0.6, -0.3, 1.0], visible=[0, 1], cost=1.5, name="cloud", quality_offset=0.5,
        )),
        "far-away": with_referee(make(
            np.round(cloud[:, :2] + 3e7, 3), [1.0, 1.0], visible=[0, 1], cost=1.5, name="far away",
            source="coordinates near 3e7 with spread 1",
        )),
    }  # fmt: skip


def tiny_costs() -> dict[str, Instance]:
    """One or two for every cost, worked out in `source`.

    All numbers are exact in floats, but for those of `reach`.
    """
    make = Instance.from_arrays
    not_attained = Fraction(1249, 1250)
    return {
        "l1": make(
            [[0.0, 2.0], [2.0, 1.0]], [3.0, 2.0], visible=[0, 1], cost=1.0, norm="l1", name="l1",
            source="Whoever moves works on one feature. If that is the first (weights 1 and v with"
                   " |v| ≤ 1), the scores 2v and 2 + v differ by 2 - v ≥ 1, so the two move by at"
                   " most 1 in all: the gain is at most 3/2. If it is the second (weights u and 1),"
                   " u = 1/2 gives both the score 2, and with threshold 3 both move by 1, which"
                   " gains 2 each: nobody can do more there. Negative weights lower quality.",
            known=by_hand(2, "x0 + 2 x1 ≥ 6 moves both by 1 in x1, which pays less than x0 would"),
        ),
        "l1-tie": make(
            [[0.0, 2.0], [1.0, 1.0]], [3.0, 1.0], visible=[0, 1], cost=1.0, norm="l1",
            name="l1, a tie",
            source="With equal weights both features raise the score alike, and agents take the one"
                   " that is better for quality, the first. Both have the score 2, and with"
                   " threshold 3 both move by 1 in it. No rule gains more than 3 a person.",
            known=by_hand(3, "x0 + x1 ≥ 3 moves both by 1 in x0"),
        ),
        "l1-prices": make(
            [[0.0, 1.0], [8.0, 0.5]], [0.75, 4.0], visible=[0, 1], cost=1.0, norm="l1",
            effort=[0.25, 2.0], name="l1 with prices",
            source="The instance l1 in other units: multiplied by their prices, the features are"
                   " (0, 2) and (2, 1), and quality is 3 and 2 per unit of cost.",
            known=by_hand(2, "x0 + 16 x1 ≥ 24 moves both by 1/2 in x1, at a cost of 1"),
        ),
        "linf": make(
            [[0.0, 2.0], [2.0, 1.0]], [3.0, 2.0], visible=[0, 1], cost=1.0, norm="linf",
            name="linf",
            source="Whoever moves does so in all features at once that have a weight, by at most 1"
                   " in each, so that no rule gains more than 3 + 2 a person. With weights 1 and 2"
                   " both have the score 4, and a move of 1 in both features raises it by 3.",
            known=by_hand(5, "x0 + 2 x1 ≥ 7 moves both by 1 in both features"),
        ),
        "linf-not-attained": make(
            [[0.0, 0.0], [0.0, 5.0]], [3.0, 2.0], visible=[0, 1], cost=1.0, norm="linf",
            name="linf, not attained",
            source="To gain 5 from both, both must move by 1 in both features, so their scores must"
                   " be equal; but that needs a weight of 0 for the second, which then stays: gain"
                   " 3. With weights 1 - e and e, e > 0, threshold 1 moves the first by 1 and the"
                   " second by 1 - 5e, and gains 5 - 25e/2: as near to 5 as one likes, never 5.",
            known=Known(
                round_down(5 * (1 - Fraction(5, 2) * (1 - not_attained))), 5.0,
                "by hand: 1249 x0 + x1 ≥ 1250 gains 4.99, and every gain is below 5",
            ),
        ),
        "prices": make(
            [[0.0, 0.0], [32.0, -3.0]], [0.75, 8.0], visible=[0, 1], cost=2.0, effort=[0.25, 2.0],
            name="prices",
            source="Multiplied by their prices the features are (0, 0) and (8, -6), and quality is"
                   " 3 and 4 per unit of cost, of length 5. Across that direction the two differ"
                   " only sideways: 3*8 - 4*6 = 0. So both move by their reach of 1/2 along it.",
            known=by_hand(2.5, "0.75 x0 + 8 x1 ≥ 2.5 moves both by 1/2, and no rule has a greater"
                               " rate than 5"),
        ),
        "spill-over": make(
            [[0.0, 3.0], [0.25, 5.0]], [0.0, 1.0], visible=[0], cost=2.0,
            effort=[[2.0, -1.0], [-1.0, 1.0]], name="effort spills over",
            source="Quality is the second feature alone, which is not seen. The inverse of M is"
                   " [[1, 1], [1, 2]]: the cheapest way to raise the first feature by d is a move"
                   " of d in both, at cost 2 √(2 - 2 + 1) d = 2d. So agents move by up to 1/2, and"
                   " quality rises with them. Threshold 1/2 moves them by 1/2 and 1/4; beyond it"
                   " the first is out of reach, and the second alone gains at most 1/4; below it"
                   " both move less.",
            known=by_hand(Fraction(3, 8), "x0 ≥ 1/2 raises quality by 1/2 and 1/4"),
        ),
        "reach": make(
            [[0.0, 1.0], [0.2, 0.0]], [1.0, 1.0], visible=[0], reach=[0.3, 0.1], name="reach",
            source="No cost is exactly 1/0.3 in floats, but the reach is. Threshold 0.3 is the end"
                   " of the first agent's reach exactly, and within the second's, since the float"
                   " 0.3 is below 3/10 and 0.2 above 2/10. Above it only the second moves, by less"
                   " than 0.11; below it both move less.",
            known=by_hand((2 * Fraction(0.3) - Fraction(0.2)) / 2,
                          "x0 ≥ 0.3 moves the two by 0.3 and 0.3 - 0.2"),
        ),
    }  # fmt: skip


def read_raw(
    name: str, outcome: str, features: list[str]
) -> tuple[np.ndarray, np.ndarray, list[dict]]:
    with (HERE / "real" / "raw" / f"{name}.csv").open(newline="") as stream:
        rows = [r for r in csv.DictReader(stream) if all(r[c] for c in [*features, outcome])]
    values = np.array([[float(r[c]) for c in features] for r in rows])
    return values, np.array([float(r[outcome]) for r in rows]), rows


def fitted(name: str, outcome: str, features: list[str]) -> tuple[dict, np.ndarray, list[dict]]:
    """Standardised features and the least-squares quality, as arguments of from_arrays."""
    values, result, rows = read_raw(name, outcome, features)
    deviation = values.std(axis=0)
    centre = values.mean(axis=0)
    standard = np.round((values - centre) / deviation, 4)
    design = np.column_stack([standard, np.ones(len(result))])
    *slopes, level = np.linalg.lstsq(design, result, rcond=None)[0]
    parts = {
        "agents": standard,
        "quality": np.round(slopes, 4),
        "quality_offset": -round(float(level), 4),
        "features": features,
        # As exact as the rounded agents: rules are shown in the units of the raw table.
        "units": Units(tuple(np.round(centre, 4)), tuple(np.round(deviation, 4))),
    }
    return parts, deviation, rows


FIT_UNIT = "on the standardised features; a unit of distance is one standard deviation"
PRICED_UNIT = "on the features; a move of one standard deviation in any feature costs the same"
FIT = "w_f: least squares of {} " + FIT_UNIT
STAT2_NAMES = {"first_year_gpa": "FirstYearGPA", "med_gpa": "MedGPA"}
SAT = "Data: OpenIntro Statistics, data set satgpa (CC BY-SA 3.0). " + FIT.format("first-year GPA")
STAT2 = "Data: Cannon et al., STAT2, data set {}. "


def real() -> dict[str, tuple[str, Instance]]:
    """Instance name -> (table name, instance); instances of one sample share a table."""
    make = Instance.from_arrays
    parts, deviation, _ = fitted("satgpa", "fy_gpa", ["sat_v", "sat_m", "hs_gpa"])
    total = np.round(deviation[:2], 4)
    result = {
        "satgpa-tests": ("satgpa", make(
            **parts, visible=["sat_v", "sat_m"], cost=2.0, name="SAT seen, school grades hidden",
            source=SAT + ". The office sees both SAT scores, not the high-school GPA.",
        )),
        "satgpa-grades": ("satgpa", make(
            **parts, visible=["hs_gpa"], cost=2.0, name="test-blind: school grades only",
            source=SAT + ". The office sees the high-school GPA only.",
        )),
        "satgpa-view": ("satgpa", make(
            **parts, view=[[*total, 0.0], [0.0, 0.0, 1.0]], cost=2.0,
            name="SAT total and school grades",
            source=SAT + ". The office sees the sum of the two SAT scores, and the GPA.",
        )),
    }  # fmt: skip
    columns = ["HSGPA", "SATV", "SATM", "HU", "SS"]
    parts, _, rows = fitted("first_year_gpa", "GPA", columns)
    source = STAT2.format("FirstYearGPA") + FIT.format("first-year GPA")
    first = np.array([row["FirstGen"] == "1" for row in rows])
    result["first-year"] = ("first-year", make(
        **parts, visible=["HSGPA", "SATV", "SATM"], cost=2.0, name="first year, courses hidden",
        source=source + ". The office does not see the credits in humanities and social science.",
    ))  # fmt: skip
    result["first-year-costs"] = ("first-year", make(
        **parts, visible=["HSGPA", "SATV", "SATM"], cost=np.where(first, 3.0, 2.0),
        name="first year, unequal costs",
        source=source + ". As first-year; each step is assumed to cost first-generation students"
        " half as much again.",
    ))  # fmt: skip
    parts, _, _ = fitted("med_gpa", "Acceptance", ["BCPM", "GPA", "VR", "PS", "WS", "BS"])
    result["medical"] = ("medical", make(
        **parts, visible=["GPA", "VR", "PS", "BS"], cost=2.0, name="medical school applicants",
        source=STAT2.format("MedGPA") + FIT.format("acceptance (0 or 1)")
        + ". One applicant without a WS score is left out. The office does not see the science GPA"
        " (BCPM) or the writing sample (WS).",
    ))  # fmt: skip
    return result


def real_priced() -> dict[str, tuple[str, Instance]]:
    """Samples in the units of their raw tables, with a price of 1/standard deviation each."""
    made = {}
    samples = {
        "satgpa-units": ("satgpa", "fy_gpa", ["sat_v", "sat_m", "hs_gpa"], None),
        "first-year-units": (
            "first_year_gpa", "GPA", ["HSGPA", "SATV", "SATM", "HU", "SS"],
            ["HSGPA", "SATV", "SATM"],
        ),
        "medical-units": (
            "med_gpa", "Acceptance", ["BCPM", "GPA", "VR", "PS", "WS", "BS"],
            ["GPA", "VR", "PS", "BS"],
        ),
    }  # fmt: skip
    norms = {"satgpa-units": ("l2", "l1", "linf"), "first-year-units": ("l1",),
             "medical-units": ("linf",)}  # fmt: skip
    for table, (raw, outcome, features, visible) in samples.items():
        values, result, _ = read_raw(raw, outcome, features)
        design = np.column_stack([values, np.ones(len(result))])
        *slopes, level = np.linalg.lstsq(design, result, rcond=None)[0]
        origin = (
            SAT
            if raw == "satgpa"
            else STAT2.format(STAT2_NAMES[raw])
            + FIT.format("acceptance (0 or 1)" if raw == "med_gpa" else "first-year GPA")
        )
        origin = origin.replace(FIT_UNIT, PRICED_UNIT)
        for norm in norms[table]:
            name = f"{table}-{norm}"
            seen = "everything" if visible is None else ", ".join(visible) + " alone"
            instance = Instance.from_csv(
                HERE / "real" / "raw" / f"{raw}.csv",
                quality=dict(zip(features, np.round(slopes, 6).tolist(), strict=True)),
                quality_offset=-round(float(level), 6), features=features,
                visible=visible or features, cost=2.0, norm=norm, effort="standard",
                drop_blank=True, name=name,
                source=f"{origin}. Features in the units of the raw table; the office sees {seen}.",
            )  # fmt: skip
            made[name] = (table, replace(instance, ids=None))
    return made


def paper() -> dict[str, Instance]:
    reach = 0.25
    best = reach / math.sqrt(3)
    small = example1(40, cost=1 / reach)
    found = referee.best_gain(small)
    assert abs(found - best) < 1e-12, found
    how = f"the paper's ℓ/√3 for ℓ ≤ r; {BY_REFEREE}"
    known = Known(best * (1 - 1e-9), best * (1 + 1e-9), how)
    return {
        "example1": replace(small, known=known),
        "example1-m1000": example1(1000, cost=1 / reach),
    }


def with_known(instance: Instance) -> Instance:
    """The instance with what `certify.py` has proved about it."""
    entry = json.loads(KNOWN.read_text()).get(instance.digest) if KNOWN.exists() else None
    if entry is None or instance.known is not None:
        return instance
    return replace(instance, known=known_of(entry))


def known_of(entry: dict[str, Any]) -> Known:
    """An entry of known.json."""
    return Known(*entry["gain"], entry["how"], tuple(map(tuple, entry.get("densities", []))))


def seeded(folder: Path, members: list[tuple[Any, ...]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for family, agents, rank, seed, *priced in members:
        costs = dict(zip(("norm", "effort"), priced, strict=bool(priced)))
        instance = with_known(make_instance(family, agents, rank, seed, **costs))
        instance.save(folder / f"{instance.name}.json")


def build(folder: Path) -> None:
    for name in ("tiny", "paper", "real"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, instance in {**tiny(), **tiny_costs()}.items():
        instance.save(folder / "tiny" / f"{name}.json")
    for name, instance in paper().items():
        with_known(instance).save(folder / "paper" / f"{name}.json")
    seeded(folder / "small", SMALL + PRICED)
    seeded(folder / "medium", MEDIUM)
    for name, (table, instance) in {**real(), **real_priced()}.items():
        with_known(instance).save(folder / "real" / f"{name}.json", "csv", table=f"{table}.csv")


if __name__ == "__main__":
    if sys.argv[1:] == ["--large"]:
        seeded(HERE / "large", LARGE)
    else:
        build(HERE)
    print("instances: made again; `git status` shows what changed")

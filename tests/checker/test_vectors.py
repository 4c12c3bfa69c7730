"""The test vectors of docs/vectors: certificates, each with the verdict that any checker has.

`python -m tests.checker.test_vectors` makes them again.
"""

from __future__ import annotations

import base64
import copy
import json
import lzma
from fractions import Fraction

import pytest

from mipmech import Instance, certify, certify_density, check
from mipmech.checker.verdict import seal
from tests.conftest import ROOT

FOLDER = ROOT / "docs" / "vectors"
VERDICTS = FOLDER / "verdicts.json"
NAMES = ("gain", "density", "rejected")


@pytest.mark.parametrize("name", NAMES)
def test_vectors(name):
    expected = json.loads(VERDICTS.read_text())[f"{name}.json"]
    verdict = check(FOLDER / f"{name}.json")
    found = verdict.to_dict()
    assert {key: found[key] for key in ("status", "level", "upper", "leaves")} == {
        key: expected[key] for key in ("status", "level", "upper", "leaves")
    }
    assert verdict.lower == Fraction(expected["lower"])
    assert verdict.leaf_bound == pytest.approx(expected["leaf_bound"], rel=1e-11)
    assert (verdict.leaf_bound <= verdict.upper) == verdict.accepted
    assert verdict.accepted or expected["reason"] in verdict.reason


def test_all_of_them_are_listed():
    listed = json.loads(VERDICTS.read_text())
    assert {*listed, "sample.json", "verdicts.json"} == {file.name for file in FOLDER.iterdir()}


def test_only_the_tree_is_wrong_with_the_rejected_one():
    good, bad = (json.loads((FOLDER / f"{name}.json").read_text()) for name in ("gain", "rejected"))
    assert bad["seal"] == seal(bad)
    for content in (good, bad):
        del content["seal"], content["proof"]["tree"], content["proof"]["leaves"]
    assert good == bad


def cut_back(content):
    """The proof without what is below one node of it: a leaf is there that is too large."""
    symbols = lzma.decompress(base64.b85decode(content["proof"]["tree"]))
    inner = [place for place, symbol in enumerate(symbols) if symbol]
    kept = [True] * 4
    result = bytearray()
    for place, symbol in enumerate(symbols):
        leaf = place == inner[len(inner) // 2]
        if kept[place]:
            result.append(0 if leaf else symbol)
        if symbol:
            kept += [kept[place] and not leaf] * 2
    altered = copy.deepcopy(content)
    altered["proof"]["tree"] = base64.b85encode(lzma.compress(bytes(result))).decode()
    altered["proof"]["leaves"] = result.count(0)
    altered["seal"] = seal(altered)
    return altered


def write():
    """The sample, the certificates and their verdicts."""
    agents = [[0, 0, 1], [1, 0.5, 0], [-1, 0.5, 0], [0.5, -1, 2], [-0.5, -0.5, 1], [0.25, 1, 0]]
    sample = Instance.from_arrays(
        agents, [3.0, 4.0, 1.0], features=["seen", "also seen", "hidden"], visible=[0, 1],
        cost=[1.0, 2.0, 1.0, 4.0, 2.0, 1.0], weights=[1, 1, 2, 1, 1, 2], name="test vectors",
    )  # fmt: skip
    sample.save(FOLDER / "sample.json")
    sample = Instance.load(FOLDER / "sample.json")
    certify(sample, gap=1e-2).save(FOLDER / "gain.json")
    certify_density(sample, 2.5).save(FOLDER / "density.json")
    bad = cut_back(json.loads((FOLDER / "gain.json").read_text()))
    (FOLDER / "rejected.json").write_text(json.dumps(bad, indent=1, ensure_ascii=False))
    verdicts = {}
    for name in NAMES:
        verdict = check(FOLDER / f"{name}.json")
        kept = ("status", "level", "upper", "leaf_bound", "leaves")
        shown = {key: verdict.to_dict()[key] for key in kept}
        verdicts[f"{name}.json"] = {**shown, "lower": str(verdict.lower)}
        if not verdict.accepted:
            verdicts[f"{name}.json"]["reason"] = "a leaf allows"
    VERDICTS.write_text(json.dumps(verdicts, indent=1) + "\n")


if __name__ == "__main__":
    write()

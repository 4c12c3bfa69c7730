"""Certificates made by version 0.5.1 are accepted, and not if they are tampered with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mipmech
from tests.conftest import ROOT

CERTIFICATES = sorted((Path(__file__).parent / "made_by_0_5_1").glob("*.json"))


@pytest.mark.parametrize("file", CERTIFICATES, ids=lambda file: file.stem)
def test_certificates_of_0_5_1(file):
    content = json.loads(file.read_text())
    instance = ROOT / content["instance"]["path"]
    assert content["made_by"]["version"] == "0.5.1"
    verdict = mipmech.check(file, instance)
    assert verdict.accepted, verdict
    assert verdict.level == content["level"]
    content["upper"] *= 0.99
    assert not mipmech.check(content, mipmech.Instance.load(instance)).accepted


def test_there_are_some_of_every_kind():
    kinds = {
        (content["claim"]["kind"], content["level"])
        for content in (json.loads(file.read_text()) for file in CERTIFICATES)
    }
    assert kinds == {("gain", "proved"), ("gain", "attested"), ("density", "proved")}

"""A sample may be given as an instance, as its geometry, or by the name of its file."""

from __future__ import annotations

import pytest

from mipmech import Budget, Certificate, Instance, certify, check, make_instance
from mipmech.design.describe import describe
from mipmech.design.folds import held_out
from mipmech.errors import InputError
from mipmech.model import reduce
from mipmech.model.geometry import geometry_of
from mipmech.oracles.call import ask


def _held_out(given):
    def design(part, budget: Budget) -> Certificate:
        return certify(part, gap=0.5, budget=budget)

    return held_out(given, design, folds=2)


@pytest.mark.parametrize(
    "call", [geometry_of, describe, _held_out, lambda given: ask(given, eta=0.1)]
)
def test_a_sample_is_an_instance_its_geometry_or_its_file(call, tmp_path):
    sample = make_instance("ties", 20, 2, seed=1)
    sample.save(tmp_path / "sample.json")
    for given in (sample, reduce(sample), tmp_path / "sample.json", str(tmp_path / "sample.json")):
        call(given)
    for wrong in (sample.agents, None, sample.to_dict()):
        with pytest.raises(InputError, match="give an Instance, its Geometry, or the name of"):
            call(wrong)
    with pytest.raises(InputError, match="cannot be read: no such file"):
        call(tmp_path / "missing.json")


def test_a_certificate_is_given_in_any_of_its_forms(tmp_path):
    sample = make_instance("ties", 20, 2, seed=1)
    sample.save(tmp_path / "sample.json")
    found = certify(Instance.load(tmp_path / "sample.json"))
    found.save(tmp_path / "proof.json")
    assert check(found).accepted
    assert check(found.content(), sample).accepted
    assert check(tmp_path / "proof.json").accepted
    with pytest.raises(InputError, match="cannot be read: no such file"):
        check(tmp_path / "missing.json")
    with pytest.raises(InputError, match="give a Certificate or its file"):
        check(None)
    with pytest.raises(InputError) as fault:
        check(tmp_path / "sample.json")
    assert fault.value.field == "format"
    (tmp_path / "sample.json").unlink()
    with pytest.raises(InputError, match="--instance FILE"):
        check(tmp_path / "proof.json")

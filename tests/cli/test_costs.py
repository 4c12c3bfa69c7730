"""The command line on samples with every cost: what is said is true, and nothing breaks."""

from __future__ import annotations

import json
import re

import pytest

from mipmech import Instance, certify
from mipmech.cli import main
from mipmech.model.costs.facets import facets_of
from tests.conftest import ROOT

TINY, SMALL = ROOT / "instances" / "tiny", ROOT / "instances" / "small"
L1, LINF = TINY / "l1-prices.json", TINY / "linf.json"
EVERY = [TINY / f"{name}.json" for name in ("prices", "l1", "l1-prices", "linf", "spill-over")]


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return status, " ".join(out.split()), err


@pytest.mark.parametrize("file", EVERY, ids=lambda file: file.stem)
def test_show_says_the_cost_and_what_passing_buys(capsys, file):
    status, out, _ = run(capsys, "show", file)
    assert status == 0
    for phrase in ("passing is worth a move of up to", "the greatest rate is", "Theorems 1 and 2"):
        assert phrase in out
    assert "‖P w_f‖ =" not in out
    shown = json.loads(run(capsys, "show", file, "--json")[1])["costs"]
    for name, amount in shown["buys"].items():
        assert f"{amount:.4g} {name}" in out


def test_words_fit_the_norm(capsys):
    assert "0.25, x1 2" in run(capsys, "show", L1)[1]
    assert "work on the one that pays most" in run(capsys, "show", L1)[1]
    linf = run(capsys, "show", LINF)[1]
    assert "work on all features at once" in linf
    assert re.search(r"x0 and [\d.]+ x1 at once", linf)
    spills = run(capsys, "show", TINY / "spill-over.json")[1]
    assert "x1, hidden, may move along" in spills
    assert "how on average x0 +0.375, x1 +0.375" in spills
    plain = run(capsys, "show", TINY / "square.json")[1]
    assert "passing" not in plain
    assert "‖P w_f‖ =" in plain


@pytest.mark.parametrize("file", [L1, LINF], ids=["l1", "linf"])
def test_solve_asks_once_for_each_rate(capsys, file):
    status, out, _ = run(capsys, "solve", file, "--oracle", "milp-soft")
    assert status == 0
    assert "once for each rate of a facet" in out
    assert "the rate on this facet" in out
    assert "ε" not in out
    shown = json.loads(run(capsys, "solve", file, "--grid", "facets", "--json")[1])
    rates = {facet.rate for facet in facets_of(Instance.load(file)) if facet.rate > 0}
    assert shown["grid"] == {"name": "facets", "size": len(rates)}


@pytest.mark.parametrize("grid", ["angular", "paper"])
def test_other_grids_are_refused_in_one_sentence(capsys, grid):
    given = ["--sigma", "1", "--radius", "1"] if grid == "paper" else []
    status, out, err = run(capsys, "solve", L1, "--grid", grid, *given)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "for Euclidean costs (l2)" in err


def test_facets_of_a_sphere_are_refused(capsys):
    status, _, err = run(capsys, "solve", TINY / "prices.json", "--grid", "facets")
    assert status == 2
    assert "no facets" in err
    shown = json.loads(run(capsys, "solve", TINY / "prices.json", "--json")[1])
    assert shown["grid"]["name"] == "angular"


def test_an_eta_that_no_facet_has_is_answered_with_the_rates(capsys):
    status, out, _ = run(capsys, "oracle", L1, "--eta", "1")
    assert status == 0
    assert "no facet has this rate; those of l1 here are 3, 2, -2 and -3" in out
    assert "0.3333 of the greatest rate" in out
    for rate in (3, 2):
        found = json.loads(run(capsys, "oracle", L1, "--eta", rate, "--json")[1])
        assert found["status"] == "optimal"
        # On an edge agents do what is best for quality.
        assert found["eta_achieved"] >= rate * (1 - 1e-9)


def test_named_rates_can_be_asked_for(capsys):
    file = SMALL / "heavy-tails-m30-k3-s66-linf.json"
    _, out, _ = run(capsys, "oracle", file, "--eta-fraction", "0.5")
    named = re.search(r"here are (.*?) and (\d+) lower ones", out)
    assert named is not None
    for rate in named[1].split(", "):
        asked = run(capsys, "oracle", file, "--eta", rate, "--json", "--oracle", "random")
        assert json.loads(asked[1])["status"] == "feasible"


@pytest.mark.slow
@pytest.mark.parametrize("file", [L1, LINF, TINY / "spill-over.json"], ids=lambda file: file.stem)
def test_certify_against_simpler_rules(capsys, file, tmp_path):
    proof = tmp_path / "proof.json"
    status, out, _ = run(
        capsys, "certify", file, "--against", "projection,milp,milp-soft", "--out", proof
    )
    assert status == 0
    for phrase in ("projection", "milp, two thresholds", "milp-soft"):
        assert phrase in out
    if file != TINY / "spill-over.json":
        assert "the optimum, facet by facet" in out
    assert run(capsys, "check", proof, "--instance", file)[0] == 0
    movers = run(capsys, "certify", file, "--movers", tmp_path / "m.csv", "--json")
    assert json.loads(movers[1])["movers"]


def test_rules_that_do_not_fit_are_refused_before_any_work(capsys, tmp_path):
    proof = tmp_path / "proof.json"
    status, out, err = run(capsys, "certify", L1, "--against", "milp,pca", "--out", proof)
    assert (status, out) == (2, "")
    assert "pca is for Euclidean costs (l2), and these are l1; there are: projection, cells" in err
    assert not proof.exists()


@pytest.mark.slow
def test_grade_learn_and_compare(capsys, tmp_path):
    file = SMALL / "clustered-lines-m50-k3-s64-l1-priced.json"
    best = certify(file, gap=0.01).mechanism
    rule = tmp_path / "rule.json"
    rule.write_text(json.dumps(best.to_dict()))
    assert run(capsys, "grade", file, "--rule", rule)[0] == 0
    assert run(capsys, "learn", file, "--sizes", "12", "--repeats", "1")[0] == 0
    assert run(capsys, "learn", file, "--sigma", "0.2", "--sizes", "12", "--repeats", "1")[0] == 0
    out = tmp_path / "run"
    status, said, _ = run(
        capsys, "compare", file, "--oracles", "milp,random", "--etas", "1,0.8,0.3",
        "--seconds-per-call", "1", "--out", out,
    )  # fmt: skip
    assert status == 0
    assert "at the nearest rate of a facet" in said
    assert "greatest density known for 2 of 2" in said
    assert "attested" in said
    assert run(capsys, "report", out, "-o", tmp_path / "page.html")[0] == 0

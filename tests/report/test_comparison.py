"""Reports: what they say, that strangers' texts stay texts, what is refused. No browser here."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from dataclasses import replace

import numpy as np
import pytest

from mipmech import InputError, Instance
from mipmech.report import report
from mipmech.report.comparison.summary import hard_groups, kind, summary
from mipmech.report.reading import read
from mipmech.studies.batch.folder import MARK, RECORDS
from mipmech.studies.batch.records import instance_file
from mipmech.studies.comparison.results import CALLS
from mipmech.studies.spread import Spread
from mipmech.text import clean
from tests.conftest import ROOT
from tests.report.comparisons import made_up, real
from tests.report.pages import check_page
from tests.report.runs import HOSTILE, TINY, keep

FORMATS = ("html", "md", "csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("comparison")
    real(place, TINY)
    return place


@pytest.fixture(scope="module")
def html(folder):
    return report(folder)


def compared(folder):
    """The comparison that is all there is in a folder."""
    batch = read(folder)
    assert batch.alone
    return batch.comparisons[0]


def changed(comparison, **changes):
    """The same comparison with other calls."""
    runs = [
        replace(r, calls=tuple(replace(c, **changes) for c in r.calls)) for r in comparison.runs
    ]
    return replace(comparison, runs=tuple(runs))


def broken(comparison):
    return [replace(run, calls=(), error="it broke <here>") for run in comparison.runs]


BASE = made_up()
WORST = replace(BASE.runs[0], calls=(replace(BASE.runs[0].calls[0], lower=2.0, gain=99.0),))
ODD = {
    "no runs": replace(BASE, runs=(), complete=False),
    "nothing at all": replace(
        BASE, runs=(), problems=(), settings=replace(BASE.settings, oracles=())
    ),
    "one oracle": made_up(3, ("only",)),
    "one of each": made_up(1, ("exact",), groups=1, fractions=(0.5,)),
    "soft only": changed(BASE, soft=True),
    "nothing to choose": changed(BASE, status="infeasible"),
    "only failures": replace(BASE, runs=tuple(broken(BASE))),
    "some failures": replace(BASE, runs=(*broken(BASE)[:5], *BASE.runs[5:])),
    "a violation": replace(BASE, runs=(WORST, *BASE.runs[1:])),
    "no time at all": changed(BASE, seconds=0.0, trace=()),
    "one moment": changed(BASE, seconds=1.0, trace=((1.0, 0.1, 0.9), (1.0, 0.2, 0.8))),
    "hostile": made_up(8, HOSTILE[:4], names=HOSTILE),
    "many groups": made_up(30, groups=30),
    "many oracles": made_up(2, [f"oracle number {i}" for i in range(20)]),
}


# ------------------------------------------------------------------------ the page


def test_the_page_is_whole_and_alone(html, folder):
    page = check_page(html)
    words = " ".join(page.words)
    for problem in compared(folder).problems:
        assert problem.name in words
    for heading in ("Summary", "Oracles", "By group", "Performance profile", "How to read this"):
        assert heading in words
    assert page.tags["main"] == page.tags["h1"] == page.tags["title"] == 1
    assert ("html", "lang", "en") in page.attributes
    assert len(html) < 1_000_000


def test_every_picture_has_its_finding(html):
    figures = re.findall(r"<figure.*?</figure>", html, re.S)
    assert len(figures) >= 7
    for figure in figures:
        (alt,) = re.findall(r'role="img" aria-label="([^"]+)"', figure)
        (caption,) = re.findall(r"<figcaption>(.+?)</figcaption>", figure, re.S)
        assert len(alt) > 40
        assert any(c.isdigit() for c in alt)
        assert len(caption) > 20


def test_pictures_take_the_colours_of_the_page(html):
    figures = "".join(re.findall(r"<figure.*?</figure>", html, re.S))
    assert "currentColor" in figures
    assert {"var(--blue)", "var(--grid)", "var(--margin)", "var(--accept)"} <= set(
        re.findall(r"var\(--\w+\)", figures)
    )
    assert not re.findall(r"(?:fill|stroke):#", figures)
    used = set(re.findall(r"var\((--[\w-]+)", html))
    declared = set(re.findall(r"(--[\w-]+):", html))
    assert used <= declared


def test_gallery_shows_the_best_rules(html, folder):
    names = re.findall(r'aria-label="The best rule known on (.+?)\. [\d,]+ of', html)
    drawn_ = [p.name for p in compared(folder).problems if p.best is not None]
    assert names == drawn_
    assert len(names) == 3  # on one, no rule gains anything
    assert "no rule that gains anything is known" in html


def test_same_input_same_output(folder, html):
    assert report(folder) == html
    for form in ("md", "csv"):
        assert report(folder, format=form) == report(folder, format=form)


@pytest.mark.parametrize("name", ODD)
def test_odd_comparisons(name, tmp_path):
    place = keep(ODD[name], tmp_path / "folder")
    texts = {form: report(place, format=form) for form in FORMATS}
    check_page(texts["html"])
    assert texts["md"].startswith("# ")
    rows = list(csv.reader(io.StringIO(texts["csv"])))
    assert rows[0] == list(CALLS)
    assert {len(row) for row in rows} == {len(CALLS)}
    assert len(rows) - 1 == sum(len(run.calls) or 1 for run in ODD[name].runs)
    if ODD[name].runs:
        assert summary(compared(place)) == summary(ODD[name])


def test_large_ones_stay_small(tmp_path):
    large = made_up(24, [f"oracle-{i}" for i in range(6)], groups=12)
    text = report(keep(large, tmp_path))
    check_page(text)
    assert len(text) < 1_500_000


def test_many_agents_become_an_image(tmp_path):
    sample = ROOT / "instances" / "paper" / "example1-m1000.json"
    found = real(tmp_path / "real", [sample], ("projection",), (0.5,))
    content = json.loads(sample.read_text())
    content["agents"] = np.repeat(Instance.load(sample).agents, 2, axis=0).tolist()
    (tmp_path / "many.json").write_text(json.dumps(content))
    many = Instance.load(tmp_path / "many.json")
    problem = replace(found.problems[0], digest=many.digest)
    place = keep(replace(found, problems=(problem,), runs=()), tmp_path / "run")
    many.save(place / problem.file)
    text = report(place)
    assert text.count("data:image/png;base64,") >= 1
    assert len(text) < 400_000


# ----------------------------------------------------------------------- the words


def said(comparison):
    return " ".join(map(str, summary(comparison)))


def test_summary_names_the_best_and_where_heuristics_fail():
    comparison = made_up(12, ("exact", "slow", "luck", "more luck"), groups=4)
    text = said(comparison)
    assert re.match(r"(exact|slow) was best overall: median [\d.]+\s%, quartiles", text)
    expected = []
    for group in comparison.groups:
        problems = [problem for problem in comparison.problems if problem.group == group]
        medians = [
            np.median([q for qs in comparison.qualities(name, problems).values() for q in qs])
            for name in ("luck", "more luck")
        ]
        if max(medians) < 0.8:
            expected.append(group)
    assert hard_groups(comparison) == expected
    assert f"Heuristics failed in {len(expected)} of 4 groups" in text
    assert re.search(r"The best heuristic was (more luck|luck): median [\d.]+\s%, quart", text)
    assert "References are closed for 11 of 12 gains and 36 of 36 densities; where" in text
    assert "above the upper bound" not in text
    assert "cut short" not in text


def test_four_sentences_are_enough():
    for comparison in (BASE, made_up(12, ("exact", "slow", "luck", "more luck"), groups=4)):
        assert [sentence.tone for sentence in summary(comparison)] == ["plain"] * 4


def test_nothing_is_said_of_what_is_not_known():
    """Every reference open: no shares, and no word on who reaches which of them."""
    comparison = made_up(4, ("exact", "slow", "luck", "more luck"), groups=2)
    unknown = [
        replace(p, densities=tuple(replace(b, lower=0.0) for b in p.densities))
        for p in comparison.problems
    ]
    text = said(replace(comparison, problems=tuple(unknown)))
    assert "No quality is known: the greatest density is open at every η." in text
    assert "some heuristic" not in text
    assert "was asked for density" not in text


def test_summary_says_what_is_wrong():
    assert "4 values lie above an upper bound" in said(ODD["a violation"])
    assert summary(ODD["a violation"])[0].tone == "bad"
    assert "was cut short" in said(ODD["no runs"])
    assert "Nothing was answered" in said(ODD["no runs"])
    assert "5 runs gave no answer" in said(ODD["some failures"])
    assert "only gains are compared" in said(ODD["soft only"])


def test_no_middle_without_its_spread():
    for comparison in ODD.values():
        for sentence in summary(comparison):
            text = str(sentence)
            for match in re.finditer(r"median \d", text):
                assert "quartiles" in text[match.end() : match.end() + 30]


def test_an_oracle_that_fails_is_not_the_best():
    # "exact" is perfect where it answers, and answers one instance in six.
    runs = []
    for run in BASE.runs:
        if run.oracle == "exact":
            keeps = run.instance == BASE.problems[0].digest
            problem = BASE.by_digest[run.instance]
            calls = [
                replace(call, lower=bounds.upper)
                for call, bounds in zip(run.calls, problem.densities, strict=True)
            ]
            lost = replace(run, calls=(), error="no")
            runs.append(replace(run, calls=tuple(calls)) if keeps else lost)
        else:
            runs.append(run)
    text = said(replace(BASE, runs=tuple(runs)))
    assert "slow was best overall" in text


def test_kinds_of_oracles():
    assert [kind(BASE, name) for name in BASE.oracles] == ["exact", "exact", "heuristic"]
    assert kind(ODD["soft only"], "luck") == "heuristic, soft"
    assert kind(ODD["no runs"], "luck") == "no answers"


# ------------------------------------------------------------- texts of strangers


def test_hostile_names_are_text(tmp_path):
    place = keep(ODD["hostile"], tmp_path)
    page = check_page(report(place))
    words = " ".join("".join(page.words).split())
    for name in HOSTILE:
        assert clean(name) in words
    assert "window.hacked" not in page.script
    assert not any("hacked" in value for _, name, value in page.attributes if name == "style")


def test_markdown_is_inert(tmp_path):
    text = report(keep(ODD["hostile"], tmp_path), format="md")
    assert "<" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert not re.search(r"(?<!\\)\$", text)
    assert "://" not in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.M):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1


def test_spreadsheet_runs_nothing(tmp_path):
    rows = list(csv.DictReader(io.StringIO(report(keep(ODD["hostile"], tmp_path), format="csv"))))
    for row in rows:
        for column in ("instance", "group", "oracle", "status", "stop"):
            assert row[column][0] not in "=+-@\t\r\n"
    assert any(row["oracle"] == "'=cmd|' /C calc'!A0" for row in rows)


def test_spreadsheet_holds_every_call(tmp_path):
    rows = list(csv.DictReader(io.StringIO(report(keep(BASE, tmp_path), format="csv"))))
    calls = [(run, call) for run in BASE.runs for call in run.calls]
    assert len(rows) == len(calls) == 90
    for row, (run, call) in zip(rows, calls, strict=True):
        problem = BASE.by_digest[run.instance]
        place = BASE.settings.eta_fractions.index(call.eta_fraction)
        assert row["instance"] == problem.name
        assert float(row["lower"]) == call.lower
        assert float(row["quality"]) == problem.densities[place].share(call.lower)
        assert float(row["gain_share"]) == problem.gain.share(call.gain)
        assert row["seed"] == ("" if run.seed is None else str(run.seed))
        assert row["upper"] == ("" if call.upper is None else str(call.upper))
    qualities = [float(row["quality"]) for row in rows if row["oracle"] == "luck"]
    assert Spread.of(qualities) == BASE.summary("luck").density


# --------------------------------------------------------------- files of strangers


def with_problem(folder, place, **changes):
    """The comparison of a folder with another first problem."""
    found = compared(folder)
    first = replace(found.problems[0], **changes)
    return keep(replace(found, problems=(first, *found.problems[1:]), runs=()), place)


@pytest.mark.parametrize("way", ["dots", "absolute", "link", "folder link", "pipe", "nul", "long"])
def test_no_file_outside_the_folder_is_opened(way, folder, tmp_path, monkeypatch):
    # The file outside is the very instance: if it were opened, it would be drawn.
    outside = tmp_path / "run.js"  # a name that ends within what counts of a digest
    outside.mkdir()
    secret = outside / "s.json"
    secret.write_bytes((folder / compared(folder).problems[0].file).read_bytes())
    place = tmp_path / "inside"
    (place / "instances").mkdir(parents=True)
    os.mkfifo(place / "instances" / "pipe.json")
    digests = {
        "dots": "../../run.js/s", "absolute": "/" * 16, "link": "linked", "folder link": "linked/s",
        "pipe": "pipe", "nul": "a\0b", "long": "../" * 5,
    }  # fmt: skip
    with_problem(folder, place, digest=digests[way])
    opened = []
    load = Instance.load
    monkeypatch.setattr(Instance, "load", lambda path: opened.append(path) or load(path))
    text = report(place)
    links = {"link": ("linked.json", secret), "folder link": ("linked", outside)}
    if way in links:
        name, where = links[way]
        (place / "instances" / name).symlink_to(where)
        with pytest.raises(InputError, match="is a link"):
            report(place)
    assert not [path for path in opened if "s.json" in str(path) or "pipe" in str(path)]
    assert "its copy is missing from the folder" in text
    assert str(outside) not in text


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"digest": "0" * 64}, "its copy is not the instance that was asked about"),
        (
            {"best": {"weights": [1.0], "threshold": 0.0}},
            "its best rule is faulty: weights: has 1 numbers",
        ),
        ({"best": {"weights": "x", "threshold": {}}}, "its best rule is faulty"),
        ({"digest": "broken"}, "its copy cannot be read"),
        ({"digest": "folder"}, "its copy is missing"),
    ],
)
def test_a_faulty_instance_costs_its_picture_alone(changes, why, folder, tmp_path):
    found = compared(folder)
    first = found.problems[0]
    if "best" in changes:
        changes = {"gain": replace(first.gain, **changes)}
    place = with_problem(folder, tmp_path, **changes)
    for problem in found.problems:
        (place / problem.file).write_bytes((folder / problem.file).read_bytes())
    (place / instance_file("0" * 64)).write_bytes((folder / first.file).read_bytes())
    (place / instance_file("broken")).write_text('{"format": "mipmech/instance@1", "name": ')
    (place / instance_file("folder")).mkdir()
    text = report(place)
    assert text.count("The best rule known on") == 2
    (note,) = re.findall(rf"<li><b class=\"name\">{first.name}</b>: (.*?)</li>", text)
    assert why in note


def test_missing_instances_cost_only_the_gallery(tmp_path):
    text = report(keep(BASE, tmp_path))
    assert "There is nothing to draw" in text
    assert "Not drawn: 6" in text


def test_only_what_is_there_can_be_reported(tmp_path):
    with pytest.raises(InputError, match=r"missing: does not exist; give the folder"):
        report(tmp_path / "missing")
    with pytest.raises(InputError, match=r"holds no run.json; give the folder of a run"):
        report(tmp_path)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(InputError, match=r"file: is a file; give the folder"):
        report(file)
    with pytest.raises(InputError, match=r"format: is 'pdf'; give one of html, md, csv"):
        report(tmp_path, format="pdf")


def test_output_is_written_whole_or_refused_before_the_work(tmp_path):
    place = keep(BASE, tmp_path / "folder")
    target = tmp_path / "report.html"
    target.write_text("old")
    assert report(place, target) == target.read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "report.html"]
    assert report(place, place / "report.md", "md") == (place / "report.md").read_text()
    for output, why in [
        (tmp_path / "no" / "where.html", "is in no folder"),
        (tmp_path, "is a folder"),
        (place / MARK, "is part of what the report is made from"),
        (place / "instances.json", "is part of what the report is made from"),
        (place / ".." / "folder" / RECORDS, "is part of what the report is made from"),
    ]:
        with pytest.raises(InputError, match=why):
            report(place, output)
    assert compared(place).problems == BASE.problems
    with pytest.raises(InputError, match="not a plain file"):
        report(place, "/dev/null")

"""Reports: what they say, that strangers' texts stay texts, what is refused. No browser here."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from mipmech import InputError, Instance
from mipmech.report import report
from mipmech.report.figures import looks
from mipmech.report.gallery import MOST, choose
from mipmech.report.reading import read
from mipmech.report.svg import BLUE, drawn
from mipmech.report.tables import CALLS
from mipmech.report.words import hard_groups, kind, summary
from mipmech.report.writing import clean
from mipmech.studies.comparison.results import FILE
from mipmech.studies.spread import Spread
from tests.comparisons import HOSTILE, TINY, keep, made_up, real
from tests.conftest import ROOT

FORMATS = ("html", "md", "csv")
VOID = {"meta", "br", "input", "img", "link", "hr"}


class Page(HTMLParser):
    """The tags, identifiers and texts of a page; fails where tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.words = [], Counter(), [], [], []
        self.attributes, self.script = [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.script += data
        else:
            self.words.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("comparison")
    real(place, TINY)
    return place


@pytest.fixture(scope="module")
def html(folder):
    return report(folder)


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
        BASE, runs=(), problems=(), settings={**BASE.settings, "oracles": []}
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


def check_page(text):
    page = Page(text)
    twice = [name for name, number in Counter(page.ids).items() if number > 1]
    assert not twice
    for link in page.links:
        assert link.startswith("data:image/png;base64,") or link[1:] in page.ids, link
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert not [a for a in page.attributes if a[1] == "id" and a[2].startswith("figure")]
    assert page.tags["script"] == 1
    assert not {"img", "iframe", "object", "embed", "link", "base"} & set(page.tags)
    (policy,) = (v for t, n, v in page.attributes if t == "meta" and v and "default-src" in v)
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy
    assert "http:" not in text
    assert "https:" not in text.replace("https://example.org", "")  # a hostile name has one
    return page


def test_the_page_is_whole_and_alone(html, folder):
    page = check_page(html)
    words = " ".join(page.words)
    for problem in read(folder).problems:
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


def test_text_in_a_picture_stays_as_it_is():
    name = f'{BLUE} id="x" <b> $x$ \\frac &amp; url(#p) font-family: x'
    picture = drawn((3, 2), lambda f: f.subplots().set_xlabel(name), "k", name)
    page = Page(picture)
    assert name in "".join(page.words)
    assert ("svg", "aria-label", name) in page.attributes
    assert all(i.startswith("k-") for i in page.ids)


def test_gallery_shows_the_best_rules(html, folder):
    names = re.findall(r'aria-label="The best rule known on (.+?)\. [\d,]+ of', html)
    drawn_ = [p.name for p in read(folder).problems if p.best is not None]
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


def test_large_ones_stay_small(tmp_path):
    large = made_up(60, [f"oracle-{i}" for i in range(8)], groups=12)
    text = report(keep(large, tmp_path))
    check_page(text)
    assert len(text) < 3_000_000


def test_gallery_takes_from_all_groups_in_turn():
    problems = made_up(60, groups=12).problems
    chosen = choose(problems)
    assert len(chosen) == MOST
    assert set(Counter(problem.group for problem in chosen).values()) == {2}
    assert list(chosen) == [problem for problem in problems if problem in chosen]
    assert choose(problems[:5]) == list(problems[:5])


def test_many_agents_become_an_image(tmp_path):
    sample = ROOT / "instances" / "paper" / "example1-m1000.json"
    found = real(tmp_path, [sample], ("projection",), (0.5,))
    agents = np.repeat(Instance.load(sample).agents, 2, axis=0)
    content = json.loads((tmp_path / found.problems[0].file).read_text())
    many = {**content, "agents": agents.tolist()}
    (tmp_path / "many.json").write_text(json.dumps(many))
    digest = Instance.load(tmp_path / "many.json").digest
    problem = replace(found.problems[0], file="many.json", digest=digest)
    text = report(keep(replace(found, problems=(problem,), runs=()), tmp_path))
    assert text.count("data:image/png;base64,") >= 1
    assert len(text) < 400_000


def test_contrast_is_enough_in_both_themes():
    style = (ROOT / "mipmech" / "report" / "page.css").read_text()
    colours = dict(re.findall(r"(--[\w-]+): light-dark\((#\w{6}, #\w{6})\)", style))

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    def contrast(front, back, theme):
        values = [luminance(colours[c].split(", ")[theme]) + 0.05 for c in (front, back)]
        return max(values) / min(values)

    for theme in (0, 1):
        for front in ("--ink", "--quiet", "--link"):
            for back in ("--page", "--card", "--row", "--note-page"):
                assert contrast(front, back, theme) >= 4.5, (front, back, theme)
        assert contrast("--bad", "--bad-page", theme) >= 4.5
        assert contrast("--bad", "--card", theme) >= 4.5
        for line in ("--blue", "--vermillion", "--green", "--purple", "--yellow", "--grey"):
            assert contrast(line, "--card", theme) >= 2.6, (line, theme)


def test_oracles_differ_in_more_than_colour():
    many = made_up(1, [f"oracle-{i}" for i in range(40)])
    assert len({(look.colour, look.mark, str(look.dash)) for look in looks(many).values()}) == 40
    first = list(looks(many).values())[:7]
    assert len({look.mark for look in first}) == len({str(look.dash) for look in first}) == 7


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
    assert [entry.group for entry in hard_groups(comparison)] == expected
    assert f"Heuristics failed in {len(expected)} of 4 groups" in text
    assert "of 12 gains 11 are closed" in text
    assert "1 open" in text
    assert "No value lies above" in text
    assert "cut short" not in text


def test_nothing_is_said_of_what_is_not_known():
    """Every reference open: no shares, and no word on who reaches which of them."""
    comparison = made_up(4, ("exact", "slow", "luck", "more luck"), groups=2)
    unknown = [
        replace(p, densities=tuple(replace(b, lower=0.0) for b in p.densities))
        for p in comparison.problems
    ]
    text = said(replace(comparison, problems=tuple(unknown)))
    assert "No quality can be told: the greatest density is not known at any of these η." in text
    assert "some heuristic" not in text
    assert "was asked for density" not in text


def test_summary_tells_where_the_best_heuristic_nearly_reaches_the_optimum():
    comparison = made_up(12, ("exact", "slow", "luck", "more luck"), groups=3)
    told = r"(more luck|luck) has 99\s% or more of the optimum at the median on (\d+) of (\d+) inst"
    name, *near = re.search(told, said(comparison)).groups()
    medians = [
        np.median([q for qs in found.values() for q in qs])
        for problem in comparison.problems
        if (found := comparison.qualities(name, [problem]))
    ]
    assert list(map(int, near)) == [sum(m >= 0.99 for m in medians), len(medians)]


def test_summary_says_what_is_wrong():
    assert "2 values lie above the upper bound" in said(ODD["a violation"])
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
    assert text.startswith("slow was best overall")


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
        place = BASE.settings["eta_fractions"].index(call.eta_fraction)
        assert row["instance"] == problem.name
        assert float(row["lower"]) == call.lower
        assert float(row["quality"]) == problem.densities[place].share(call.lower)
        assert float(row["gain_share"]) == problem.gain.share(call.gain)
        assert row["seed"] == ("" if run.seed is None else str(run.seed))
        assert row["upper"] == ("" if call.upper is None else str(call.upper))
    qualities = [float(row["quality"]) for row in rows if row["oracle"] == "luck"]
    assert Spread.of(qualities) == BASE.summary("luck").density


def test_clean():
    assert clean("\u202eevil\x00\ud800") == "\ufffdevil\ufffd\ufffd"
    assert clean("می\u200cخواهم") == "می\u200cخواهم"
    assert clean(" \n\t ") == "(no name)"


# --------------------------------------------------------------- files of strangers


def with_problem(folder, place, **changes):
    """The comparison of a folder with another first problem."""
    found = read(folder)
    first = replace(found.problems[0], **changes)
    return keep(replace(found, problems=(first, *found.problems[1:])), place)


@pytest.mark.parametrize("way", ["dots", "absolute", "link", "folder link", "pipe", "nul", "long"])
def test_no_file_outside_the_folder_is_opened(way, folder, tmp_path, monkeypatch):
    # The file outside is the very instance: if it were opened, it would be drawn.
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret.json"
    secret.write_bytes((folder / read(folder).problems[0].file).read_bytes())
    place = tmp_path / "inside"
    place.mkdir()
    (place / "linked.json").symlink_to(secret)
    (place / "linked").symlink_to(outside)
    os.mkfifo(place / "pipe.json")
    names = {
        "dots": "../outside/secret.json", "absolute": str(secret), "link": "linked.json",
        "folder link": "linked/secret.json", "pipe": "pipe.json", "nul": "a\0b.json",
        "long": "x" * 5000,
    }  # fmt: skip
    with_problem(folder, place, file=names[way])
    opened = []
    load = Instance.load
    monkeypatch.setattr(Instance, "load", lambda path: opened.append(path) or load(path))
    text = report(place)
    assert not [path for path in opened if "secret" in str(path) or "pipe" in str(path)]
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
        ({"best": [1, 2]}, "its best rule is not an object"),
        ({"file": "broken.json"}, "its copy cannot be read"),
        ({"file": "instances"}, "its copy is missing"),
    ],
)
def test_a_faulty_instance_costs_its_picture_alone(changes, why, folder, tmp_path):
    found = read(folder)
    for problem in found.problems:
        copy = tmp_path / problem.file
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes((folder / problem.file).read_bytes())
    (tmp_path / "broken.json").write_text('{"format": "mipmech/instance@1", "name": ')
    if "digest" in changes:
        found = replace(found, runs=())
    first = replace(found.problems[0], **changes)
    keep(replace(found, problems=(first, *found.problems[1:])), tmp_path)
    text = report(tmp_path)
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
    with pytest.raises(InputError, match=r"holds no comparison.json"):
        report(tmp_path)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(InputError, match=r"file: is a file; give the folder"):
        report(file)
    with pytest.raises(InputError, match=r"format: is 'pdf'; give one of html, md, csv"):
        report(tmp_path, format="pdf")


def test_broken_records_are_refused(tmp_path):
    def refused(text, pattern):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(InputError, match=pattern) as caught:
            report(tmp_path)
        assert caught.value.file == str(tmp_path / FILE)

    refused("{", "is not JSON")
    refused("[]", "is not a comparison")
    refused('{"format": "mipmech/comparison@1"}', "is not a whole comparison")
    refused("[" * 100_000, "nested too deeply|not JSON")
    (tmp_path / FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        report(tmp_path)
    whole = BASE.to_dict()

    def with_(value, *keys):
        copy = json.loads(json.dumps(whole))
        part = copy
        for key in keys[:-1]:
            part = part[key]
        part[keys[-1]] = value
        return json.dumps(copy)

    for value, *keys in [
        ("x", "settings", "oracles"),
        ([1], "settings", "oracles"),
        (["x"], "settings", "eta_fractions"),
        ([0.25], "settings", "eta_fractions"),
        ([0.25, 0.5, 0.9], "settings", "eta_fractions"),
        ({}, "problems", 0, "name"),
        (None, "problems", 0, "group"),
        (3, "problems", 0, "file"),
        ("many", "problems", 0, "agents"),
        ([], "problems", 0, "densities"),
        (float("nan"), "problems", 0, "gain", "lower"),
        (-1.0, "problems", 0, "gain", "upper"),
        ("sworn", "problems", 0, "gain", "level"),
        ("0" * 63 + "1", "problems", 0, "digest"),
        ("nobody", "runs", 0, "instance"),
        (7, "runs", 0, "oracle"),
        ("one", "runs", 0, "seed"),
        (7, "runs", 0, "error"),
        ("x", "runs", 0, "calls", 0, "lower"),
        (float("inf"), "runs", 0, "calls", 0, "seconds"),
        (0.1, "runs", 0, "calls", 0, "eta_fraction"),
        ([[0.1, "x", None]], "runs", 0, "calls", 0, "trace"),
        (float("nan"), "seconds"),
        ({}, "seconds"),
    ]:
        refused(with_(value, *keys), ".")


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
        (place / FILE, "is part of what the report is made from"),
        (place / "instances.json", "is part of what the report is made from"),
        (place / ".." / "folder" / FILE, "is part of what the report is made from"),
    ]:
        with pytest.raises(InputError, match=why):
            report(place, output)
    assert json.loads((place / FILE).read_text())["format"] == "mipmech/comparison@1"
    with pytest.raises(InputError, match="not a plain file"):
        report(place, "/dev/null")


def test_importing_is_light():
    code = (
        "import sys, mipmech.report;"
        "print([m for m in ('matplotlib', 'jinja2', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""Reports of batches: what they say, also mid-run; strangers' folders; damaged records."""

from __future__ import annotations

import csv
import io
import json
import os
import re

import pytest

from mipmech import InputError, Instance
from mipmech.report import report
from mipmech.report.batch.pictures import MOST_KINDS, by_size, kinds
from mipmech.report.batch.summary import contradictions, summary
from mipmech.report.batch.tables import details, tables
from mipmech.report.kit import tabular
from mipmech.report.reading import read
from mipmech.studies.batch import RunFolder, export_run
from mipmech.studies.batch.folder import LOCK, MARK, PLANS, RECORDS
from mipmech.studies.batch.records import instance_file
from mipmech.studies.comparison.compare import compare
from mipmech.text import clean
from tests.batches import start, write_plan
from tests.report.pages import check_page
from tests.report.runs import HOSTILE, SETTINGS, TINY, MadeUp, everything, hostile, line

FORMATS = ("html", "md", "csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return everything().write(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    return report(everything(1, 2).write(tmp_path_factory.mktemp("page")))


def said(folder):
    return " ".join(map(str, summary(read(folder))))


def table(folder, key):
    batch = read(folder)
    found = [*tables(batch), *details(batch)]
    (found,) = (entry for entry in found if entry.key == key)
    return found


def column(found, name):
    place = [entry.name for entry in found.columns].index(name)
    return [row.cells[place].text for row in found.rows]


# ------------------------------------------------------------------------ what it says


def test_the_page_is_whole_and_alone(html):
    page = check_page(html)
    words = " ".join(page.words)
    for heading in (
        "Summary", "Kinds of jobs", "Certificates", "Questions to oracles", "Algorithm 1",
        "Without a result", "Time by kind and size", "Jobs over time", "Gaps closing",
        "Bounds: the longest certificates", "Gallery", "Settings and versions", "Comparison:",
        "Performance profile", "How to read this",
    ):  # fmt: skip
        assert heading in words, heading
    assert page.tags["main"] == page.tags["h1"] == 1
    for figure in re.findall(r"<figure.*?</figure>", html, re.S):
        (alt,) = re.findall(r'role="img" aria-label="([^"]+)"', figure)
        assert len(alt) > 40
    assert len(html) < 1_000_000


def test_summary_counts_what_became_of_every_job(folder):
    text = said(folder)
    assert "All 47 jobs have ended, 44 with a result" in text
    assert "as of 2026-11-18 09:00:47 UTC." in text
    assert "3 jobs have no result: 1 ran out of time, 1 ran out of memory and 1 lost the" in text
    assert "4 of 8 certificates reached the gap asked for; the widest gap left is 50\u202f%" in text
    assert "could not be understood" not in text
    listed = table(folder, "kinds")
    assert sum(map(int, column(listed, "jobs"))) == 47
    assert sum(map(int, column(listed, "no result"))) == 3


def test_tables_of_each_task(folder):
    certified = table(folder, "certify")
    assert len(certified.rows) == 8
    assert set(column(certified, "repetition")) == {"1", "2"}
    assert set(column(certified, "gap, %")) == {"50", "0.5"}
    assert "gap asked for" not in [entry.name for entry in certified.columns]  # all the same
    asked = table(folder, "oracle")
    assert column(asked, "seed") == ["–", "0", "–", "1", "–", "2", "–", "3"]
    assert set(column(asked, "at most")) == {"0.5", "–"}
    assert column(table(folder, "solve"), "made") == ["1,234"] * 4
    assert column(table(folder, "solve"), "share, %") == ["80.0"] * 4  # of the references' 0.1
    assert column(table(folder, "no-result"), "why")[2] == "the worker <died>"


def test_rules_as_they_were_printed(tmp_path):
    """Of certificates and of Algorithm 1; whatever else stands there is passed over."""
    made = MadeUp()
    subject = made.subject(None)
    made.certify(subject)["result"] |= {
        "printed": {"text": "1 gpa +0.5 sat ≥ 9"}, "moving_share": 0.25, "accepted_share": 0.5,
    }  # fmt: skip
    made.solve(subject)["result"] |= {"printed": {"text": "<b>\u202e"}, "moving_share": 3.0}
    for odd in (None, 5, [], {"text": 7}, "1 gpa ≥ 2"):
        made.certify(subject)["result"] |= {"printed": odd, "accepted_share": odd}
    found = table(made.write(tmp_path), "rules")
    assert column(found, "accept if") == ["1 gpa +0.5 sat ≥ 9", "<b>�"]
    assert column(found, "move, %") == ["25.0", "–"]
    assert column(found, "accepted, %") == ["50.0", "–"]
    texts = {form: report(tmp_path, format=form) for form in FORMATS}
    check_page(texts["html"])
    assert "1 gpa +0.5 sat ≥ 9" in texts["html"]
    assert "1 gpa +0.5 sat ≥ 9" in texts["md"]


def test_the_spreadsheet_is_that_of_bench_export(folder):
    assert report(folder, format="csv") == export_run(folder, None)


def test_same_input_same_output(folder):
    assert report(folder, format="md") == report(folder, format="md")


def test_bounds_that_exclude_each_other_are_shouted(folder, tmp_path):
    assert not contradictions(read(folder))
    made = MadeUp()
    subject = made.subject(None)
    made.certify(subject)
    made.certify(subject, upper=0.05)
    place = made.write(tmp_path)
    assert len(contradictions(read(place))) == 1
    assert summary(read(place))[0].tone == "bad"
    assert "Contradictions" in report(place, format="md")


def test_set_ups_are_told_apart(tmp_path):
    made = everything(0)
    made.records[0]["made_by"] = {"version": "0.5.0", "cores": 64}
    assert "made by 2 set-ups" in said(made.write(tmp_path))


# ------------------------------------------------------------------------ comparisons


def test_comparisons_are_put_together(folder):
    (found,) = read(folder).comparisons
    assert found.complete
    assert [problem.gain.upper for problem in found.problems] == [0.1] * 4
    assert len(found.runs) == 4 * 3
    assert {run.seed for run in found.runs_of("random")} == {0, 1}
    assert found.settings == SETTINGS


def test_comparisons_that_differ_in_one_setting_share_no_wrong_job(tmp_path):
    made = everything(2, 1)
    made.compare(made.plan["subjects"][0], SETTINGS, repetition=1)
    place = made.write(tmp_path)
    first, second = read(place).comparisons
    assert (len(first.runs), len(second.runs)) == (3, 2)  # "sweep" has no seed: one job for both
    page = check_page(report(place))  # no identifier twice
    assert "Comparison 2: 2 oracles on 1 instance" in " ".join("".join(page.words).split())
    assert "## Comparison 2: 2 oracles" in report(place, format="md")


def test_a_false_statement_in_a_file_is_named(tmp_path):
    made = everything()
    made.plan["subjects"][0]["known_gain"] = [0.0, 1e-9]
    place = made.write(tmp_path)
    (found,) = read(place).comparisons
    (doubt,) = found.doubts
    assert "the greatest gain is said to be at most 1e-09, but there is a rule with" in doubt
    assert doubt in report(place, format="md")
    made.plan["subjects"][0]["known_gain"] = "nonsense"
    assert "nonsense" not in report(made.write(tmp_path / "again"), format="md")


def test_what_failed_in_a_comparison(tmp_path):
    made = everything()
    lost = {"status": "timeout", "reason": "too slow", "result": None, "bounds": None}
    asks = [record for record in made.records if record["task"] == "ask"]
    asks[0].update(lost)
    references = [record for record in made.records if record["task"] == "reference"]
    references[0].update(lost)  # the gain: what the file states
    made.plan["subjects"][0]["known_gain"] = [0.05, 0.1]
    references[4].update(lost)  # a density: at most 1
    place = made.write(tmp_path)
    (found,) = read(place).comparisons
    assert [run.error for run in found.runs if run.error] == ["timeout: too slow"]
    first = found.problems[0]
    assert first.gain.level == "stated"
    assert (first.gain.lower, first.gain.upper) == first.known_gain
    assert found.problems[1].densities[0].upper == 1
    for file in (place / "instances").iterdir():
        file.unlink()
    (without,) = read(place).comparisons
    assert without.problems == found.problems  # all but the gallery
    assert "its copy is missing" in report(place)


def test_missing_records_leave_a_comparison_open(tmp_path):
    made = everything()
    first = made.records[0]["instance"]
    made.records = [record for record in made.records if record["instance"] != first]
    (found,) = read(made.write(tmp_path)).comparisons
    assert not found.complete
    assert len(found.problems) == 3


# ------------------------------------------------------------------------ mid-run


def test_a_run_that_goes_on(tmp_path):
    made = everything()
    made.records = made.records[:20]
    place = made.write(tmp_path)
    assert "The run is not complete: 27 of 47 jobs have not been done" in said(place)
    with RunFolder.open(place).locked():
        text = said(place)
        assert "The run goes on: 20 of 47 jobs so far, as of 2026-11-18 09:00:20 UTC" in text
        assert "goes on: 20 of 47" in report(place, format="md")


def test_a_torn_end_is_no_record(tmp_path):
    made = everything(0)
    place = made.write(tmp_path)
    before = [report(place, format=form) for form in ("md", "csv")]
    with (place / RECORDS).open("ab") as stream:
        stream.write(line(made.records[0])[:100])
    assert [report(place, format=form) for form in ("md", "csv")] == before


def test_before_anything_is_done(tmp_path):
    place = RunFolder.make(tmp_path / "run").path
    with RunFolder(place).locked():
        pass
    assert "There is no plan here, only 0 records" in said(place)
    with RunFolder.open(place).locked():
        assert "just begun" in said(place)
    for form in FORMATS:
        report(place, format=form)
    made = everything()
    made.records = []
    place = made.write(tmp_path / "other")
    with RunFolder.open(place).locked():
        page = check_page(report(place))
    assert "to come" in " ".join(page.words)
    assert "47 of 47 jobs have not been done" in said(place)


REAL = """
[limits]
seconds = 20
[[instances]]
family = "gaussian-mixture"
agents = [12, 16]
rank = 2
seed = 3
[[instances]]
files = "broken.json"
[[tasks]]
task = "oracle"
oracle = ["sweep", "random", "pca"]
eta_fraction = [0.9, 0.6, 0.3]
seed = [0, 1]
[[tasks]]
task = "compare"
oracles = ["sweep", "random"]
eta_fractions = [0.8, 0.4]
seeds = [0, 1]
reference_seconds = 20
[[tasks]]
task = "certify"
gap = 1e-2
"""


@pytest.mark.slow
def test_reports_while_a_run_really_goes_on(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    plan = write_plan(tmp_path, 'format = "mipmech/plan@1"\n' + REAL)
    place = tmp_path / "plan.run"
    process = start(plan, "--quiet", "--workers", "1")
    seen, reports = set(), 0
    while process.poll() is None:
        if not (place / MARK).exists():
            continue
        # Pages are slow, and the point is to read often.
        form = FORMATS[reports % 3] if reports % 30 == 0 else FORMATS[1 + reports % 2]
        report(place, format=form)
        found = re.search(r"goes on: ([\d,]+) of", said(place))
        seen |= {found[1]} if found else set()
        reports += 1
    process.communicate()
    assert process.returncode == 1  # the broken file's jobs have no result
    assert len(seen) >= 2
    batch = read(place)
    assert (batch.missing, batch.odd, batch.damaged, batch.busy) == (0, 0, 0, False)
    assert "1 file is no instance." in said(place)
    # The same comparison as the one that `compare` makes.
    (found,) = batch.comparisons
    instances = [Instance.load(place / problem.file) for problem in found.problems]
    same = compare(
        instances, ["sweep", "random"], eta_fractions=[0.8, 0.4], seeds=[0, 1],
        seconds_per_call=20, reference_seconds=20, workers=1,
    )  # fmt: skip

    def told(comparison):
        return [
            (run.instance, run.oracle, run.seed, run.record, call.eta_fraction, call.lower)
            for run in comparison.runs
            for call in run.calls
        ]

    assert told(found) == told(same)
    assert same.settings == found.settings


# ------------------------------------------------------------------------ strangers


def test_hostile_texts_are_text(tmp_path):
    place = hostile().write(tmp_path)
    page = check_page(report(place))
    words = " ".join("".join(page.words).split())
    for name in HOSTILE[:2]:
        assert clean(name) in words
    assert "window.hacked" not in page.script
    text = report(place, format="md")
    assert "<" not in text
    assert "://" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    for row in csv.DictReader(io.StringIO(report(place, format="csv"))):
        assert all(not value or value[0] not in "=+@\t\r\n" for value in row.values())


def changed(record, path, value):
    copy = part = json.loads(json.dumps(record))
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return copy


NAN, INF = float("nan"), float("inf")
DAMAGE = {
    "certify": [
        (("seconds",), NAN), (("seconds",), "x"), (("seconds",), True), (("memory",), -1),
        (("bounds",), None), (("bounds",), {}), (("bounds", "lower"), NAN),
        (("bounds", "upper"), None), (("bounds", "upper"), 1e300), (("bounds", "upper"), "1"),
        (("bounds", "level"), 3), (("events",), [[1]]), (("events",), [[1, 2, INF, 3]]),
        (("events",), "xxxx"), (("ended",), "yesterday"), (("ended",), "0001-01-01T00:00+14:00"),
        (("started",), 7), (("instance", "name"), None), (("instance", "agents"), 10**400),
        (("instance", "agents"), -1), (("instance",), []), (("options",), []),
        (("allowed",), {}), (("allowed", "seconds"), [1]), (("made_by",), 3),
        (("repetition",), "0"), (("status",), None), (("task",), {}), (("result",), []),
    ],
    "oracle": [
        (("options", "eta_fraction"), "x"), (("options", "eta"), NAN),
        (("options", "options"), None),
    ],
    "solve": [(("result",), {}), (("result", "oracle_calls"), 3), (("result",), None)],
    "reference": [
        (("result", "lower"), NAN), (("result", "lower"), 9.0), (("result", "upper"), -1.0),
        (("result", "lower"), -1.0), (("result", "upper"), 1e200), (("result", "best"), [1, 2]),
        (("result", "level"), "sworn"), (("result",), {}), (("bounds", "upper"), None),
        (("options", "eta_fraction"), 0.123), (("instance", "digest"), "0" * 64),
    ],
    "ask": [
        (("result", "calls"), 3), (("result", "calls", 0, "lower"), NAN),
        (("result", "calls", 0, "lower"), "x"), (("result", "calls", 0, "seconds"), INF),
        (("result", "calls", 0, "gain"), 1e200), (("result", "calls", 0, "upper"), [1]),
        (("result", "calls", 0, "trace"), [[0.1, "x", None]]), (("result", "seed"), "one"),
        (("result", "oracle"), 7), (("result", "error"), 7), (("result", "record"), None),
        (("result", "calls", 0, "eta_fraction"), 0.123), (("result", "instance"), "another"),
        (("result", "calls", 0, "trace"), [[1, 2]]), (("result", "seed"), 17),
        (("options", "eta_fractions"), None), (("result", "oracle"), "another"),
    ],
}  # fmt: skip


def test_damaged_records_are_passed_over_and_counted(tmp_path):
    number = 0
    for task, damages in DAMAGE.items():
        for path, value in damages:
            made = everything(1, 1)
            place = next(i for i, r in enumerate(made.records) if r["task"] == task)
            made.records[place] = changed(made.records[place], path, value)
            folder = made.write(tmp_path / str(number))
            number += 1
            batch = read(folder)
            assert batch.odd + batch.damaged == 1, (task, path, value)
            assert len(batch.entries) == 13
            assert batch.lost == ()
            assert "1 record could not be understood and is left out." in said(folder)
            report(folder, format="md")
            lines = list(csv.reader(io.StringIO(report(folder, format="csv"))))
            assert len({len(row) for row in lines}) == 1


def options(made, record, given):
    """Other options for a record and for its job; a plan with NaN is not read at all."""
    record["options"] = given
    (job,) = (job for job in made.plan["jobs"] if job["id"] == record["id"])
    job["options"] = {} if NAN in given.values() else given


def test_whatever_stands_in_unchecked_fields_can_be_shown(tmp_path):
    made = everything(1, 1)
    odd = [None, 3, NAN, "x" * 100_000, [], {"a": [{}]}, HOSTILE, True, -(10**300)]
    first = len(made.records)
    for value in odd:
        record = made.certify(made.plan["subjects"][0], value)
        options(made, record, {"gap": value, "engine": value, "keep": value})
        record["made_by"] = {"version": value, "cores": value}
        record["certificate"] = None
        solved = made.solve(made.plan["subjects"][0])
        own = {"oracle": value, "grid": value, "options": {"a": value}, "seed": value}
        options(made, solved, own)
    place = made.write(tmp_path)
    batch = read(place)
    # Nobody writes what is not a number: such a line is damaged.
    assert (len(batch.entries), batch.damaged) == (first + 2 * len(odd) - 2, 2)
    texts = {form: report(place, format=form) for form in FORMATS}
    check_page(texts["html"])
    assert len(texts["html"]) < 2_500_000


def test_lines_that_do_not_match_their_checksum(tmp_path):
    made = everything(0)
    place = made.write(tmp_path)
    lines = (place / RECORDS).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"proved", b"PROVED")
    lines[3] = b"\xff\xfe nonsense\n"
    (place / RECORDS).write_bytes(b"".join(lines))
    assert "2 records could not be understood and are left out" in said(place)
    assert "2 of 23 jobs have not been done" in said(place)


def test_records_of_another_plan_are_left_to_the_spreadsheet(tmp_path):
    made = everything(0)
    made.plan["jobs"] = made.plan["jobs"][:5]
    place = made.write(tmp_path)
    assert "18 records of jobs that the plan does not have" in said(place)
    assert len(read(place).entries) == 5
    assert len(report(place, format="csv").splitlines()) == 24


def test_a_plan_that_is_not_whole_costs_its_comparisons_alone(tmp_path):
    for number, (path, value) in enumerate([
        (("comparisons",), [3]), (("comparisons",), [{}]), (("subjects",), 3),
        (("comparisons", 0, "oracles"), "x"), (("comparisons", 0, "oracles"), [1]),
        (("comparisons", 0, "eta_fractions"), ["x"]), (("comparisons",), 3),
        (("subjects", 0, "name"), {}), (("subjects", 0, "group"), None),
        (("comparisons", 0, "eta_fractions"), "x"), (("subjects", 0, "agents"), "many"),
    ]):  # fmt: skip
        made = everything()
        made.plan = changed(made.plan, path, value)
        place = made.write(tmp_path / str(number))
        assert read(place).comparisons == ()
        assert "A comparison cannot be shown" in said(place)
        report(place, format="md")


def test_hopeless_folders_are_refused(tmp_path):
    def refused(place, name, why):
        for form in ("md", "html"):
            with pytest.raises(InputError, match=why) as caught:
                report(place, format=form)
            assert caught.value.file == str(place / name)

    def spoiled(name, text):
        place = everything(0).write(tmp_path / str(len(list(tmp_path.iterdir()))))
        (place / name).write_text(text)
        return place

    plan = f"{PLANS}/p.json"
    refused(spoiled(MARK, "{"), MARK, "is not JSON")
    refused(spoiled(MARK, '{"format": "x"}'), MARK, "its format is not")
    refused(spoiled(MARK, "[" * 100_000), MARK, "nested too deeply|not JSON")
    refused(spoiled(MARK, '{"format": "mipmech/run@1", "plan": "../x"}'), MARK, "elsewhere")
    refused(spoiled(plan, "[]"), plan, "is not one JSON object")
    refused(spoiled(plan, "{}"), plan, "is not a whole plan")
    refused(spoiled(plan, "[" * 100_000), plan, "nested too deeply|not JSON")
    place = spoiled(plan, "x")
    (place / plan).unlink()
    refused(place, plan, "is missing")
    for name in (MARK, RECORDS, LOCK, plan):
        place = everything(0).write(tmp_path / f"pipe-{name.replace('/', '-')}")
        (place / name).unlink(missing_ok=True)
        os.mkfifo(place / name)
        if name == LOCK:
            report(place, format="md")  # nobody waits for what never comes
        else:
            refused(place, name, "not a plain file")


def test_copies_outside_the_folder_are_not_opened(tmp_path, monkeypatch):
    secret = tmp_path / "secret.json"
    sample = Instance.load(TINY[0])
    sample.save(secret)
    made = MadeUp()
    subject = made.subject(None, digest="../../secret")
    rule = {"weights": [1.0] * sample.agents.shape[1], "threshold": 0.0}
    made.certify(subject, rule)
    linked = made.subject(sample)
    made.certify(linked, rule)
    place = made.write(tmp_path / "run")
    copy = place / instance_file(linked["digest"])
    copy.unlink()
    opened = []
    load = Instance.load
    monkeypatch.setattr(Instance, "load", lambda path: opened.append(path) or load(path))
    assert report(place).count("its copy is missing from the folder") == 2
    copy.symlink_to(secret)
    with pytest.raises(InputError, match="is a link"):
        report(place)
    assert opened == []


def test_the_report_does_not_overwrite_the_run(tmp_path):
    place = everything(0).write(tmp_path / "run")
    (place / "instances" / "a.npy").write_bytes(b"x")
    for name in (MARK, RECORDS, LOCK, f"{PLANS}/p.json", "instances/a.npy"):
        with pytest.raises(InputError, match="is part of what the report is made from"):
            report(place, place / name)
    assert report(place, place / "report.md", "md") == (place / "report.md").read_text()


# ------------------------------------------------------------------------ size


@pytest.mark.slow
def test_large_runs_stay_small(tmp_path, monkeypatch):
    monkeypatch.setattr(tabular, "MOST_ROWS", 200)
    made = MadeUp()
    for _ in range(200):
        subject = made.subject(None)
        made.certify(subject)
        for seed in range(3):
            made.oracle(subject, "ransac", seed)
        made.failed(subject)
    made.certify(made.subject(None))
    place = made.write(tmp_path)
    text = report(place)
    assert len(text) < 1_000_000
    assert text.count("Only the first 200 of") == 2
    assert "first 200 of 600 rows are shown here" in text
    assert len(report(place, format="csv").splitlines()) == 1002


def test_many_kinds_share_a_look(tmp_path):
    made = MadeUp()
    subject = made.subject(None)
    for number in range(30):
        made.oracle(replace_size(subject, number), f"oracle-{number}")
    batch = read(made.write(tmp_path))
    assert len(kinds(batch)) == MOST_KINDS
    (picture,) = by_size(batch)
    assert "other kinds" in picture.caption
    assert "3–75" in picture.svg  # many sizes share a column


def replace_size(subject, number):
    return {**subject, "agents": 3 * (number + 1) ** 2}


# ------------------------------------------------------------------------ one comparison alone


def compared_alone():
    made = MadeUp(comparisons=[SETTINGS])
    for path in TINY:
        made.compare(made.subject(Instance.load(path)), SETTINGS)
    return made


def test_one_comparison_and_nothing_else_is_shown_as_that(tmp_path):
    place = compared_alone().write(tmp_path / "alone")
    assert report(place, format="md").startswith("# 2 oracles on 4 instances\n")
    assert len(report(place, format="csv").splitlines()) == 1 + 4 * 3 * 2  # calls
    assert "mipmech · comparison of oracles" in report(place)
    for name in ("certify", "solve", "oracle"):
        made = compared_alone()
        getattr(made, name)(made.plan["subjects"][0])
        other = made.write(tmp_path / name)
        assert "\n## Comparison 1: 2 oracles on 4 instances\n" in report(other, format="md")
        assert len(report(other, format="csv").splitlines()) == 1 + 4 * 6 + 1  # jobs
    made = compared_alone()
    made.compare(made.plan["subjects"][0], SETTINGS, repetition=1)
    assert "# made up: 30 jobs" in report(made.write(tmp_path / "twice"), format="md")


def test_a_comparison_alone_says_how_its_run_stands(tmp_path):
    made = compared_alone()
    references = [record for record in made.records if record["task"] == "reference"]
    references[0].update(status="memory", reason="3 GB", result=None, bounds=None)
    references[1]["result"]["level"] = "sworn"
    made.records.pop()
    place = made.write(tmp_path)
    text = report(place, format="md")
    assert "The run is not complete: 1 of 24 jobs have not been done" in text
    assert "1 record could not be understood and is left out." in text
    assert "1 job has no result: 1 ran out of memory." in text
    assert "not all questions were asked" in text
    with RunFolder.open(place).locked():
        assert "The run goes on: 23 of 24 jobs so far" in report(place, format="md")

"""Reports of runs under requirements: in words, by group, and where no rule is allowed."""

from __future__ import annotations

import pytest

from mipmech import Instance
from mipmech.report import report
from mipmech.report.batch.summary import contradictions, summary
from mipmech.report.batch.tables import details, tables
from mipmech.report.comparison.tables import instances
from mipmech.report.kit.phrases import rates_of, required
from mipmech.report.kit.tabular import MOST_RATES
from mipmech.report.reading import read
from mipmech.studies.batch import RunFolder
from tests.report.pages import check_page
from tests.report.runs import HOSTILE, SETTINGS, TINY, MadeUp
from tests.studies.test_required_jobs import FAIR, HARMFUL, IMPOSSIBLE, asked, sample

FORMATS = ("html", "md", "csv")
NONE = {"what": "gain", "status": "infeasible", "lower": None, "upper": None, "level": "proved"}


def words(given):
    return "".join(required(given)).replace("\u202f", " ")


def said(folder):
    return " ".join(map(str, summary(read(folder)))).replace("\u202f", " ")


def table(folder, key):
    batch = read(folder)
    (found,) = (t for t in (*tables(batch), *details(batch)) if t.key == key)
    return found


def column(found, name):
    place = [entry.name for entry in found.columns].index(name)
    return [row.cells[place].text for row in found.rows]


def certificate(made, subject, given, lower=0.1, upper=0.2, rates=None, **more):
    """A certificate under requirements; without bounds, that no rule meets them."""
    options = {"gap": 1e-3, "engine": "auto", "keep": True}
    options |= {} if given is None else {"requirements": given}
    bounds = {"what": "gain", "status": "gap", "lower": lower, "upper": upper, "level": "proved"}
    if upper is None:
        bounds = NONE
    result = {"mechanism": None, "printed": {"text": "1 gpa ≥ 9"}, "accepted_share": 0.25}
    result |= {} if rates is None else {"rates": rates}
    events = [[0.001, 0.0, 0.9, 1], [0.002, 0.05, None, 2]]
    return made.job(subject, "certify", options, result, bounds, events=events, **more)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Certificates under three lists of requirements, and without any."""
    made = MadeUp()
    subject = made.subject(Instance.load(TINY[0]))
    certificate(made, subject, None, 0.4, 0.41)
    certificate(made, subject, FAIR, rates={"men": 0.25, "women": 0.3})
    certificate(made, subject, HARMFUL, -0.1, 0.0)
    certificate(made, subject, HARMFUL, None, 0.3, repetition=1)
    certificate(made, subject, IMPOSSIBLE, None, None)
    return made.write(tmp_path_factory.mktemp("several"))


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        ({"nonnegative": "all"}, "all weights are at least 0"),
        ({"nonpositive": ["gpa"]}, "the weight of gpa is at most 0"),
        ({"nonnegative": ["gpa", 3]}, "the weights of gpa and number 3 are at least 0"),
        ({"order": [["sat", "gpa"]]}, "the weight of sat is at least that of gpa"),
        ({"accepted": [0.1, 0.3]}, "10 % to 30 % of the agents are accepted"),
        ({"accepted": [0, 0.3]}, "at most 30 % of the agents are accepted"),
        ({"accepted": [0.025, 1]}, "at least 2.5 % of the agents are accepted"),
        ({"accepted": [0.5, 0.5]}, "exactly 50 % of the agents are accepted"),
        (
            {"parity": {"groups": "sex", "within": 0.05}},
            "the shares accepted in any two groups of sex differ by at most 5 percentage points",
        ),
        (
            {"parity": {"groups": "sex", "within": 0}},
            "the shares accepted in any two groups of sex are equal",
        ),
        (
            {"nonnegative": "all", "accepted": [0, 0.5]},
            "all weights are at least 0; at most 50 % of the agents are accepted",
        ),
        ({}, "nothing"),
    ],
)
def test_requirements_in_words(given, phrase):
    assert words(given) == phrase


@pytest.mark.parametrize(
    "strange",
    [
        3, "all", [1], {"accepted": 5}, {"nonnegative": {"a": 1}}, {"parity": [1, 2]}, {"x": None},
        {HOSTILE[0]: HOSTILE[1]}, {"nonnegative": [HOSTILE[0]]}, {"order": [[HOSTILE[5]] * 2] * 99},
        {"accepted": [1e400, 2]}, {"nonnegative": [None]},
    ],
)  # fmt: skip
def test_whatever_stands_there_can_be_told(strange):
    phrase = words(strange)
    assert 0 < len(phrase) < 2000
    assert "\n" not in phrase
    assert rates_of(strange, {"men": 0.5}) == {}


def test_rates_of_strangers():
    assert rates_of(FAIR, {"men": 0.5, "women": 7.0}) == {("sex", "men"): 0.5}
    for odd in (None, 3, [0.1], {"men": "0.5"}, {"men": None}):
        assert rates_of(FAIR, odd) == {}


# ------------------------------------------------------------------ batches


def test_requirements_stand_at_the_head(several):
    found = said(several)
    assert found.startswith(
        "Requirements R1, for 1 job: at least 20 % of the agents are accepted; "
    )
    assert "Requirements R2, for 2 jobs: the weight of math is at least 0" in found
    assert "Requirements R3, for 1 job: exactly 50 %" in found
    assert "1 job has no requirements." in found
    assert "1 certificate proves that no rule meets the requirements: on cloud." in found
    assert "0 of 4 certificates reached" in found
    for form in FORMATS:
        text = report(several, format=form)
        if form == "html":
            page = check_page(text)
            assert "Requirements" in " ".join(page.words)
        if form != "csv":
            assert "sex" in text


def test_all_jobs_alike_need_no_names(tmp_path):
    made = MadeUp()
    for number in range(2):
        certificate(made, made.subject(Instance.load(TINY[number])), FAIR)
    folder = made.write(tmp_path)
    assert said(folder).startswith("Every rule must meet requirements: ")
    assert "R1" not in report(folder, format="md")
    assert "requirements" not in [c.name for c in table(folder, "certify").columns]


def test_infeasible_is_a_result_and_not_a_failure(several):
    found = table(several, "certify")
    assert column(found, "requirements") == ["–", "R1", "R2", "R2", "R3"]
    assert column(found, "status")[-1] == "infeasible"
    assert column(found, "at least") == ["0.4", "0.1", "-0.1", "–", "–"]
    assert column(found, "at most") == ["0.41", "0.2", "0", "0.3", "–"]
    assert column(found, "gap, %")[2:] == ["100", "–", "–"]
    assert read(several).failed == []
    assert "no-result" not in [t.key for t in details(read(several))]
    assert column(table(several, "kinds"), "done") == ["5"]
    assert "infeasible: no rule is allowed" in report(several)


def test_bounds_of_other_requirements_do_not_contradict(several, tmp_path):
    assert contradictions(read(several)) == []
    made = MadeUp()
    subject = made.subject(None)
    certificate(made, subject, FAIR, None, None)
    rule = certificate(made, subject, FAIR, repetition=1)
    folder = made.write(tmp_path)
    ((best, least),) = contradictions(read(folder))
    assert best.id == rule["id"]
    assert least.infeasible
    check_page(report(folder))


def test_shares_accepted_by_group(several, tmp_path):
    found = table(several, "rules")
    assert column(found, "accepted, %") == ["25.0"] * 5
    assert column(found, "men") == ["–", "25.0", "–", "–", "–"]
    assert column(found, "women") == ["–", "30.0", "–", "–", "–"]
    assert {c.above for c in found.columns if c.name == "men"} == {"Accepted by sex, %"}
    made = MadeUp()
    many = {f"tribe {i}": i / 100 for i in range(MOST_RATES + 1)}
    certificate(made, made.subject(None), FAIR, rates=many)
    found = table(made.write(tmp_path), "rules")
    assert column(found, "least") == ["0.0"]
    assert column(found, "most") == [f"{MOST_RATES}.0"]


def test_null_bounds_need_requirements(tmp_path):
    """Where nothing is demanded some rule is known: a record without bounds is damaged."""
    made = MadeUp()
    subject = made.subject(None)
    certificate(made, subject, None, None, None)
    certificate(made, subject, None, None, 0.2, repetition=1)
    certificate(made, subject, FAIR, 0.1, None, repetition=2)["bounds"] = {
        **NONE, "status": "gap", "lower": 0.1,
    }  # fmt: skip
    certificate(made, subject, FAIR, None, 0.2)
    batch = read(made.write(tmp_path))
    assert batch.odd == 3
    check_page(report(tmp_path))


def test_hostile_requirements_are_text(tmp_path):
    made = MadeUp()
    subject = made.subject(Instance.load(TINY[0]))
    for number, text in enumerate(HOSTILE):
        rates = {text: 0.5, HOSTILE[number - 1]: 0.25}
        given = {"parity": {"groups": text, "within": 0.1}, "nonnegative": [text]}
        certificate(made, subject, given, rates=rates)
        certificate(made, subject, {text: text})
    folder = made.write(tmp_path)
    for form in FORMATS:
        text = report(folder, format=form)
        if form == "html":
            check_page(text)
            assert "<script>window" not in text


# ------------------------------------------------------------------ comparisons


def test_comparisons_tell_what_rules_must_meet(tmp_path):
    samples = [sample(), sample(1)]
    found = asked(IMPOSSIBLE | {"parity": FAIR["parity"]}, samples, out=tmp_path / "none")
    assert all(problem.gain.infeasible for problem in found.problems)
    text = report(tmp_path / "none")
    page = " ".join(" ".join(check_page(text).words).split())
    assert "Every rule must meet requirements:" in page
    assert "On 2 instances no rule meets them:" in page
    rows = instances(found)
    place = [c.name for c in rows.columns].index("outcome")
    assert [row.cells[place].text for row in rows.rows] == ["infeasible"] * 2
    assert report(tmp_path / "none", format="md")
    assert report(tmp_path / "none", format="csv").count("\n") > 2


def test_comparisons_show_shares_by_group(tmp_path):
    found = asked(FAIR, [sample()], out=tmp_path)
    rates = found.problems[0].gain.rates
    rows = instances(read(tmp_path).comparisons[0])
    for label, rate in rates.items():
        (place,) = (i for i, c in enumerate(rows.columns) if c.name == label)
        assert rows.rows[0].cells[place].text == f"{100 * rate:.1f}"
    check_page(report(tmp_path))


def test_older_folders_read_as_before(tmp_path):
    made = MadeUp(comparisons=[SETTINGS])
    made.compare(made.subject(None), SETTINGS)
    folder = made.write(tmp_path)
    (found,) = read(folder).comparisons
    assert found.settings.requirements is None
    assert found.complete
    assert len(RunFolder.open(folder).records().last) == 6
    assert "equirement" not in report(folder, format="md")

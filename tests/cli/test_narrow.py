"""What is printed can be read in a narrow terminal: nothing is cut, columns go below each other."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mipmech import make_instance
from mipmech.cli import main
from mipmech.terminal.console import tell_table
from tests.conftest import ROOT

STUDENTS = str(ROOT / "instances" / "real" / "first-year.json")
GROUPS = (("best", "move"), ("pass", "E[f|pass]", "proved"))


def printed(width, *arguments, **options):
    console = Console(width=width, highlight=False)
    with console.capture() as text:
        tell_table(console, *arguments, **options)
    return text.get()


CELLS = st.text("0123456789.–%", min_size=1, max_size=9)


@given(st.lists(st.tuples(*[CELLS] * 6), min_size=1, max_size=4), st.integers(24, 100))
def test_no_cell_is_cut_or_lost(rows, width):
    shown = printed(width, "name", GROUPS, rows)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= width
    found = [line.split() for line in lines if line.strip() and set(line.strip()) != {"─"}]
    # Tables below each other, side by side again: the name once, then all columns.
    size = 1 + len(rows)
    tables = [found[i : i + size] for i in range(0, len(found), size)]
    columns = [
        [tables[0][place][0], *(cell for part in tables for cell in part[place][1:])]
        for place in range(size)
    ]
    assert columns == [["name", "best", "move", "pass", "E[f|pass]", "proved"], *map(list, rows)]


def test_a_wide_terminal_has_one_table_and_groups_stay_together():
    rows = [("all", "1.25", "17.4%", "32.0%", "3.3595", "0.1")]
    assert printed(60, "name", GROUPS, rows).count("name") == 1
    shown = printed(40, "name", GROUPS, rows)
    assert shown.count("name") == 2
    assert re.search(r"name +best +move *\n", shown)
    assert re.search(r"name +pass +E\[f\|pass\] +proved *\n", shown)


def test_words_wrap_but_are_not_squeezed():
    text = "Theorem 2, and a few words more about what it says"
    for width, tables in ((80, 1), (44, 1), (28, 2)):
        shown = printed(width, "rule", (("gain",),), [("milp", "0.123456", text)], words="by")
        assert shown.count("rule") == tables
        assert max(map(len, shown.splitlines())) <= width
        for word in text.split():
            assert word in shown.split()


@pytest.mark.parametrize(
    ("arguments", "headings"),
    [
        (("show", STUDENTS), ("thresholds", "quality", "E[f|pass]", "proved")),
        (
            ("certify", "sample.json", "--against", "projection,cells-soft", "--folds", "3"),
            ("rule of", "share of the best", "promised", "by"),
        ),
        (("grade", STUDENTS, "--rule", '{"SATV": 1, "HSGPA": 2.5}', "--threshold", "3"), ()),
        pytest.param(
            ("compare", "sample.json", "--oracles", "milp,ransac", "--etas", "0.9", "--seeds", "0",
             "--seconds-per-call", "0.5", "--workers", "1", "--quiet", "--out", "run"),
            ("≥ 0.99", "seeds", "seconds", "calls", "two thresholds:"), marks=pytest.mark.slow,
        ),
        (
            ("learn", "sample.json", "--sizes", "5,10", "--repeats", "3"),
            ("sample", "held out", "rows", "sure", "theorem"),
        ),
    ],
    ids=lambda value: value[0] if value and value[0].islower() else "",
)  # fmt: skip
def test_sixty_columns(capsys, tmp_path, monkeypatch, arguments, headings):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    make_instance("gaussian-mixture", 30, 2, seed=3).save("sample.json")
    assert main(list(arguments)) in (0, 1)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 60
    assert "…" not in out
    for heading in headings:
        assert heading in out
    if arguments[0] == "compare":
        assert main(["bench", "status", "run"]) == 0
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 60
        assert re.search(r"task +done", out)

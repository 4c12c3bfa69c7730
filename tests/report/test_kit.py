"""What reports are made of: pictures, colours, texts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

from mipmech.plots.looks import BLUE, looks_of
from mipmech.report.kit.gallery import MOST, choose
from mipmech.report.kit.page import FOLDER
from mipmech.report.kit.svg import drawn
from mipmech.text import clean
from tests.report.comparisons import made_up
from tests.report.pages import Page


def test_text_in_a_picture_stays_as_it_is():
    name = f'{BLUE} id="x" <b> $x$ \\frac &amp; url(#p) font-family: x'
    picture = drawn((3, 2), lambda f: f.subplots().set_xlabel(name), "k", name)
    page = Page(picture)
    assert name in "".join(page.words)
    assert ("svg", "aria-label", name) in page.attributes
    assert all(i.startswith("k-") for i in page.ids)


def test_gallery_takes_from_all_groups_in_turn():
    problems = made_up(60, groups=12).problems
    chosen = choose(problems)
    assert len(chosen) == MOST
    assert set(Counter(problem.group for problem in chosen).values()) == {2}
    assert list(chosen) == [problem for problem in problems if problem in chosen]
    assert choose(problems[:5]) == list(problems[:5])


def test_contrast_is_enough_in_both_themes():
    style = (FOLDER / "page.css").read_text()
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
    many = list(looks_of([f"oracle-{i}" for i in range(40)]).values())
    assert len({(look.colour, look.mark, str(look.dash)) for look in many}) == 40
    first = many[:7]
    assert len({look.mark for look in first}) == len({str(look.dash) for look in first}) == 7


def test_clean():
    assert clean("\u202eevil\x00\ud800") == "\ufffdevil\ufffd\ufffd"
    assert clean("می\u200cخواهم") == "می\u200cخواهم"
    assert clean(" \n\t ") == "(no name)"


def test_importing_is_light():
    code = (
        "import sys, mipmech.report;"
        "print([m for m in ('matplotlib', 'jinja2', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

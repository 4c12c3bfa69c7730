"""What the README and the docs show is what the program prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mipmech import Instance, certify
from tests.conftest import ROOT

CHECKED = "instances/real/satgpa-view.json"
PAGES = [ROOT / "README.md"]
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)


def sessions(page: Path):
    """Pairs of (command, shown output) from the console blocks of a page."""
    for block in BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


CASES = [(c, o) for p in PAGES for c, o in sessions(p) if c.startswith("mipmech ")]


@pytest.mark.parametrize(("command", "shown"), CASES, ids=[c[0] for c in CASES])
def test_shown_output_is_true(command, shown, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    if command.startswith("mipmech check "):  # of what the command before it has made
        proof = tmp_path / command.split()[-1]
        certify(Instance.load(tmp_path / CHECKED), gap=1e-4).save(proof)
    done = subprocess.run(
        [sys.executable, "-m", "mipmech", *shlex.split(command)[1:]],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "100"},
    )  # fmt: skip
    printed, shown = _timeless(done.stdout + done.stderr), _timeless(shown)
    if command.startswith("mipmech compare "):
        printed, shown = _shareless(printed), _shareless(shown)
    assert printed == shown


def _timeless(text: str) -> list[str]:
    """The words, without how long something took and how much work it was.

    Where lines are broken hangs on how many digits a time has, so it does not count.
    """
    work = r"[\d:.]+ s|[\d,]+ (?=cones counted|models solved|nodes|leaves)|[\d.,]+ kB"
    return re.sub(work, "… ", " ".join(text.split())).split()


def _shareless(lines: list[str]) -> list[str]:
    """Without shares: which of two equally dense margins a heuristic meets first, and so its gain,
    hangs on the last bit of a processor's linear algebra."""
    shares = r"[01]\.\d{2,3}|\d+%"
    return [re.sub(shares, "…", line) for line in lines]


def test_there_is_something_to_check():
    assert len(CASES) >= 3


def test_python_examples_run():
    """Each python block with its `# value` comments."""
    blocks = PYTHON.findall((ROOT / "README.md").read_text())
    assert blocks
    for block in blocks:
        space: dict[str, object] = {}
        for line in block.splitlines():
            code, _, comment = line.partition("  # ")
            if comment and not re.match(r"\w+ = |import|from", code):
                assert str(eval(code, space)) == comment, line
            else:
                exec(line, space)


def test_links_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("*/*.md")]
    for page in pages:
        if ".venv" in page.parts:
            continue
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"

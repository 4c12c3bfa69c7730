"""What the pages show is what the program prints.

In README.md and docs/*.md every ```console block is a session: its `$ mipmech` commands run in
order in one folder, which is empty but for `instances/` and what `mipmech new` has written in the
page's blocks before; the shown output must be theirs, but for times and amounts of work. Every
```python block runs too, block after block of a page, and an expression with a `# value` comment
must have that value. Blocks marked ```sh and ```py are not run.

    python tests/test_readme.py --rewrite [PAGE ...]

runs it all again and puts what is printed now in place of what is shown; output that differs only
in times stays as it is.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
PYTHON = re.compile(r"(?<=```python\n).*?(?=```)", re.DOTALL)
WITH_PYTHON = [page for page in PAGES if PYTHON.search(page.read_text())]
# Commands that take more than a second or two.
SLOW = ("bench", "compare", "learn", "report")


def prepared(folder: Path, before: str = "") -> Path:
    """A folder with what the commands and examples expect to find.

    before : the part of the page that comes first
    """
    (folder / "out").mkdir()
    (folder / "instances").symlink_to(ROOT / "instances")
    for block in CONSOLE.findall(before):
        for command, _ in commands(block):
            if command.startswith("mipmech new "):
                run(shlex.split(command)[1:], folder)
    return folder


def run(arguments: list[str], folder: Path) -> str:
    """What a command prints."""
    return subprocess.run(
        [sys.executable, "-m", "mipmech", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
        env={**os.environ, "COLUMNS": "100", "PYTHONPATH": str(ROOT)},
    ).stdout  # fmt: skip


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def answered(block: str, folder: Path) -> str:
    """A console block with what its commands print now."""
    said = []
    for command, _ in commands(block):
        program, *arguments = shlex.split(command)
        assert program == "mipmech", f"a console block shows {command}; mark it ```sh"
        lines = run(arguments, folder).strip("\n").splitlines()
        said.append("\n".join([f"$ {command}", *(line.rstrip() for line in lines)]))
    return "\n\n".join(said) + "\n"


def timeless(block: str) -> list[str]:
    """The words, without how long something took and how much work it was.

    Where lines are broken hangs on how many digits a time has, so it does not count. Nor do shares
    in a comparison: which of two equally dense margins a heuristic meets first, and so its gain,
    hangs on the last bit of a processor's linear algebra; so do the last digits of a rule that a
    local search found.
    """
    work = r"[\d:.]+ s\b|[\d,]+ (?=cones counted|models solved|nodes|leaves|workers)|[\d.,]+ [kM]B"
    shares = r"\b[01]\.\d{2,3}\b|\d+%"
    words = []
    for command, shown in commands(block):
        kept = re.sub(work, "… ", " ".join(shown.split()))
        kept = re.sub(shares, "…", kept) if command.startswith("mipmech compare ") else kept
        if command.startswith("mipmech learn "):
            kept = re.sub(r"\d+\.\d{5,}", lambda digits: f"{float(digits[0]):.4g}", kept)
        words += [command, *kept.split()]
    return words


def evaluated(block: str, names: dict[str, object]) -> str:
    """A python block with the true values in its comments; what it defines is left in `names`."""
    lines = block.splitlines()
    for node in ast.parse(block).body:
        last = (node.end_lineno or 0) - 1
        code, mark, _ = lines[last].rpartition("  # ")
        if isinstance(node, ast.Expr) and mark:
            lines[last] = f"{code}{mark}{eval(ast.unparse(node), names)}"
        else:
            exec(compile(ast.Module([node], []), "<page>", "exec"), names)
    return "\n".join(lines) + "\n"


def with_python(text: str, folder: Path) -> str:
    """A page with the true values in the comments of its python blocks, run in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "--evaluate"], input=text, cwd=folder,
        stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout


def sessions() -> list[object]:
    """Every console block of every page, as a parameter of the test."""
    found: list[object] = []
    for page in PAGES:
        text = page.read_text()
        for match in CONSOLE.finditer(text):
            block, before = match[0], text[: match.start()]
            verbs = [command.split()[1] for command, _ in commands(block)]
            slow = [pytest.mark.slow] if set(verbs) & set(SLOW) else []
            name = f"{page.stem}-{'-'.join(verbs)}"
            found.append(pytest.param(block, before, id=name, marks=slow))
    return found


@pytest.mark.parametrize(("block", "before"), sessions())
def test_shown_output_is_true(block, before, tmp_path):
    assert timeless(answered(block, prepared(tmp_path, before))) == timeless(block)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.stem)
def test_python_examples_are_true(page, tmp_path):
    text = page.read_text()
    assert with_python(text, prepared(tmp_path)) == text


def test_there_is_something_to_check():
    assert len(sessions()) >= 5
    assert ROOT / "README.md" in WITH_PYTHON


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_links_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("[a-z]*/*.md")]
    for page in pages:
        for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text()):
            if target.startswith("http"):
                continue
            found = page.parent / target if target else page
            assert found.exists(), f"{page.name}: {target}"
            assert not heading or heading in anchors(found), f"{page.name}: {target}#{heading}"


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in headings}


def rewrite(page: Path) -> bool:
    """Put what is printed now in place of what a page shows; whether that could be done."""

    def renewed(match: re.Match[str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            now = answered(match[0], prepared(Path(folder), before[: match.start()]))
        return match[0] if timeless(now) == timeless(match[0]) else now

    shown = before = page.read_text()
    with tempfile.TemporaryDirectory() as folder:
        try:
            before = with_python(before, prepared(Path(folder)))
            after = CONSOLE.sub(renewed, before)
        except subprocess.CalledProcessError as error:
            print(f"{page.relative_to(ROOT)}: left as it was: {error}\n{error.output}")
            return False
    page.write_text(after)
    print(f"{page.relative_to(ROOT)}: {'as it was' if after == shown else 'rewritten'}")
    return True


if __name__ == "__main__":
    if sys.argv[1:] == ["--evaluate"]:
        names: dict[str, object] = {"__name__": "__main__"}
        print(PYTHON.sub(lambda match: evaluated(match[0], names), sys.stdin.read()), end="")
    elif sys.argv[1:2] == ["--rewrite"]:
        rewritten = [rewrite(Path(name).resolve()) for name in sys.argv[2:] or PAGES]
        sys.exit(not all(rewritten))
    else:
        sys.exit(__doc__)

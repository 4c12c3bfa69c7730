"""The package: versions agree, imports are light and go one way, both packages are typed."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections import Counter

import mipmech
from mipmech.studies.batch.jobs import MOST_JOBS
from mipmech.studies.batch.records import DEEPEST, LONGEST
from mipmech.text import LONGEST_LINE
from mipmech.validation import LONGEST_NAME
from tests.conftest import ROOT

# Each of these may import only what stands before it.
LAYERS = [
    "version", "tolerances", "errors", "rationals", "budget", "files", "untrusted", "validation",
    "text", "frames", "workers", "model", "theory", "solver", "oracles", "checker", "design",
    "studies", "plots", "report", "terminal", "cli", "__main__",
]  # fmt: skip
# Within studies: a batch knows nothing of comparisons, which are batches of one task.
STUDIES = ["spread", "batch", "comparison", "learning"]
# Results draw themselves: their method plot() imports the picture when it is called.
PLOTTED = ("model", "oracles", "design", "studies")


def modules():
    for path in sorted((ROOT / "mipmech").rglob("*.py")):
        yield path, path.relative_to(ROOT / "mipmech").with_suffix("").parts[0]


def imported(path):
    """The parts of mipmech that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            yield from (parts[1] for parts in names if parts[0] == "mipmech" and len(parts) > 1)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mipmech":
            rest = node.module.split(".")[1:]
            yield from [rest[0]] if rest else [alias.name for alias in node.names]


def test_imports_go_one_way():
    for path, name in modules():
        if path == ROOT / "mipmech" / "__init__.py":
            continue
        assert name in LAYERS, f"{path} has no place in the layers"
        allowed = LAYERS[: LAYERS.index(name) + 1]
        for other in imported(path):
            drawn = other == "plots" and name in PLOTTED and "def plot(" in path.read_text()
            assert other in allowed or drawn, f"{path} imports {other}"


def test_studies_build_on_each_other_in_one_direction():
    folder = ROOT / "mipmech" / "studies"
    for path in folder.rglob("*.py"):
        name = path.relative_to(folder).with_suffix("").parts[0]
        if name == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            module = getattr(node, "module", None) or ""
            if isinstance(node, ast.ImportFrom) and module.startswith("mipmech.studies."):
                other = module.split(".")[2]
                assert STUDIES.index(other) <= STUDIES.index(name), f"{path} imports {module}"


def test_the_checker_shares_only_the_instance_reader():
    for path in (ROOT / "mipmech" / "checker").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            module = getattr(node, "module", None) or ""
            if isinstance(node, ast.ImportFrom) and module.startswith("mipmech"):
                assert module.split(".")[1] == "checker" or module == "mipmech.model.instance", path


def names_of_modules():
    return {
        path.parent.name if path.stem == "__init__" else path.stem
        for path in (ROOT / "mipmech").rglob("*.py")
    } - {"__main__"}


def test_no_name_is_another_one_but_for_a_letter():
    names = sorted(names_of_modules())
    for one in names:
        for other in names:
            if one < other:
                assert not _a_letter_apart(one, other), f"{one} and {other}"


def _a_letter_apart(one, other):
    """Whether one letter added, taken away or changed makes one word the other."""
    shorter, longer = sorted((one, other), key=len)
    if len(longer) - len(shorter) > 1:
        return False
    for place in range(len(longer)):
        cut = longer[:place] + longer[place + 1 :]
        same_length = len(longer) == len(shorter)
        if cut == (shorter[:place] + shorter[place + 1 :] if same_length else shorter):
            return True
    return False


def test_no_two_classes_have_one_name():
    classes = Counter()
    for folder in ("mipmech", "formulations"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text())
            classes.update(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, number in classes.items() if number > 1] == []


def test_nothing_hides_a_package_or_a_module():
    for info in pkgutil.walk_packages(mipmech.__path__, "mipmech."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        parent, _, name = info.name.rpartition(".")
        assert getattr(sys.modules[parent], name) is module, info.name


# What is printed as it is: texts of our own, and tables whose texts are cleaned when they are read.
OWN_WORDS = (
    "f'mipmech {__version__}'",
    "text",
    "f'{question}{shown}: '",
    "f'  Warning: {UNSEEN}.'",
    "f'error: the output cannot be written: {reason(error)}'",
)


def test_whatever_is_printed_is_made_printable():
    """By one function, or by the console for results, which is made in one place."""
    for path, name in modules():
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if type(node) is ast.Call]
        for call in calls:
            function = ast.unparse(call.func)
            if function == "print":
                said = ast.unparse(call.args[0])
                assert said.startswith(("printable(", "json.dumps(")) or said in OWN_WORDS, path
            if function in ("Console", "PlainConsole") and name == "terminal":
                assert path.stem == "console", path


def test_few_names_are_public():
    assert len(mipmech.__all__) <= 32
    assert mipmech.__all__ == sorted(mipmech.__all__)


def test_the_page_on_security_names_tests_and_limits_that_are_there():
    page = (ROOT / "docs" / "security.md").read_text()
    named = re.findall(r"\]\(\.\./(tests/[\w/]+\.py)\)", page)
    assert len(named) > 10
    assert all((ROOT / name).exists() for name in named)
    limits = [
        f"{LONGEST_LINE:,} characters; longer",
        f"{LONGEST_NAME} characters |",
        f"{MOST_JOBS:,} |",
        f"{LONGEST:,} characters, {DEEPEST} levels",
    ]
    assert [said for said in limits if said not in page] == []


def test_importing_is_light():
    heavy = ("scipy", "matplotlib", "rich", "typer", "pyomo", "numba", "pandas")
    code = f"import sys, mipmech; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code = (
        f"import sys, formulations; print([m for m in {heavy} + ('mipmech',) if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert mipmech.__version__ == project["version"]
    assert f"## {project['version']}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {project['version']}" in (ROOT / "CITATION.cff").read_text()


def test_both_packages_are_typed():
    for package in ("mipmech", "formulations"):
        assert (ROOT / package / "py.typed").exists()


def test_everything_exported_exists_and_is_documented():
    for name in mipmech.__all__:
        value = getattr(mipmech, name)
        assert name in ("FAMILIES", "__version__") or value.__doc__, name

"""The package: versions agree, imports are light and go one way, both packages are typed."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib

import mipmech
from tests.conftest import ROOT

# Each module may import only what stands before it.
LAYERS = [
    "version", "tolerances", "errors", "rationals", "budget", "files", "validation",
    "workers", "model", "theory", "solver", "oracles", "checker", "design", "studies",
    "plots", "report", "terminal", "cli",
]  # fmt: skip


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
        if name == "__init__":
            continue
        assert name in LAYERS, f"{path} has no place in the layers"
        allowed = LAYERS[: LAYERS.index(name) + 1]
        for other in imported(path):
            assert other in allowed, f"{path} imports {other}"


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

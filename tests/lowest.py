"""Run the tests on the oldest packages that pyproject.toml allows: `make test-lowest`.

Makes a virtual environment of its own, because the point is to install other versions.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Only what the tests import; linters and type stubs are not part of the promise.
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "pandas", "polars", "numpydoc")


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["cluster"], *extras["parquet"]]
    pins = {}
    for line in [*needed, *extras["dev"]]:
        name, version = re.fullmatch(r"([\w-]+)>=([\w.]+)", line).groups()  # type: ignore[union-attr]
        if line in needed or name in TOOLS:
            pins[name] = version
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        exact = [f"{name}=={version}" for name, version in pins.items()]
        print("installing", *exact)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, *exact], check=True)
        subprocess.run([*install, "--no-deps", "--editable", str(ROOT)], check=True)
        return subprocess.run(
            [python, "-m", "pytest", "-n", "auto", "-m", "not long"], cwd=ROOT, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())

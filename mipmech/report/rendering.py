"""From a template and what it shows to one HTML page.

Nothing in it comes from elsewhere and nothing in it leaves: the page forbids itself the network and
all scripts but its own, so that a name out of a stranger's file is inert twice, by escaping and by
that rule.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from mipmech.report.words import ENOUGH, Name
from mipmech.studies.comparison.results import NEARLY

FOLDER = Path(__file__).parent
# Settings and records longer than this are cut.
LONGEST = 2000


def rendered(template: str, **values: Any) -> str:
    """The whole page.

    values : what `page.html` asks for (title, kind, brand, figures, contents) and the template
        that extends it
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  (slow)
    from markupsafe import Markup  # noqa: PLC0415

    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    # Our own files and our own drawings: the only things on the page that are not escaped.
    environment.filters["drawing"] = Markup
    environment.filters["is_name"] = lambda part: isinstance(part, Name)
    environment.globals |= {"enough": ENOUGH, "nearly": NEARLY}
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    return environment.get_template(template).render(
        **values,
        style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def tile(figure: str, words: str, bad: bool = False) -> dict[str, Any]:
    """A figure that everybody asks for first."""
    return {"figure": figure, "words": words, "bad": bad}


def entries(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Settings or versions, in words."""
    return [(name.replace("_", " "), _shown(value)) for name, value in values.items()]


def _shown(value: Any) -> str:
    """A setting in words: lists and names with their values plainly, other objects as JSON."""
    simple = str | int | float
    if isinstance(value, list) and all(isinstance(entry, simple) for entry in value):
        text = ", ".join(map(str, value))
    elif isinstance(value, dict) and all(isinstance(entry, simple) for entry in value.values()):
        text = ", ".join(f"{name} {entry}" for name, entry in value.items())
    elif isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"

"""From a view to one HTML page.

Nothing in it comes from elsewhere and nothing in it leaves: the page forbids itself the network and
all scripts but its own, so that a name in an untrusted file is inert twice, by escaping and by that
rule.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from mipmech.report.kit.drawing import Pictures
from mipmech.report.kit.sentence import Name
from mipmech.report.kit.tabular import ENOUGH, Table
from mipmech.report.kit.view import ReportView
from mipmech.studies.comparison.results import NEARLY

FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Part:
    """A view with its pictures drawn.

    prefix : sets its identifiers apart from those of the rest of the page
    level : of its headings
    """

    view: ReportView
    prefix: str
    level: int
    pictures: list[Pictures]

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Its sections, to be linked to: identifier and name."""
        shown: list[Table | Pictures] = [*self.view.tables, *self.pictures, *self.view.details]
        found = [(section.key, section.title.partition(":")[0]) for section in shown]
        found = [("summary", "Summary"), *found, ("settings", "Settings")]
        return [(self.prefix + key, words) for key, words in found]


def page(view: ReportView) -> str:
    """The whole page."""
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
    return environment.get_template("page.html").render(
        top=Part(view, "", 2, view.pictures("")),
        parts=[
            Part(part, f"c{number}-", 3, part.pictures(f"c{number}-"))
            for number, part in enumerate(view.parts, 1)
        ],
        style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )

"""What `mipmech new` made, in words."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from mipmech.model.from_table import Choice
from mipmech.model.instance_from_csv import InstanceFromCsv
from mipmech.terminal.console import (
    in_one_piece,
    sum_of,
    tell_entries,
    tell_heading,
    tell_warnings,
)
from mipmech.text import clean, count, printable


def tell(made: InstanceFromCsv, choice: Choice, file: Path, warnings: Sequence[str]) -> None:
    """Print what was written, from what, and how to go on."""
    instance = made.instance
    sizes = f"{count(instance.size, 'agent')}, {count(instance.width, 'feature')}"
    with in_one_piece() as console:
        tell_heading(
            console,
            f"wrote {file}: {sizes}, {instance.view.rank} seen; digest {instance.digest[:12]}",
        )
        offset = f" {-choice.quality_offset:+.4g}" if choice.quality_offset else ""
        terms = [(clean(name), value) for name, value in choice.quality.items()]
        entries = {
            "agents": "stay in the table" if made.refers else "are copied into the file",
            "quality": f"f = {sum_of(terms)}{offset}, in the units of the table",
            "units": "standard deviations; rules are shown in your units"
            if choice.standardise
            else "those of the table",
            "cost": made.cost,
        }
        if instance.groups:
            entries["groups"] = ", ".join(map(clean, instance.groups))
        if isinstance(choice.ids, str):
            entries["names"] = f"agents are named by {clean(choice.ids)} (--id names another)"
        elif made.left_out:
            entries["names"] = "agents keep the numbers of their rows, from 0 below the header"
        if made.unused:
            entries["not used"] = ", ".join(map(clean, made.unused))
        tell_entries(console, entries)
        tell_warnings(console, warnings)
        proof = file.with_name(f"{file.stem}-proof.json")
        console.print()
        console.print("Next:")
        for words in (["show", file], ["certify", file, "--out", proof]):
            line = shlex.join(["mipmech", *map(str, words)])
            console.print(printable(f"  {line}"), soft_wrap=True)

"""Plans: a TOML file that says which instances, which tasks, and within which limits.

`docs/batches.md` describes the format. A plan is read and checked as a whole before anything runs;
`jobs.expand` makes the jobs of it.
"""

from __future__ import annotations

import glob
import hashlib
import inspect
import itertools
import json
import math
import os
import re
import secrets
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from mipmech import files, untrusted, validation
from mipmech.design.algorithm1 import EPSILON_SHARE, GridName, Skipping, Thresholds
from mipmech.design.certificate import DEFAULT_GAP, EngineName
from mipmech.errors import InputError, did_you_mean
from mipmech.model import families
from mipmech.model.costs.pricing import Norm
from mipmech.model.instance import Instance
from mipmech.oracles.base import Oracle
from mipmech.oracles.registry import REGISTRY, options_of, oracle_named
from mipmech.studies.batch import fields
from mipmech.studies.batch.asking import ETA_FRACTIONS, LONGEST, SEEDS, ComparisonSettings
from mipmech.studies.batch.fields import Field
from mipmech.studies.batch.records import Options
from mipmech.studies.batch.requiring import plain, with_requirements
from mipmech.tolerances import DEEPEST_KEY, LARGEST_PLAN

FORMAT = "mipmech/plan@1"
# The default time of a job, and the time after which it is killed beyond that.
SECONDS, GRACE = 60.0, 60.0
NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:[eE][+-]?\d+)?(?![\w.])")
# Longer integers are a mistake, whatever they are for; most of them are refused by their fields.
LARGEST_BITS = 1024


@dataclass(frozen=True)
class Source:
    """Where an instance comes from: a file, a family with its sizes and seed, or itself."""

    file: Path | None = None
    recipe: tuple[tuple[str, Any], ...] = ()
    sample: Instance | None = None

    @property
    def numbers(self) -> int:
        """Agents times features of an instance that is to be made; 0 of any other."""
        made = dict(self.recipe)
        return made["agents"] * (made["rank"] + made.get("hidden", 1)) if made else 0

    def load(self) -> Instance:
        """The instance."""
        if self.sample is not None:
            return self.sample
        return families.make(**dict(self.recipe)) if self.file is None else Instance.load(self.file)


@dataclass(frozen=True)
class Piece:
    """A task for every instance.

    seconds : the time that the work itself keeps to: of a call, if it makes several
    limit : the time of all calls; a worker that has not ended ``grace`` seconds later is killed
    memory : bytes that a worker may use
    carried : the oracle itself, if workers cannot make it from its name
    """

    task: str
    options: Options
    seconds: float
    limit: float
    grace: float = GRACE
    memory: int | None = None
    repetition: int = 0
    carried: Oracle | None = None


@dataclass(frozen=True)
class Plan:
    """A plan, checked.

    comparisons : the settings of its comparisons, for the report
    """

    name: str
    text: str
    sources: tuple[Source, ...]
    pieces: tuple[Piece, ...]
    comparisons: tuple[ComparisonSettings, ...]
    path: Path | None = None

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read and check a plan file. Files that it names are relative to it."""
        file = Path(path)
        try:
            with files.faults("cannot be read", file):
                text = untrusted.read_text(file, LARGEST_PLAN)
            return _parse(text, file)
        except InputError as error:
            raise error.located(file) from None


LIMITS = {
    "seconds": Field(fields.real(0.0, LONGEST, above=True)),
    "grace": Field(fields.real(0.0, LONGEST)),
    "memory": Field(fields.memory),
    "repetitions": Field(fields.whole(1, fields.MOST_VALUES)),
}


# What is demanded of rules: a table, or the name of a file with one.
REQUIRED = {
    "requirements": Field(fields.any_table),
    "require": Field(validation.text),
}


def _parse(text: str, file: Path) -> Plan:
    for number, line in enumerate(text.splitlines(), 1):
        # A number counts as one part of a key, as which it would have two.
        if NUMBER.sub("", line).count(".") > DEEPEST_KEY:
            said = f"has more than {DEEPEST_KEY} points on line {number}; write it on several lines"
            raise InputError(said)
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise InputError("is nested too deeply to be a plan") from None
    except ValueError as error:  # also a number of thousands of digits
        raise InputError(f"is not TOML: {error}") from None
    _check_sizes(content)
    if content.get("format") != FORMAT:
        given = "is missing" if "format" not in content else f"is {content['format']!r}"
        raise InputError(f'{given}; this program reads format = "{FORMAT}"', field="format")
    top = {
        "format": Field(validation.text),
        "name": Field(validation.text, file.stem),
        "limits": Field(fields.any_table, {}),
        **REQUIRED,
        "instances": Field(_tables),
        "tasks": Field(_tables),
    }
    table = fields.read_table(content, top, "")
    for name in ("instances", "tasks"):
        if not table[name]:
            raise InputError(f"is missing; give one [[{name}]] or more", field=name)
    defaults: Options = {"seconds": SECONDS, "grace": GRACE, "memory": None, "repetitions": 1}
    limits = _or(fields.read_table(table["limits"], LIMITS, "limits"), defaults)
    sources = [
        source
        for place, entry in enumerate(table["instances"], 1)
        for source in _sources(entry, f"instances[{place}]", file.parent)
    ]
    usual = _requirements(table, "", file.parent, None)
    pieces: list[Piece] = []
    comparisons: list[ComparisonSettings] = []
    for place, entry in enumerate(table["tasks"], 1):
        found, settings = _task(entry, f"tasks[{place}]", limits, usual, file.parent)
        pieces += found
        comparisons += settings
    return Plan(
        table["name"], text, tuple(dict.fromkeys(sources)), tuple(pieces), tuple(comparisons),
        file,
    )  # fmt: skip


def _check_sizes(content: Any) -> None:
    """Refuse integers that cannot even be printed: hexadecimal ones are read at any length."""
    rest = [content]
    while rest:
        value = rest.pop()
        if isinstance(value, int) and value.bit_length() > LARGEST_BITS:
            raise InputError("has a whole number of thousands of digits; write a smaller one")
        if isinstance(value, (dict, list)):
            rest += value.values() if isinstance(value, dict) else value


def _tables(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"is one table; write [[{where}]] with two brackets", field=where)
    return value


def _or(values: Options, defaults: Options) -> Options:
    """The values, and the defaults for those that were not given."""
    return {name: defaults[name] if values[name] is None else values[name] for name in defaults}


# ------------------------------------------------------------------ instances


def _effort(value: Any, where: str) -> Any:
    """Prices of the visible features, or the word for those drawn from the seed."""
    if value == families.SPREAD:
        return value
    if isinstance(value, str) or not isinstance(value, list):
        said = f'is {validation.kind(value)}; give a list of prices, or "{families.SPREAD}"'
        raise InputError(said, field=where)
    price = fields.real(0.0, above=True)
    return tuple(price(entry, where) for entry in value)


FILES = {"files": Field(fields.list_of(validation.text))}
FAMILY = {
    "family": Field(fields.one_of(families.NAMES), swept=True),
    "agents": Field(fields.whole(1), swept=True),
    "rank": Field(fields.whole(1), 2, swept=True),
    "seed": Field(fields.whole(0), 0, swept=True),
    "hidden": Field(fields.whole(0), 1, swept=True),
    "cost": Field(fields.real(0.0, above=True), swept=True),
    "norm": Field(fields.one_of(get_args(Norm)), "l2", swept=True),
    "effort": Field(_effort),
}


def _sources(table: Any, where: str, folder: Path) -> list[Source]:
    if not isinstance(table, dict):
        raise InputError(f"is {validation.kind(table)}; give a table", field=where)
    if ("files" in table) == ("family" in table):
        raise InputError("give either files or a family", field=where)
    if "files" in table:
        patterns = fields.read_table(table, FILES, where)["files"]
        return [Source(path) for pattern in patterns for path in _matches(pattern, folder, where)]
    swept = fields.read_table(table, FAMILY, where)
    swept["effort"] = [swept["effort"]]  # a list is one set of prices
    if swept["agents"] == [None]:
        raise InputError("is missing; say how many", field=f"{where}.agents")
    return [Source(recipe=tuple(values.items())) for values in _product(swept, where)]


def _matches(pattern: str, folder: Path, where: str) -> list[Path]:
    """The files that a name or a pattern with *, ? or ** stands for; of a folder, those in it."""
    path = folder / pattern
    if os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        found = sorted(path.glob("*.json"))
    else:
        names = glob.glob(pattern, root_dir=folder, recursive=True)
        found = [folder / name for name in sorted(names)]
    found = [file for file in found if not file.is_dir()]
    if not found:
        raise InputError(f"{pattern!r} matches no file in {folder}", field=f"{where}.files")
    return found


def _not_too_many(count: int, where: str) -> None:
    if count > fields.MOST_VALUES:
        raise InputError(f"makes {count:,} combinations; give fewer than a million", field=where)


def _product(swept: dict[str, list[Any]], where: str) -> Iterator[Options]:
    """Every combination of the values, the last field changing fastest."""
    _not_too_many(math.prod(map(len, swept.values())), where)
    for values in itertools.product(*swept.values()):
        yield dict(zip(swept, values, strict=True))


# ------------------------------------------------------------------ tasks

ASKING = {
    "oracle": Field(fields.one_of(REGISTRY), "milp", swept=True),
    "options": Field(fields.any_table, {}),
    "seed": Field(fields.whole(0), 0, swept=True),
}
TASKS: dict[str, dict[str, Field]] = {
    "oracle": {
        **ASKING,
        "eta": Field(fields.real(), swept=True),
        "eta_fraction": Field(fields.real(-1.0, 1.0), swept=True),
    },
    "solve": {
        **ASKING,
        "epsilon": Field(fields.real(0.0, above=True), swept=True),
        "epsilon_share": Field(fields.real(0.0, above=True), EPSILON_SHARE, swept=True),
        "grid": Field(fields.one_of(get_args(GridName)), "auto", swept=True),
        "sigma": Field(fields.real(0.0, above=True)),
        "radius": Field(fields.real(0.0, above=True)),
        "thresholds": Field(fields.one_of(get_args(Thresholds)), "best", swept=True),
        "skip": Field(fields.one_of(get_args(Skipping)), "no", swept=True),
    },
    "certify": {
        "gap": Field(fields.real(0.0, 0.999), DEFAULT_GAP, swept=True),
        "engine": Field(fields.one_of(get_args(EngineName)), "auto", swept=True),
        "keep": Field(fields.yes_or_no, True),
    },
    "compare": {
        "oracles": Field(fields.list_of(fields.one_of(REGISTRY))),
        "eta_fractions": Field(
            fields.list_of(fields.real(-1.0, 1.0)), list(ETA_FRACTIONS)
        ),
        "seeds": Field(fields.list_of(fields.whole(0)), list(SEEDS)),
        "full_time": Field(fields.yes_or_no, False),
        "reference_seconds": Field(fields.real(0.0)),
    },
}  # fmt: skip


def _requirements(
    values: Options, where: str, folder: Path, usual: Options | None
) -> Options | None:
    """What a table demands of rules, taken out of it; the usual if it does not say.

    folder : what the name of a file is relative to
    """
    own, name = values.pop("requirements"), values.pop("require")
    if own is None and name is None:
        return usual
    if own is not None and name is not None:
        said = "is a file beside requirements; give one of the two"
        raise InputError(said, field=f"{where}.require".lstrip("."))
    if name is not None:
        return plain(folder / name)
    try:
        return plain(own)
    except InputError as error:
        field = ".".join(filter(None, (where, "requirements", error.field)))
        raise InputError(error.message, field=field, row=error.row) from None


def _task(
    table: Any, where: str, limits: Options, usual: Options | None, folder: Path
) -> tuple[list[Piece], list[ComparisonSettings]]:
    """The pieces of one [[tasks]], and its settings if it is a comparison."""
    kind = table.get("task") if isinstance(table, dict) else None
    if kind is None:
        raise InputError(f"is missing; give one of {', '.join(TASKS)}", field=f"{where}.task")
    fields.one_of(TASKS)(kind, f"{where}.task")
    known = {"task": Field(validation.text), **TASKS[kind], **LIMITS, **REQUIRED}
    values = fields.read_table(table, known, where)
    required = _requirements(values, where, folder, usual)
    own = _or({name: values.pop(name) for name in LIMITS}, limits)
    values.pop("task")
    piece = partial(Piece, grace=own["grace"], memory=own["memory"])
    if kind == "compare":
        found, settings = _comparison(values, where, own, required, piece)
        return list(_repeated(found, own, where)), [settings]
    if kind == "certify":
        swept = {**values, "keep": [values["keep"]]}
        choices = list(_product(swept, where))
    else:
        choices = _asking(kind, values, where)
    seconds = own["seconds"]
    pieces = [
        piece(
            task=kind,
            options=with_requirements(options, required),
            seconds=seconds,
            limit=seconds,
        )
        for options in choices
    ]
    return list(_repeated(pieces, own, where)), []


def _repeated(pieces: list[Piece], own: Options, where: str) -> Iterator[Piece]:
    """All pieces, as often as is asked for."""
    _not_too_many(len(pieces) * own["repetitions"], where)
    for repetition in range(own["repetitions"]):
        for piece in pieces:
            yield replace(piece, repetition=repetition)


def _asking(kind: str, values: Options, where: str) -> list[Options]:
    """The tasks that ask an oracle: one per combination of fields, seeds only if randomised."""
    given = values.pop("options")
    single: dict[str, list[Any]] = {}
    single |= {name: [values.pop(name)] for name in ("sigma", "radius") if name in values}
    if kind == "oracle":
        etas = [("eta", eta) for eta in values.pop("eta") if eta is not None]
        etas += [("eta_fraction", f) for f in values.pop("eta_fraction") if f is not None]
        if not etas:
            raise InputError("is missing: give eta or eta_fraction", field=f"{where}.eta")
        values["at"] = etas
    elif values["epsilon"] != [None]:
        values["epsilon_share"] = [None]
    if "seed" in given:
        raise InputError("stands among the options; give it as seed", field=f"{where}.options.seed")
    options = {name: _options(name, given, f"{where}.options") for name in values["oracle"]}
    choices: dict[str, Options] = {}
    for choice in _product({**values, **single}, where):
        seed = choice.pop("seed")
        own = dict(options[choice["oracle"]])
        if oracle_named(choice["oracle"]).randomised:
            own["seed"] = seed
        if kind == "oracle":
            name, eta = choice.pop("at")
            choice.update({"eta": None, "eta_fraction": None, name: eta})
        choice["options"] = own
        # An oracle that draws nothing is asked once, not once per seed.
        choices[json.dumps(choice, sort_keys=True)] = choice
    return list(choices.values())


def _options(oracle: str, given: Options, where: str) -> Options:
    """Options of an oracle, checked; those equal to the default are left out."""
    defaults = options_of(oracle_named(oracle))
    found = {}
    for name, value in given.items():
        place = f"{where}.{name}"
        if name not in defaults:
            known = ", ".join(defaults) or "none"
            said = f"{oracle} does not take this option; it has {known}"
            raise InputError(f"{said}{did_you_mean(name, defaults)}", field=place)
        usual = defaults[name]
        checked = fields.like(usual)(value, place)
        if checked != usual:
            found[name] = checked
    try:
        oracle_named(oracle, **found)
    except InputError as error:
        field = f"{where}.{error.field}" if error.field in found else where
        raise InputError(error.message, field=field) from None
    return found


def _comparison(
    values: Options, where: str, own: Options, required: Options | None, piece: Any
) -> tuple[list[Piece], ComparisonSettings]:
    if values["oracles"] is None:
        raise InputError("is missing; name one or more", field=f"{where}.oracles")
    settings = ComparisonSettings(
        tuple(values["oracles"]), tuple(values["eta_fractions"]), tuple(values["seeds"]),
        own["seconds"], values["full_time"], values["reference_seconds"], required,
    ).checked()  # fmt: skip
    oracles = {name: oracle_named(name) for name in settings.oracles}
    return comparison_pieces(settings, oracles, piece), settings


def source_of(kind: type[Any]) -> str:
    """An oracle's class: where it is defined, and a digest of its source.

    A class without source (typed at a prompt) is a different one each time.
    """
    try:
        text = inspect.getsource(kind)
    except (OSError, TypeError):
        text = secrets.token_hex(16)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{kind.__module__}.{kind.__qualname__} {digest}"


def comparison_pieces(
    settings: ComparisonSettings,
    oracles: Mapping[str, Oracle],
    piece: Callable[..., Piece] = Piece,
) -> list[Piece]:
    """A comparison: the reference certificates, and every oracle with every seed."""
    allowed, fractions = settings.reference_seconds, list(settings.eta_fractions)
    assert allowed is not None
    required = settings.requirements
    pieces = [
        piece(
            task="reference",
            options=with_requirements({"eta_fraction": at}, required),
            seconds=allowed,
            limit=allowed,
        )
        for at in (None, *fractions)
    ]
    limit = settings.seconds_per_call * len(fractions)
    for name, oracle in oracles.items():
        for seed, chosen in settings.asked(oracle):
            options = {"oracle": name, "seed": seed, "options": chosen, "eta_fractions": fractions}
            if seed is not None:
                options["full_time"] = settings.full_time
            carried = None
            if name not in REGISTRY:
                carried = replace(oracle, **chosen) if chosen else oracle  # type: ignore[type-var]
                options |= {"record": repr(carried), "source": source_of(type(carried))}
            pieces.append(
                piece(
                    task="ask",
                    options=with_requirements(options, required),
                    seconds=settings.seconds_per_call,
                    limit=limit,
                    carried=carried,
                )
            )
    return pieces

"""What is known of an instance's optima, and from where: the field `known` of its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mipmech import validation
from mipmech.errors import InputError


@dataclass(frozen=True)
class Known:
    """What is known about the best gain: it lies in [lower, upper], and from where.

    Parameters
    ----------
    lower, upper : float
    how : str
    densities : tuple of (float, float, float)
        Bounds on the greatest density at η as well: η as a fraction of ‖P w_f‖, lower, upper.
    """

    lower: float
    upper: float
    how: str
    densities: tuple[tuple[float, float, float], ...] = ()

    def density(self, eta_fraction: float) -> tuple[float, float] | None:
        """Bounds on the greatest density at η, or None.

        Parameters
        ----------
        eta_fraction : float
            η/‖P w_f‖.

        Examples
        --------
        >>> Known(0.1, 0.2, "by hand", ((0.6, 0.25, 0.5),)).density(0.6)
        (0.25, 0.5)
        """
        return {at: (lower, upper) for at, lower, upper in self.densities}.get(eta_fraction)

    def to_dict(self) -> dict[str, Any]:
        """The object in the file."""
        content: dict[str, Any] = {"gain": [self.lower, self.upper], "how": self.how}
        if self.densities:
            content["densities"] = [list(row) for row in self.densities]
        return content


def parse_known(value: object) -> Known:
    """The object of a file, validated."""
    if not isinstance(value, dict) or set(value) - {"densities"} != {"gain", "how"}:
        raise InputError(
            f'is {validation.kind(value)}; give {{"gain": [lower, upper], "how": "text"}}, and'
            ' "densities": [[fraction, lower, upper], ...] if there are any',
            field="known",
        )
    gain = validation.numbers(value["gain"], "known.gain")
    validation.check_size(gain, "known.gain")
    if len(gain) != 2 or gain[0] > gain[1]:
        raise InputError("must be [lower, upper], lower first", field="known.gain")
    how = validation.text(value["how"], "known.how", lines=True)
    return Known(float(gain[0]), float(gain[1]), how, _densities(value.get("densities", [])))


def _densities(rows: object) -> tuple[tuple[float, float, float], ...]:
    field = "known.densities"
    if not isinstance(rows, (list, tuple)):
        said = f"is {validation.kind(rows)}; give [[fraction, lower, upper], ...]"
        raise InputError(said, field=field)
    found: dict[float, tuple[float, float, float]] = {}
    for number, entry in enumerate(rows):
        row = validation.numbers(entry, field)
        if len(row) != 3 or not (-1 <= row[0] <= 1 and 0 <= row[1] <= row[2] <= 1):
            said = "must be [fraction of ‖P w_f‖, lower, upper], with 0 ≤ lower ≤ upper ≤ 1"
            raise InputError(said, field=field, row=number)
        fraction, lower, upper = map(float, row)
        if fraction in found:
            raise InputError(f"has {fraction:g} twice; keep one", field=field, row=number)
        found[fraction] = (fraction, lower, upper)
    return tuple(found.values())

"""What folds say to a terminal: one entry, beside the gain."""

from __future__ import annotations

from fractions import Fraction

from mipmech.design.folds import FoldResults
from mipmech.text import count


def held_out_entry(found: FoldResults | None, gain: Fraction) -> dict[str, str]:
    """The entry about people that a rule was not designed for; none if there are no folds.

    gain : of the rule designed on all
    """
    if found is None:
        return {}
    if found.gain is None or found.least is None or found.most is None:
        return {"held out": f"none of {found.asked} folds was finished: {found.stop.value}"}
    done, asked = len(found.folds), found.asked
    over = f"{done} folds" if done == asked else f"{done} of {asked} folds ({found.stop.value})"
    words = f"{float(found.gain):.4g} on average over {over}"
    if done > 1:
        words += f", {float(found.least):.3g} to {float(found.most):.3g}"
        words += f" (standard deviation {found.deviation:.2g})"
    share = found.share(gain)
    if share is not None:
        words += f": {share:.0%} of the gain on the people it was designed for"
    still_open = sum(not fold.closed for fold in found.folds)
    if still_open:
        words += f"; {count(still_open, 'fold')} with a gap left open in the design"
    return {"held out": words}

"""The paper's closed forms, one module per theme; where the text errs, see `docs/errata.md`.

linear           Theorem 1 and Lemma 9: linear mechanisms
projection       Theorem 2: thresholds along P w_f, corrected grid and guarantees
grids            Lemmas 2 and 4, the Lipschitz fact, the grids over η
smoothing        Lemmas 3, 6, 7, 8: σ-smoothed distributions
learning         Theorems 4 and 5, held-out bounds
full_visibility  Proposition 1
"""

from mipmech.theory.full_visibility import FiniteWorld, counterexample, proposition1
from mipmech.theory.grids import (
    Grid,
    angular_grid,
    facet_grid,
    grid_of,
    paper_etas,
    paper_grid,
    rotate,
    soft_density_loss,
)
from mipmech.theory.learning import (
    HeldOut,
    held_out_bound,
    pollard_sample_size,
    sample_size,
    uniform_deviation,
)
from mipmech.theory.lemma4 import quarter, quarter_factor
from mipmech.theory.linear import LinearResponse, LinearRule, linear_response, linear_rule
from mipmech.theory.projection import (
    ProjectionRule,
    best_threshold_factor,
    gain_ceiling,
    projection_rule,
)
from mipmech.theory.smoothing import (
    band_mass,
    density_ratio,
    lemma3,
    lipschitz_constant,
    soft_density_change,
    tail_radius,
)
from mipmech.theory.statement import Statement

__all__ = [
    "FiniteWorld", "Grid", "HeldOut", "LinearResponse", "LinearRule", "ProjectionRule", "Statement",
    "angular_grid", "band_mass", "best_threshold_factor", "counterexample", "density_ratio",
    "facet_grid", "gain_ceiling", "grid_of", "held_out_bound", "lemma3", "linear_response",
    "linear_rule", "lipschitz_constant", "paper_etas", "paper_grid", "pollard_sample_size",
    "projection_rule", "proposition1", "quarter", "quarter_factor", "rotate", "sample_size",
    "soft_density_change", "soft_density_loss", "tail_radius", "uniform_deviation",
]  # fmt: skip

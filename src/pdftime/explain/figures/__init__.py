"""Figures: every draw_* turns numbers into a matplotlib figure; save_figure writes it."""

from pdftime.explain.figures.checks import draw_curves
from pdftime.explain.figures.evolution import draw_evolution, evolution_plane
from pdftime.explain.figures.files import save_figure
from pdftime.explain.figures.matches import draw_matches, draw_score_sheet
from pdftime.explain.figures.prototypes import assign_members, draw_cosines, draw_gallery, draw_members
from pdftime.explain.figures.series import draw_heat_map, draw_series, draw_spectrum
from pdftime.explain.figures.space import draw_space, flatten
from pdftime.explain.figures.stability import draw_matched, draw_stability, match_prototypes, profiles_of
from pdftime.explain.figures.style import COLUMN, PAGE

__all__ = [
    "COLUMN",
    "PAGE",
    "assign_members",
    "draw_cosines",
    "draw_curves",
    "draw_evolution",
    "draw_gallery",
    "draw_heat_map",
    "draw_matched",
    "draw_matches",
    "draw_members",
    "draw_score_sheet",
    "draw_series",
    "draw_space",
    "draw_spectrum",
    "draw_stability",
    "evolution_plane",
    "flatten",
    "match_prototypes",
    "profiles_of",
    "save_figure",
]

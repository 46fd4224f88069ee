"""Every ablation of the paper by name, as settings relative to a preset (section 5.3 and appendix C)."""

from __future__ import annotations

from typing import Any

ABLATIONS: dict[str, dict[str, Any]] = {
    "no-frequency-mask": {"frequency_mask": False},
    "linear-embedding": {"embedding": "linear"},
    "linear-head": {"head": "linear"},
    "one-level": {"n_prototypes": (3,)},
    "prototypes-by-gradient": {"prototype_update": "gradient"},
    "momentum-1": {"momentum": 1.0},
    "momentum-0.999": {"momentum": 0.999},
    "momentum-0.95": {"momentum": 0.95},
    "momentum-0.7-0.99": {"momentum": None, "gamma_a": 0.7, "gamma_b": 0.99},
    "momentum-0.95-0.999": {"momentum": None, "gamma_a": 0.95, "gamma_b": 0.999},
    "momentum-0.97-0.997": {"momentum": None, "gamma_a": 0.97, "gamma_b": 0.997},
    "momentum-0.99-0.999": {"momentum": None, "gamma_a": 0.99, "gamma_b": 0.999},
    "prototypes-3-3-3": {"n_prototypes": (3, 3, 3)},
    "prototypes-5-3": {"n_prototypes": (5, 3)},
    "prototypes-3-3": {"n_prototypes": (3, 3)},
    "prototypes-2-2": {"n_prototypes": (2, 2)},
    "prototypes-2-3": {"n_prototypes": (2, 3)},
}
"""Two numbers after `momentum` are gamma_a and gamma_b of Algorithm 1, which section 4.4 and appendix C give
differently; the numbers after `prototypes` are K, level by level."""

"""How well a map finds known moments: precision and recall, gain of the ranking, overlap of the top tenth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TOP = 0.1


class Localisation(NamedTuple):
    """Three measures of one map; each is 1 at best (the overlap less, where the truth is not a tenth)."""

    auprc: float
    """Area under precision and recall of the cells ranked by the map; chance gives the share of true cells."""
    ndcg: float
    """Discounted gain of the first n cells, n the number of true ones."""
    iou: float
    """Overlap over union of the true cells and the tenth that the map ranks first."""


def localisation(values: NDArray[np.float64], truth: NDArray[np.bool_]) -> Localisation:
    """The measures of a map against the cells that make the class; equal values are ranked at random, always alike.

    >>> import numpy as np
    >>> localisation(np.array([0.1, 0.9, 0.8, 0.0]), np.array([False, True, True, False]))
    Localisation(auprc=1.0, ndcg=1.0, iou=0.5)
    """
    from sklearn.metrics import average_precision_score

    flat, true = values.ravel().astype(np.float64), truth.ravel()
    mixed = np.random.default_rng(0).permutation(flat.size)
    order = mixed[np.argsort(-flat[mixed], kind="stable")]
    n = int(true.sum())
    discount = 1.0 / np.log2(np.arange(2, n + 2))
    top = np.zeros(flat.size, bool)
    top[order[: max(1, round(TOP * flat.size))]] = True
    return Localisation(
        float(average_precision_score(true, flat)),
        float((true[order[:n]] * discount).sum() / discount.sum()),
        float((top & true).sum() / (top | true).sum()),
    )

"""Named tensors to arrays for a file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """A copy of each tensor as a plain array."""
    return {name: np.array(tensor.detach().cpu().numpy(), order="C") for name, tensor in tensors.items()}


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """A copy of each array as a tensor; arrays read from a file are not writable."""
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}


def with_prefix(prefix: str, items: Mapping[str, Any]) -> dict[str, Any]:
    return {prefix + name: item for name, item in items.items()}


def without_prefix(prefix: str, items: Mapping[str, Any]) -> dict[str, Any]:
    """The items whose name begins with the prefix, named without it."""
    return {name.removeprefix(prefix): item for name, item in items.items() if name.startswith(prefix)}

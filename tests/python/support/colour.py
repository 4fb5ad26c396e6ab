"""Contrast and colour blindness, to test the palette."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB.
SEEN_WITH = {
    "normal sight": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio of two colours written ``#rrggbb``."""
    low, high = sorted(float(_linear(colour) @ _XYZ[1]) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def difference(first: str, second: str, sight: str) -> float:
    """Perceived distance of two colours in CIE L*a*b* (CIE76): 2 is just visible, 15 is
    distinct."""
    matrix = SEEN_WITH[sight]
    labs = [_lab(np.clip(matrix @ _linear(colour), 0, 1)) for colour in (first, second)]
    return float(np.linalg.norm(labs[0] - labs[1]))


def _linear(colour: str) -> NDArray[np.float64]:
    values = np.array([int(colour[index : index + 2], 16) for index in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def _lab(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    x, y, z = np.cbrt(np.maximum(_XYZ @ linear / _XYZ.sum(axis=1), 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])

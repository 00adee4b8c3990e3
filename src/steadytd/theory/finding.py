"""A finding: what some numbers of the certificate mean, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from steadytd.theory.certificate import Certificate

CLOSE = 1.05  # errors within 5 % are equally good
SOME = 1e-9  # relative size below which a number counts as zero


def zeroed(value: float, size: float) -> float:
    """The value, or 0 where it is rounding next to `size`."""
    return value if abs(value) > SOME * (1.0 + size) else 0.0


def norm(c: Certificate, values: Any) -> float:
    """The root of the mean square over the active states that mu visits."""
    d = c.moments.d
    return float(np.sqrt(d @ np.asarray(values) ** 2 / d.sum()))

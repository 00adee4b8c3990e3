"""TDRC(λ): TDC with a regulariser on the second weight vector.

Background: One extra term keeps h small, so that the method behaves more like TD. It is meant to
make TDC easier to tune where TD is stable. On some of the counterexamples it is unstable.

Update (β = ratio α)::

    δ = r + γ' wᵀx' - wᵀx
    z = ρ (γ λ z + x)
    w ← w + α (δ z - γ' (1 - λ) (hᵀz) x')
    h ← h + β (δ z - (hᵀx) x - reg h)

Fixed point: A_λ w = b_λ and h = 0, the same as TD's. The regulariser moves TDC towards TD,
so where TD is unstable it may be unstable too. With reg = 1 its mean update is unstable on
theta2theta and three_state and stable on baird; the certificate says so.

Parameters: alpha > 0, ratio > 0 (beta/alpha, default 1), reg >= 0 (default 1), lam in [0, 1].

Example::

    steadytd run baird tdrc:alpha=0.001 --steps 100000 --seeds 10

Reference: Ghiassian et al. (2020), "Gradient temporal-difference learning with regularized
corrections".

Differs from the paper: 1. traces, as in GTD(λ).

Reduces to: tdc at reg = 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from steadytd.engine.law import LAM, RATIO, Param, accumulating_trace, law
from steadytd.mdp.moments import Expectation, Moments


def expectation(m: Moments, values: Mapping[str, float]) -> Expectation:
    """TDC's with G + reg I in the place of G for h."""
    A, b, ratio = m.A(values["lam"]), m.b(values["lam"]), values["ratio"]
    held = m.G + values["reg"] * m.share * np.eye(len(b))
    M = np.block([[A, m.B(values["lam"])], [ratio * A, ratio * held]])
    return Expectation(M=M, g=np.concatenate([b, ratio * b]))


@law(
    params={
        "ratio": replace(RATIO, default=1.0),
        "reg": Param("regulariser of h", default=1.0, low=0.0, cure=True),
        "lam": LAM,
    },
    traces={"z": accumulating_trace},
    writes={"w": ("z", "x_next"), "h": ("z", "x", "h")},
    expectation=expectation,
)
def tdrc(
    reward: float,
    gamma_next: float,
    w_x: float,
    w_x_next: float,
    h_x: float,
    h_z: float,
    alpha: float,
    ratio: float,
    reg: float,
    lam: float,
) -> tuple[tuple[float, float], tuple[float, float, float]]:
    """The multiples of (z, x') to add to w and of (z, x, h) to add to h."""
    delta = reward + gamma_next * w_x_next - w_x
    beta = ratio * alpha
    w = alpha * delta, -alpha * gamma_next * (1 - lam) * h_z
    h = beta * delta, -beta * h_x, -beta * reg
    return w, h

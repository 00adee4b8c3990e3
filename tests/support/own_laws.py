"""A user's own copies of built-in laws: the same equations, with names of their own throughout."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import steadytd as st
from steadytd.engine.law import AUTO_RATIO, LAM, RATIO, accumulating_trace
from steadytd.engine.second_order import solved
from steadytd.mdp.moments import Expectation, Moments

LENGTH = st.Param("trace decay", default=0.0, low=0.0, high=1.0)
STRENGTH = st.Param("penalty", low=0.0, auto=True)


def own_trace(rho: float, gamma: float, length: float) -> tuple[float, float]:
    """z <- rho (gamma length z + x)."""
    return rho * gamma * length, rho


def own_follow_on(gamma: float, rho_prev: float, interest: float, follow: float) -> float:
    """follow <- gamma rho_{t-1} follow + i."""
    return gamma * rho_prev * follow + interest


def td_mean(m: Moments, values: Mapping[str, float]) -> Expectation:
    """b - A w."""
    return Expectation(M=m.A(values["length"]), g=m.b(values["length"]))


def perturbed_mean(m: Moments, values: Mapping[str, float]) -> Expectation:
    """b - (A + strength G) w."""
    return Expectation(M=m.A() + values["strength"] * m.G, g=m.b())


def etd_mean(m: Moments, values: Mapping[str, float]) -> Expectation:
    """TD's with the follow-on trace in place of d."""
    return m.emphatic(m.follow_on, 0.0)


def tdc_mean(m: Moments, values: Mapping[str, float]) -> Expectation:
    """[[A, G - A'], [ratio A, ratio G]]."""
    A, b, ratio = m.A(values["lam"]), m.b(values["lam"]), values["ratio"]
    M = np.block([[A, m.G - A.T], [ratio * A, ratio * m.G]])
    return Expectation(M=M, g=np.concatenate([b, ratio * b]))


def gtd2_mean(m: Moments, values: Mapping[str, float]) -> Expectation:
    """[[0, -A'], [ratio A, ratio G]]."""
    A, b, ratio = m.A(), m.b(), values["ratio"]
    M = np.block([[0.0 * A, -A.T], [ratio * A, ratio * m.G]])
    return Expectation(M=M, g=np.concatenate([0.0 * b, ratio * b]))


def lstd_mean(m: Moments, values: Mapping[str, float]) -> Expectation:
    """To TD's fixed point at once."""
    return m.direct(Expectation(M=m.A(), g=m.b()))


@st.law(
    params={"length": LENGTH}, traces={"z": own_trace}, trace_param="length", writes={"w": "z"},
    expectation=td_mean,
)  # fmt: skip
def my_td(reward: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float) -> float:
    """td."""
    return alpha * (reward + gamma_next * w_x_next - w_x)


@st.law(params={"strength": STRENGTH}, writes={"w": "x"}, expectation=perturbed_mean)
def my_perturbed_td(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float,
    strength: float,
) -> float:  # fmt: skip
    """perturbed_td, without traces."""
    return alpha * rho * (reward + gamma_next * w_x_next - (1 + strength) * w_x)


@st.law(memory={"follow": own_follow_on}, writes={"w": "x"}, expectation=etd_mean)
def my_etd(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, alpha: float,
    follow: float,
) -> float:  # fmt: skip
    """etd, without traces."""
    return alpha * rho * follow * (reward + gamma_next * w_x_next - w_x)


@st.law(
    params={"ratio": AUTO_RATIO, "lam": LAM}, traces={"z": accumulating_trace},
    writes={"w": ("z", "x_next"), "h": ("z", "x")}, expectation=tdc_mean,
)  # fmt: skip
def my_tdc(
    reward: float, gamma_next: float, w_x: float, w_x_next: float, h_x: float, h_z: float,
    alpha: float, ratio: float, lam: float,
) -> tuple[tuple[float, float], tuple[float, float]]:  # fmt: skip
    """tdc."""
    delta, beta = reward + gamma_next * w_x_next - w_x, ratio * alpha
    return (alpha * delta, -alpha * gamma_next * (1 - lam) * h_z), (beta * delta, -beta * h_x)


@st.law(params={"ratio": RATIO}, writes={"w": ("x", "x_next"), "h": "x"}, expectation=gtd2_mean)
def my_gtd2(
    reward: float, rho: float, gamma_next: float, w_x: float, w_x_next: float, h_x: float,
    alpha: float, ratio: float,
) -> tuple[tuple[float, float], float]:  # fmt: skip
    """gtd2, without traces."""
    delta = rho * (reward + gamma_next * w_x_next - w_x)
    return (alpha * h_x, -alpha * rho * gamma_next * h_x), ratio * alpha * (delta - h_x)


@solved(params={"lam": LAM}, traces={"z": accumulating_trace}, expectation=lstd_mean)
def my_lstd(reward: float, gamma_next: float) -> tuple[float, float, float]:
    """lstd."""
    return reward, 1.0, -gamma_next


OWN = {
    "td": my_td,
    "perturbed_td": my_perturbed_td,
    "etd": my_etd,
    "tdc": my_tdc,
    "gtd2": my_gtd2,
    "lstd": my_lstd,
}

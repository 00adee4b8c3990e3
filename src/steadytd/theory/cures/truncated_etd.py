"""Truncated emphatic TD: a follow-on trace over the last n ratios.

    f_n = sum_{k=0..n} (P_gamma')^k (d i),    A_n = Phi' diag(f_n) (I - P_gamma) Phi.

n = 0 is TD with interest i; as n grows, f_n becomes emphatic TD's. Let K = diag(f_n) (I - P_gamma).
Its row sums are not negative, and its column sums are f_n'(I - P_gamma) = (d i) - (P_gamma')^(n+1)
(d i). If all of these are positive, K + K' is strictly diagonally dominant and A_n is positive
definite. If (P_gamma')^m (d i) < d i for all m from N to 2N - 1, then for all m >= N. The trace is
a sum of products of at most n ratios: its second moment is finite.
"""

from __future__ import annotations

import numpy as np

from steadytd.mdp.moments import Expectation, Moments
from steadytd.theory.cures.cure import Cure, Setting

NAME = __name__.rpartition(".")[2]
MOST = 2000  # ratios looked at


def cure(setting: Setting) -> Cure:
    """The number of ratios."""
    s, m = setting, setting.m
    features = m.Phi @ s.Q
    change = features - m.P_gamma @ features
    flows, sums = [m.d * m.interest], [m.d * m.interest]
    squares = [m.d * m.interest**2]  # d E[F^2]

    def system(n: float) -> Expectation:
        while len(sums) <= n:
            flows.append(flows[-1] @ m.P_gamma)
            sums.append(sums[-1] + flows[-1])
        weighted = (features * sums[int(n)][:, None]).T
        return Expectation(M=weighted @ change, g=weighted @ m.r_pi)

    def noise(n: float) -> float:
        system(n)
        while len(squares) <= n:
            before = sums[len(squares) - 1] @ m.P_gamma
            with np.errstate(over="ignore", invalid="ignore"):  # 2,000 ratios may leave the range
                ahead = squares[-1] @ s.squares[1]
                squares.append(m.d * m.interest**2 + 2.0 * m.interest * before + ahead)
        total = m.share * float(squares[int(n)] @ s.squares[0])
        return float(np.sqrt(total) / sums[int(n)].sum())

    certain = certain_from(m)
    return Cure(
        name=NAME, amount="n", setting=s, system=system, whole=True,
        high=MOST if certain is None else float("inf"), certain=certain, noise=noise,
    )  # fmt: skip


def certain_from(m: Moments) -> float | None:
    """N - 1 for the smallest N as above; None if that is not seen."""
    inner = m.P_gamma[np.ix_(m.visited, m.visited)]
    start = (m.d * m.interest)[m.visited]
    if not (start > 0.0).all():
        return None
    flow, since = start, 1
    for k in range(1, 2 * MOST):
        flow = flow @ inner
        if (flow >= (1.0 - 1e-12) * start).any():
            since = k + 1
        elif k >= 2 * since - 1:
            return float(since - 1)
    return None

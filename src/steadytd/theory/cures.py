"""Every way to make an unstable mean update stable: the cures of one problem, and which come first.

A cure whose parameter belongs to a registered law is made from the law (`choose.law_cure`). The
others are here: their closed forms need no learner. A law with variants (penalties inside or
outside the trace) has them once more with traces, at lam = 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.parallel import single_threaded
from steadytd.engine.law import Value
from steadytd.learners import algorithm, learner, names
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.problem import Problem
from steadytd.mdp.scales import SAME
from steadytd.theory.choose import law_cure
from steadytd.theory.closed_form import has_closed_form
from steadytd.theory.cure import CLOSE, UNBOUNDED, Cure, Iteration, Setting
from steadytd.theory.exact import mean_square

TRACE = 0.5  # the trace decay at which variants are compared
LOUD = 1000.0  # times TD's noise: no error is worth more
MOST = 2000  # steps of n-step TD and ratios of truncated ETD that are looked at
FITTED = 1e-13  # of the slowest direction is left when the inner steps have gone to their end
MOST_INNER = 10**12  # inner steps
RATIO = 0.1  # of the two step sizes of a target network, on one time scale


@single_threaded
def cures_of(problem: Problem, policy: int = 0) -> tuple[Cure, ...]:
    """Every cure on this problem; one from this file replaces a law's own of the same name."""
    setting = Setting.of(problem, policy)
    own = [_with_second_moments(make(setting), problem, policy) for make in OWN]
    replaced = {cure.name for cure in own}
    found = *(c for c in _law_cures(problem, policy) if c.name not in replaced), *own
    for cure in found:
        _ = cure.best  # found now, on one thread
    return found


def _with_second_moments(cure: Cure, problem: Problem, policy: int) -> Cure:
    """The cure with those of its learner, if it has one."""
    make = cure.learner
    if make is None:
        return cure
    return replace(cure, second_moments=lambda value: mean_square(problem, make(value), policy))


def _law_cures(problem: Problem, policy: int) -> Iterator[Cure]:
    """Every cure that a registered law declares, and its variants with traces."""
    for law in map(algorithm, names()):
        if law.action_values or law.block is not None or not has_closed_form(law):
            continue
        for name in (name for name, param in law.params.items() if param.cure):
            value = law.params[name].inside(0.5)
            plain = learner(law, alpha=1.0, **{name: value})
            yield law_cure(problem, plain, name, policy)
            for word in law.variants:
                traced: dict[str, Value] = {law.trace_param: TRACE, law.variant_param: word}
                yield law_cure(problem, plain.replace(**traced), name, policy)


def is_loud(cure: Cure) -> bool:
    """Whether the noise of a cure's updates, at its best value, is beyond use."""
    noise = None if cure.best is None else cure.noise(cure.best)
    return noise is not None and not noise <= LOUD * cure.setting.td_noise


def best_first(cures: Sequence[Cure]) -> list[Cure]:
    """The cures whose best values have the least error, the fastest at equal noise first.

    Errors within 5 % are equal. Cures whose second moments are not finite, or whose noise is more
    than 1000 times TD's (it takes a million times as many steps to average it out), count only if
    there is no other. A target that moves infinitely slowly has no rate and never counts.
    """
    possible = {c: c.best for c in cures if c.best is not None and c.comparable}
    finite = [c for c, value in possible.items() if c.has_finite_variance(value)] or list(possible)
    calm = [c for c in finite if not is_loud(c)] or finite
    if not calm:
        return []
    slack = CLOSE * min(c.best_error or 0.0 for c in calm) + SAME * calm[0].setting.scale
    equal = [c for c in calm if (c.best_error or 0.0) <= slack]
    speeds = [c.efficiency(possible[c]) for c in equal]
    places = np.argsort([-round(x / max(*speeds, SAME), 6) for x in speeds], kind="stable")
    return [equal[i] for i in places]


def nstep_td(setting: Setting) -> Cure:
    """n-step TD with a ratio per step: the bootstrap comes n steps later.

        A_n = Phi' D (I - P_gamma^n) Phi,    b_n = Phi' D sum_{k<n} P_gamma^k r_pi.

    n = 1 is TD; as n grows, A_n goes to G and the fixed point to the best linear fit. From some n
    on all are stable: see `_nstep_certain_from`.
    """
    s, m = setting, setting.m
    ahead, back = [m.Phi @ s.Q], (m.Phi @ s.Q * m.d[:, None]).T  # P_gamma^n Phi
    rewards = [m.r_pi]  # P_gamma^n r_pi
    targets = [0.0 * s.b]
    squares = [0.0 * m.d]  # V_n = E rho^2 + K V_{n-1}, of the sum of squares of the n products

    def system(n: float) -> Expectation:
        while len(ahead) <= n:
            targets.append(targets[-1] + back @ rewards[-1])
            ahead.append(m.P_gamma @ ahead[-1])
            rewards.append(m.P_gamma @ rewards[-1])
        return Expectation(M=s.G - back @ ahead[int(n)], g=targets[int(n)])

    def noise(n: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            while len(squares) <= n:
                squares.append(s.squares[0] + s.squares[1] @ squares[-1])
        return float(np.sqrt(m.d @ squares[int(n)] / m.d.sum()))

    certain = _nstep_certain_from(m)
    return Cure(
        name="nstep_td", amount="n", setting=s, system=system, low=1.0, whole=True,
        high=MOST if certain is None else UNBOUNDED, certain=certain, own_noise=noise,
    )  # fmt: skip


def _nstep_certain_from(m: Moments) -> float | None:
    """A number of steps from which on every one is stable; None if that is not seen.

    With s_n the largest row sum of P_gamma^n and c_n = max_j (d'P_gamma^n)_j/d_j,
    ||P_gamma^n||^2 <= q_n = s_n c_n in the d_mu norm, and A_n is positive definite if q_n < 1. As
    q_{m+n} <= q_m q_n, it is enough that q_n < 1 for all n from N to 2N - 1.
    """
    inner, d = m.P_gamma[np.ix_(m.visited, m.visited)], m.d[m.visited]

    def contracts() -> Iterator[bool]:
        rows, columns = np.ones(len(d)), d
        while True:
            rows, columns = inner @ rows, columns @ inner
            yield bool(rows.max() * (columns / d).max() < 1.0 - 1e-12)

    return _holds_from(contracts())


def _holds_from(verdicts: Iterator[bool]) -> float | None:
    """The smallest N such that the n-th verdict is true for all n from N to 2N - 1."""
    since = 1
    for n, holds in zip(range(1, 2 * MOST), verdicts, strict=False):
        if not holds:
            since = n + 1
        elif n >= 2 * since - 1:
            return float(since)
    return None


def truncated_etd(setting: Setting) -> Cure:
    """Truncated emphatic TD: a follow-on trace over the last n ratios.

        f_n = sum_{k=0..n} (P_gamma')^k (d i),    A_n = Phi' diag(f_n) (I - P_gamma) Phi.

    n = 0 is TD with interest i; as n grows, f_n becomes emphatic TD's. The trace is a sum of
    products of at most n ratios: its second moment is finite.
    """
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

    certain = _truncated_certain_from(m)
    return Cure(
        name="truncated_etd", amount="n", setting=s, system=system, whole=True,
        high=MOST if certain is None else UNBOUNDED, certain=certain, own_noise=noise,
    )  # fmt: skip


def _truncated_certain_from(m: Moments) -> float | None:
    """A number of ratios from which on every one is stable; None if that is not seen.

    Let K = diag(f_n) (I - P_gamma). Its row sums are not negative, and its column sums are
    f_n'(I - P_gamma) = (d i) - (P_gamma')^(n+1) (d i). If all of these are positive, K + K' is
    strictly diagonally dominant and A_n is positive definite. If (P_gamma')^m (d i) < d i for all
    m from N to 2N - 1, then for all m >= N.
    """
    inner, start = m.P_gamma[np.ix_(m.visited, m.visited)], (m.d * m.interest)[m.visited]
    if not (start > 0.0).all():
        return None

    def shrinks() -> Iterator[bool]:
        flow: Floats = start
        while True:
            flow = flow @ inner
            yield bool((flow < (1.0 - 1e-12) * start).all())

    found = _holds_from(shrinks())
    return None if found is None else found - 1.0


def partially_fitted(setting: Setting) -> Cure:
    """Partially fitted iteration: a target copied every t steps.

    t steps of w += alpha (b + C wbar - G w), then wbar = w. With
    M_t = alpha sum_{i<t} (I - alpha G)^i = G^-1 (I - (I - alpha G)^t) a copy is
    w <- w + M_t (b - A w). It converges exactly if the spectral radius of I - M_t A is below 1.
    t = 1 is TD at step size alpha; as t grows it becomes fitted iteration, G^-1 C. Here
    alpha = 1/lambda_max(G), so every inner step contracts. The fixed point is TD's.
    """
    s = setting
    sizes, U = np.linalg.eigh(s.G)
    alpha = s.m.share / float(sizes[-1])  # per step in which the learner updates
    left = np.maximum(1.0 - sizes / sizes[-1], 0.0)
    inner = U.T @ s.A, U.T @ s.b

    def system(t: float) -> Expectation:
        done = U * ((1.0 - left**t) / sizes)
        return Expectation(M=done @ inner[0], g=done @ inner[1])

    last = 1.0 if left[0] <= 0.0 else MOST_INNER
    if 0.0 < left[0] < 1.0:
        last = np.log(FITTED) / np.log(left[0])
    return Iteration(
        name="partially_fitted", amount="t", setting=s, system=system, low=1.0, whole=True,
        high=float(np.ceil(min(max(last, 1.0), MOST_INNER))), settings={"alpha": alpha},
    )  # fmt: skip


def target_td(setting: Setting) -> Cure:
    """A target network that follows slowly, with a ridge; both step sizes of one order.

        w    += alpha (rho (r + gamma' wbar.x' - w.x) x - ridge w)
        wbar += ratio alpha (w - wbar)

    With C = Phi' D P_gamma Phi the mean update of (w, wbar) has the matrix
    [[G + ridge I, -C], [-ratio I, ratio I]], and the fixed point (A + ridge I) w = b.
    """
    s = setting
    still, C = np.zeros(s.rank), s.G - s.A
    follow = RATIO * s.identity

    def system(ridge: float) -> Expectation:
        M = np.block([[s.G + ridge * s.identity, -C], [-follow, follow]])
        return Expectation(M=M, g=np.concatenate([s.b, still]))

    return Cure(
        name="target_td", amount="ridge", setting=s, system=system, settings={"ratio": RATIO},
        learner=lambda ridge: learner("target_td", alpha=1.0, ratio=RATIO, ridge=ridge),
    )  # fmt: skip


def slow_target_td(setting: Setting) -> Cure:
    """`target_td` in the limit of ratio -> 0, a target that moves infinitely slowly.

    w is always where wbar leads it, and wbar follows the matrix
    I - (G + ridge I)^-1 C = (G + ridge I)^-1 (A + ridge I): the slow time scale. It is certainly
    stable if ||C|| < lambda_min(G) + ridge.
    """
    s = setting

    def system(ridge: float) -> Expectation:
        held = s.G + ridge * s.identity
        M = np.asarray(np.linalg.solve(held, s.A + ridge * s.identity))
        return Expectation(M=M.astype(np.float64), g=np.linalg.solve(held, s.b).astype(np.float64))

    certain = (np.linalg.norm(s.G - s.A, 2) - np.linalg.eigvalsh(s.G)[0]) / s.m.share
    return Cure(
        name="target_td", amount="ridge", setting=s, system=system, settings={"ratio": "slow"},
        certain=max(0.0, float(certain)), comparable=False,
    )  # fmt: skip


OWN = (nstep_td, partially_fitted, target_td, slow_target_td, truncated_etd)

"""The cures of one problem: hyper-parameters of its laws and other ways to a stable mean update.

A hyper-parameter of a law is a cure by the law's closed form (`law_cure`). What "auto" chooses when
the model is known follows from it:

- `eta` is the penalty whose fixed point has the least error among those that are clear of every
  pole and every crossing (`Cure.automatic`), up to the theorem's bound (or 1);
- `ratio` adds no bias, so it is chosen for speed: the smallest power of two that is at least twice
  the stabilising ratio and reaches nine tenths of the rate at which the slowest mode can decay.

A law with variants (penalties inside or outside the trace) is compared once more with traces, at
lam = 0.5. Cures that need more than a law's closed form are functions here, in `OWN`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError
from steadytd.base.parallel import single_threaded
from steadytd.engine.law import Value
from steadytd.engine.learner import Learner
from steadytd.learners import algorithm, names
from steadytd.learners import learner as make_learner
from steadytd.mdp.cached import cached
from steadytd.mdp.moments import Expectation, Moments
from steadytd.mdp.problem import Problem
from steadytd.mdp.scales import SAME, same
from steadytd.theory import dynamics
from steadytd.theory.closed_form import has_closed_form, numbers_of
from steadytd.theory.cure import CLOSE, ENOUGH, UNBOUNDED, Cure, Iteration, Setting
from steadytd.theory.exact import mean_square
from steadytd.theory.thresholds import Pencil
from steadytd.theory.variance import noise, variance

PROBE = 0.7  # the value at which a law's own matrix is compared with A_lam + eta G
OPEN = 1e-6  # share of the range by which an end without a closed form is avoided
RATIOS = 2.0 ** np.arange(-6, 11)
LARGE_RANK = 60  # from here on only every fourth ratio is tried: eigenvalues take their time
TRACE = 0.5  # the trace decay at which variants are compared
NOISIEST = 1000.0  # times TD's noise: no error is worth more
FITTED = 1e-13  # of the slowest direction is left when the inner steps have gone to their end
MOST_INNER = 10**12  # inner steps
RATIO = 0.1  # of the two step sizes of a target network, on one time scale


def resolve(problem: Problem, learner: Learner, policy: int = 0) -> Learner:
    """The learner with every "auto" replaced by the number that the model asks for."""
    chosen = learner
    for name in learner.automatic:
        if name == "eta":
            chosen = chosen.replace(eta=penalty(problem, chosen, policy).automatic())
        elif name == "ratio":
            chosen = chosen.replace(ratio=best_ratio(problem, chosen.replace(ratio=1.0), policy))
        else:
            raise InputError(f"{learner.name}: {name}=auto is not offered; give a number.")
    return chosen


def stabilising_ratio(problem: Problem, learner: Learner, policy: int = 0) -> float:
    """max(0, -lambda_min(G^-1 sym A_lam)): TDC with a larger ratio is stable on one time scale."""
    lam = float(learner.values.get("lam", 0.0))
    return max(0.0, Pencil.of(problem.moments(policy), lam).eta_pd)


@cached(256)
@single_threaded
def best_ratio(problem: Problem, learner: Learner, policy: int = 0) -> float:
    """The smallest power of two, at least twice the stabilising ratio, that is fast enough."""
    least = 2.0 * stabilising_ratio(problem, learner, policy)
    tried = RATIOS if len(problem.moments(policy).row_space.T) <= LARGE_RANK else RATIOS[::4]
    candidates = [float(r) for r in tried if r >= least] or [float(2.0 ** np.ceil(np.log2(least)))]
    rates = [
        float(dynamics.decay_rates(problem, learner.replace(ratio=r), policy).real.min())
        for r in candidates
    ]
    if max(rates) <= 0.0:  # rounding: such a ratio is stable
        return candidates[int(np.argmax(rates))]
    enough = ENOUGH * max(rates)
    return next(r for r, rate in zip(candidates, rates, strict=True) if rate >= enough)


# A hyper-parameter as a cure


def penalty(problem: Problem, learner: Learner, policy: int = 0) -> Cure:
    """The penalty of a learner as a cure; its own eta and alpha do not matter."""
    plain = learner.replace(alpha=1.0) if "alpha" in learner.values else learner
    return _family(problem, plain.replace(eta=1.0), "eta", policy)


def law_cure(problem: Problem, learner: Learner, name: str, policy: int = 0) -> Cure:
    """One hyper-parameter of a learner as a cure, with the noise and variance of its runs.

    Its own value of it does not matter.
    """
    param = learner.algorithm.params[name]
    inside = learner.replace(**{name: min(param.low + 1.0, (param.low + param.high) / 2.0)})

    def with_value(value: float) -> Learner:
        return learner.replace(**{name: value})

    found = replace(
        _family(problem, inside, name, policy),
        second_moments=lambda value: mean_square(problem, with_value(value), policy),
    )
    if name == "ratio" and param.auto:
        found = replace(found, chosen=lambda _: best_ratio(problem, with_value(1.0), policy))
    if inside.traced or inside.law.remembered:
        found = replace(
            found,
            finite=lambda value: variance(problem, with_value(value), policy).finite,
            own_noise=lambda value: noise(problem, with_value(value), policy),
        )
    return found


@cached(64)
def _family(problem: Problem, learner: Learner, name: str, policy: int) -> Cure:
    """The mean updates of a learner for every value of one hyper-parameter: the law's closed form.

    That of a penalty is A_lam + eta G, whose crossings are known, unless the traces are scaled.
    The problem stores this cure, so the cure does not hold the problem.
    """
    law, setting = learner.law, Setting.of(problem, policy)
    m, param, numbers = setting.m, learner.algorithm.params[name], numbers_of(learner)
    sizes = None if m.compact is None else np.diag(law.basis(np.diag(m.span.sizes)))

    def system(value: float) -> Expectation:
        e = dynamics.reduced_form(law, m, {**numbers, name: value})
        return e if sizes is None else Expectation(e.M / np.outer(sizes, sizes), e.g / sizes)

    high = param.high
    try:
        system(min(high, 1e6))
    except InputError:
        high -= OPEN * (high - param.low)
    found = Cure(
        name=learner.name, amount=name, setting=setting, low=param.low, high=high,
        open_below=param.above, whole=param.whole, sizes=sizes, system=system,
        learner=lambda value: learner.replace(**{name: value}),
    )  # fmt: skip
    if learner.traced:
        fixed = (law.trace_param, learner.algorithm.variant_param)
        found = replace(found, settings={k: learner[k] for k in fixed if k and k != name})
    if name != "eta":
        return found
    if param.auto:
        found = replace(found, chosen=Cure.automatic)
    if law.scalars:  # its matrix has a row more
        return found
    pencil = Pencil.of(m, float(learner[law.trace_param]) if learner.traced else 0.0)
    seen = Expectation(pencil.A(PROBE), pencil.b) if law.block is not None else system(PROBE)
    if not (same(seen.M, pencil.A(PROBE)) and same(seen.g, pencil.b)):
        return found
    return replace(found, pencil=pencil, system=lambda eta: Expectation(pencil.A(eta), pencil.b))


# All cures


@single_threaded
def cures_of(problem: Problem, policy: int = 0) -> tuple[Cure, ...]:
    """Every cure on this problem."""
    problem.moments(policy).require_array("the comparison of cures")
    own = () if problem.average_reward else OWN  # these are about discounted values
    found = *_law_cures(problem, policy), *(make(problem, policy) for make in own)
    for cure in found:
        _ = cure.best  # found now, on one thread
    return found


def _law_cures(problem: Problem, policy: int) -> Iterator[Cure]:
    """Every cure that a registered law declares, and its variants with traces."""
    for law in map(algorithm, names()):
        if law.action_values or law.block is not None or not has_closed_form(law):
            continue
        if law.average_reward != problem.average_reward:
            continue
        for name in (name for name, param in law.params.items() if param.cure):
            value = law.params[name].inside(0.5)
            plain = make_learner(law, alpha=1.0, **{name: value})
            yield law_cure(problem, plain, name, policy)
            for word in law.variants:
                traced: dict[str, Value] = {law.trace_param: TRACE, law.variant_param: word}
                yield law_cure(problem, plain.replace(**traced), name, policy)


def is_too_noisy(cure: Cure) -> bool:
    """Whether the noise of a cure's updates, at its best value, is beyond use."""
    noise = None if cure.best is None else cure.noise(cure.best)
    return noise is not None and not noise <= NOISIEST * cure.setting.td_noise


def best_first(cures: Sequence[Cure]) -> list[Cure]:
    """The cures whose best values have the least error, the fastest at equal noise first.

    Errors within 5 % are equal. Cures whose second moments are not finite, or whose noise is more
    than 1000 times TD's (it takes a million times as many steps to average it out), count only if
    there is no other. A target that moves infinitely slowly has no rate and never counts.
    """
    possible = {c: c.best for c in cures if c.best is not None and c.comparable}
    finite = [c for c, value in possible.items() if c.has_finite_variance(value)] or list(possible)
    calm = [c for c in finite if not is_too_noisy(c)] or finite
    if not calm:
        return []
    slack = CLOSE * min(c.best_error or 0.0 for c in calm) + SAME * calm[0].setting.scale
    equal = [c for c in calm if (c.best_error or 0.0) <= slack]
    speeds = [c.efficiency(possible[c]) for c in equal]
    places = np.argsort([-round(x / max(*speeds, SAME), 6) for x in speeds], kind="stable")
    return [equal[i] for i in places]


# Cures with a theorem, and those that are no learner


def nstep_td(problem: Problem, policy: int) -> Cure:
    """n-step TD with a ratio per step: the bootstrap comes n steps later.

    Its matrix is A_n = Phi' D (I - P_gamma^n) Phi. n = 1 is TD; as n grows, A_n goes to G and the
    fixed point to the best linear fit. With s_n the largest row sum of P_gamma^n and
    c_n = max_j (d'P_gamma^n)_j/d_j, ||P_gamma^n||^2 <= q_n = s_n c_n in the d_mu norm, and A_n is
    positive definite if q_n < 1. As q_{m+n} <= q_m q_n, all n >= N are stable if q_n < 1 for all n
    from N to 2N - 1.
    """
    m = problem.moments(policy)
    inner, d = m.P_gamma[np.ix_(m.visited, m.visited)], m.d[m.visited]

    def contracts() -> Iterator[bool]:
        rows, columns = np.ones(len(d)), d
        while True:
            rows, columns = inner @ rows, columns @ inner
            yield bool(rows.max() * (columns / d).max() < 1.0 - 1e-12)

    found = law_cure(problem, make_learner("nstep_td", alpha=1.0), "n", policy)
    return _stable_from(found, _holds_from(contracts(), found.high))


def truncated_etd(problem: Problem, policy: int) -> Cure:
    """Truncated emphatic TD: a follow-on trace over the last n ratios.

        f_n = sum_{k=0..n} (P_gamma')^k (d i),    A_n = Phi' diag(f_n) (I - P_gamma) Phi.

    n = 0 is TD with interest i; as n grows, f_n becomes emphatic TD's. Let
    K = diag(f_n) (I - P_gamma). Its row sums are not negative, and its column sums are
    f_n'(I - P_gamma) = (d i) - (P_gamma')^(n+1) (d i). If all of these are positive, K + K' is
    strictly diagonally dominant and A_n is positive definite. If (P_gamma')^m (d i) < d i for all
    m from N to 2N - 1, then for all m >= N.
    """
    setting = Setting.of(problem, policy)
    m, (ratios, ahead) = setting.m, setting.squares
    start = m.d * m.interest
    inner, active = m.P_gamma[np.ix_(m.visited, m.visited)], start[m.visited]

    def shrinks() -> Iterator[bool]:
        flow: Floats = active
        while True:
            flow = flow @ inner
            yield bool((flow < (1.0 - 1e-12) * active).all())

    def own_noise(n: float) -> float:
        mean, square = start, start * m.interest  # d E[F] and d E[F^2]
        with np.errstate(over="ignore", invalid="ignore"):  # 1,000 ratios may leave the range
            for _ in range(int(n)):
                before = mean @ m.P_gamma
                square = start * m.interest + 2.0 * m.interest * before + square @ ahead
                mean = start + before
        return float(np.sqrt(m.share * (square @ ratios)) / mean.sum())

    found = law_cure(problem, make_learner("truncated_etd", alpha=1.0), "n", policy)
    found = replace(found, own_noise=own_noise)
    if not (active > 0.0).all():
        return found
    certain = _holds_from(shrinks(), found.high)
    return _stable_from(found, None if certain is None else certain - 1.0)


def _stable_from(cure: Cure, certain: float | None) -> Cure:
    """The cure with a theorem: from `certain` on every whole number is stable."""
    return cure if certain is None else replace(cure, certain=certain, high=UNBOUNDED)


def _holds_from(verdicts: Iterator[bool], most: float) -> float | None:
    """The smallest N such that the n-th verdict is true for all n from N to 2N - 1."""
    since = 1
    for n, holds in zip(range(1, 2 * int(most)), verdicts, strict=False):
        if not holds:
            since = n + 1
        elif n >= 2 * since - 1:
            return float(since)
    return None


def _td_on_row_space(m: Moments) -> tuple[Floats, Floats, Floats]:
    """A, G and b."""
    Q = m.row_space
    return Q.T @ m.A() @ Q, Q.T @ m.G @ Q, Q.T @ m.b()


def partially_fitted(problem: Problem, policy: int) -> Cure:
    """Partially fitted iteration: a target copied every t steps.

    t steps of w += alpha (b + C wbar - G w), then wbar = w. With
    M_t = alpha sum_{i<t} (I - alpha G)^i = G^-1 (I - (I - alpha G)^t) a copy is
    w <- w + M_t (b - A w). It converges exactly if the spectral radius of I - M_t A is below 1.
    t = 1 is TD at step size alpha; as t grows it becomes fitted iteration, G^-1 C. Here
    alpha = 1/lambda_max(G), so every inner step contracts. The fixed point is TD's.
    """
    s = Setting.of(problem, policy)
    A, G, b = _td_on_row_space(s.m)
    sizes, U = np.linalg.eigh(G)
    alpha = s.m.share / float(sizes[-1])  # per step in which the learner updates
    left = np.maximum(1.0 - sizes / sizes[-1], 0.0)
    inner = U.T @ A, U.T @ b

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


def target_td(problem: Problem, policy: int) -> Cure:
    """A target network that follows slowly, with a ridge; both step sizes of one order."""
    fixed = make_learner("target_td", alpha=1.0, ratio=RATIO)
    return replace(law_cure(problem, fixed, "ridge", policy), settings={"ratio": RATIO})


def slow_target_td(problem: Problem, policy: int) -> Cure:
    """`target_td` in the limit of ratio -> 0, a target that moves infinitely slowly.

    w is always where wbar leads it, and wbar follows the matrix
    I - (G + ridge I)^-1 C = (G + ridge I)^-1 (A + ridge I): the slow time scale. It is certainly
    stable if ||C|| < lambda_min(G) + ridge.
    """
    s = Setting.of(problem, policy)
    A, G, b = _td_on_row_space(s.m)
    identity = s.m.share * np.eye(s.rank)  # in the steps in which the learner updates

    def system(ridge: float) -> Expectation:
        held = G + ridge * identity
        M: Floats = np.asarray(np.linalg.solve(held, A + ridge * identity))
        return Expectation(M=M, g=np.asarray(np.linalg.solve(held, b)))

    certain = (np.linalg.norm(G - A, 2) - np.linalg.eigvalsh(G)[0]) / s.m.share
    return Cure(
        name="target_td", amount="ridge", setting=s, system=system, settings={"ratio": "slow"},
        certain=max(0.0, float(certain)), comparable=False,
    )  # fmt: skip


OWN = (nstep_td, partially_fitted, target_td, slow_target_td, truncated_etd)

"""A hyper-parameter of a law as a cure, and what "auto" chooses when the model is known.

`eta` is the penalty whose fixed point has the least error among those that are clear of every pole
and every crossing (`Cure.automatic`), up to the theorem's bound (or 1).

`ratio` adds no bias, so it is chosen for speed: the smallest power of two that is at least twice
the stabilising ratio and reaches nine tenths of the rate at which the slowest mode can decay.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from steadytd.base.errors import InputError
from steadytd.base.parallel import single_threaded
from steadytd.engine.law import AUTO
from steadytd.engine.learner import Learner
from steadytd.mdp.cached import cached
from steadytd.mdp.moments import Expectation
from steadytd.mdp.problem import Problem
from steadytd.mdp.scales import same
from steadytd.theory import dynamics
from steadytd.theory.closed_form import numbers_of
from steadytd.theory.cure import ENOUGH, Cure, Setting
from steadytd.theory.exact import mean_square
from steadytd.theory.thresholds import Pencil
from steadytd.theory.variance import noise, variance

PROBE = 0.7  # the value at which a law's own matrix is compared with A_lam + eta G
OPEN = 1e-6  # share of the range by which an end without a closed form is avoided
RATIOS = 2.0 ** np.arange(-6, 11)
LARGE_RANK = 60  # from here on only every fourth ratio is tried: eigenvalues take their time


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


def penalty(problem: Problem, learner: Learner, policy: int = 0) -> Cure:
    """The penalty of a learner as a cure; its own eta and alpha do not matter."""
    plain = learner.replace(alpha=1.0) if "alpha" in learner.values else learner
    return _family(problem, plain.replace(eta=1.0), "eta", policy)


def law_cure(problem: Problem, learner: Learner, name: str, policy: int = 0) -> Cure:
    """One hyper-parameter of a learner as a cure, with the noise and variance of its runs.

    Its own value of it does not matter.
    """
    param = learner.algorithm.params[name]
    inside = min(param.low + 1.0, (param.low + param.high) / 2.0)
    family = _family(problem, learner.replace(**{name: inside}), name, policy)

    def with_value(value: float | str) -> Learner:
        return learner.replace(**{name: value})

    def chosen() -> float:
        return float(resolve(problem, with_value(AUTO), policy)[name])

    def finite(value: float) -> bool:
        return variance(problem, with_value(value), policy).finite

    def own_noise(value: float) -> float | None:
        return noise(problem, with_value(value), policy)

    at_value = with_value(inside)
    carries = at_value.traced or bool(at_value.law.memory)
    return replace(
        family, chosen=chosen if param.auto else None,
        finite=finite if carries else None, own_noise=own_noise if carries else None,
        second_moments=lambda value: mean_square(problem, with_value(value), policy),
    )  # fmt: skip


@cached(64)
def _family(problem: Problem, learner: Learner, name: str, policy: int) -> Cure:
    """The mean updates of a learner for every value of one hyper-parameter: the law's closed form.

    That of a penalty is A_lam + eta G, whose crossings are known, unless the traces are scaled.
    """
    law, setting = learner.law, Setting.of(problem, policy)
    m, param, numbers = setting.m, learner.algorithm.params[name], numbers_of(learner)
    sizes = None if m.compact is None else np.tile(m.span.sizes, len(law.vectors))

    def system(value: float) -> Expectation:
        e = dynamics.reduced_form(law, m, {**numbers, name: value})
        return e if sizes is None else Expectation(e.M / np.outer(sizes, sizes), e.g / sizes)

    high = param.high
    try:
        system(min(high, 1e6))
    except InputError:
        high -= OPEN * (high - param.low)
    pencil = Pencil.of(m, float(learner[law.trace_param]) if learner.traced else 0.0)
    penalised = name == "eta" and (law.block is not None or _adds_penalty(system(PROBE), pencil))
    fixed = [law.trace_param, learner.algorithm.variant_param] if learner.traced else []
    return Cure(
        name=learner.name, amount=name, setting=setting, low=param.low, high=high,
        open_below=param.above, whole=param.whole, sizes=sizes,
        system=(lambda eta: Expectation(pencil.A(eta), pencil.b)) if penalised else system,
        pencil=pencil if penalised else None,
        settings={k: learner[k] for k in fixed if k and k != name},
        learner=lambda value: learner.replace(**{name: value}),
    )  # fmt: skip


def _adds_penalty(seen: Expectation, pencil: Pencil) -> bool:
    """Whether M(eta) is the pencil's A_0 + eta G and g its b, seen at one penalty."""
    return same(seen.M, pencil.A(PROBE)) and same(seen.g, pencil.b)


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

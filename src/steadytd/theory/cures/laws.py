"""The cures that registered laws declare: a hyper-parameter marked `cure`.

The mean update is the law's own closed form at every amount. A law with variants (penalties inside
or outside the trace) has them once more with traces, at lam = 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from steadytd.base.errors import InputError
from steadytd.engine.law import AUTO, Law, Value
from steadytd.engine.learner import Learner
from steadytd.learners import algorithm, names
from steadytd.learners import learner as make_learner
from steadytd.mdp.moments import Expectation
from steadytd.theory.choose import resolve
from steadytd.theory.closed_form import closed_form, has_closed_form
from steadytd.theory.cures.cure import Cure, Setting
from steadytd.theory.variance import noise, variance

TRACE = 0.5  # the trace decay at which variants are compared
OPEN = 1e-6  # share of the range by which an end without a closed form is avoided


def law_cures(setting: Setting) -> Iterator[Cure]:
    """Every cure that a registered law declares, and its variants with traces."""
    for law in map(algorithm, names()):
        if law.action_values or law.block is not None or not has_closed_form(law):
            continue
        for name in (name for name, param in law.params.items() if param.cure):
            yield law_cure(setting, law, name, {})
            for word in law.variants:
                traced: dict[str, Value] = {law.trace_param: TRACE, law.variant_param: word}
                yield law_cure(setting, law, name, traced)


def law_cure(setting: Setting, law: Law, name: str, settings: Mapping[str, Value]) -> Cure:
    """One hyper-parameter of a law as a cure, the others as given or by default."""
    param, problem, policy = law.params[name], setting.problem, setting.policy

    def learner(amount: float | str) -> Learner:
        return make_learner(law, alpha=1.0, **settings, **{name: amount})

    base = learner(min(param.low + 1.0, (param.low + param.high) / 2.0))
    numbers = {k: v for k, v in base.values.items() if not isinstance(v, str)}

    def system(amount: float) -> Expectation:
        e = closed_form(base.law, setting.m, {**numbers, name: amount})
        return Expectation(M=setting.within(e.M), g=setting.within(e.g))

    def finite(amount: float) -> bool:
        return variance(problem, learner(amount), policy).finite

    def weights(amount: float) -> float | None:
        return noise(problem, learner(amount), policy)

    carries = base.traced or bool(base.law.memory)
    auto = None
    if param.auto:
        auto = float(resolve(problem, learner(AUTO), policy)[name])
    high = param.high
    try:
        system(min(high, 1e6))
    except InputError:
        high -= OPEN * (high - param.low)
    return Cure(
        name=law.name, amount=name, setting=setting, system=system, low=param.low, high=high,
        open_below=param.above, whole=param.whole, settings=settings, chosen=auto,
        learner=learner, finite=finite if carries else None, noise=weights if carries else None,
    )  # fmt: skip

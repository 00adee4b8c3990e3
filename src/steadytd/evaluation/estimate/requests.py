"""The learners that an evaluation is asked for, and what of each can be solved from the sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from steadytd.base.errors import InputError, unknown
from steadytd.engine.law import AUTO, Law
from steadytd.engine.learner import Learner, parse_params
from steadytd.evaluation.collect.plan import TD, System
from steadytd.evaluation.estimate.baselines import CORRECTED, DEFAULT, NAMED, REFERENCE, RENAMED
from steadytd.evaluation.estimate.by_action import BY_ACTION, parsed
from steadytd.evaluation.estimate.closed_form import FixedPoint, fixed_point
from steadytd.evaluation.estimate.estimators import Form
from steadytd.learners import EVALUATED, algorithm, names

CHOSEN = ("eta", "ratio")  # that the data can choose
Kind = Literal["solved", "online", "sampling", "action"]


@dataclass(frozen=True)
class Request:
    """One learner as asked for. `fixed_point` is its equations, where the sums give them."""

    name: str
    kind: Kind
    label: str = ""  # as asked for
    learner: Learner | None = None
    fixed_point: FixedPoint | None = None
    auto_alpha: bool = False
    form: Form | None = None  # of an estimator that is no learner
    lam: float | None = None  # of an estimator of kind "action" that has one

    @property
    def automatic(self) -> list[str]:
        """The hyper-parameters that the data are to choose, beside alpha."""
        return self.learner.automatic if self.learner is not None else []

    @property
    def system(self) -> System | None:
        """The system of the fixed point."""
        return None if self.fixed_point is None else self.fixed_point.system

    @property
    def penalty(self) -> str:
        """The parameter that is eta in the equations of the fixed point; "" if there is none."""
        return "" if self.fixed_point is None else self.fixed_point.penalty


def requests(asked: Sequence[str | Law | Learner] | str | None) -> list[Request]:
    """The learners asked for, checked; the usual ones for None."""
    usual = (*EVALUATED, *DEFAULT)
    listed = [asked] if isinstance(asked, str) else list(usual if asked is None else asked)
    if not listed:
        raise InputError("give at least one learner, for instance 'lstd'.")
    made = [_request(one) for one in listed]
    labels = [one.label for one in made]
    for i, text in enumerate(labels):
        if text in labels[:i]:
            raise InputError(f"learner '{text}' is given twice; leave one out.")
    return made


def with_drl(asked: list[Request]) -> list[Request]:
    """Plain `drl` is always there: it is what the decision rests on."""
    there = any(one.label == CORRECTED.name for one in asked)
    return asked if there else [*asked, _estimator(CORRECTED.name)]


def _request(asked: str | Law | Learner) -> Request:
    by_action = parsed(asked) if isinstance(asked, str) else None
    if by_action is not None:
        return Request(by_action[0], "action", "".join(str(asked).split()), lam=by_action[1])
    auto_alpha = False
    text = "".join(asked.split()) if isinstance(asked, str) else asked.name
    if isinstance(asked, str) and text.partition(":")[0] in (*NAMED, *RENAMED):
        return _estimator(text)
    if isinstance(asked, Learner):
        learner, text = asked, str(asked)
    else:
        law, params = _parsed(asked)
        auto_alpha = "alpha" in law.all_params and "alpha" not in params
        for name, param in law.all_params.items():
            if name not in params and param.auto:
                params[name] = AUTO
        if auto_alpha:
            params["alpha"] = "1"
        learner = Learner(law, params)
    if learner.law.action_values:
        raise InputError(
            f"{learner.name} learns action values step by step, which a log cannot follow; use "
            "tdc, or lstdq for values of actions."
        )
    found = fixed_point(learner)
    for name in learner.automatic:
        if name not in (*CHOSEN, found.penalty if found else ""):
            raise InputError(
                f"{learner.name}: a log can choose {' and '.join(CHOSEN)}, not {name}; give {name} "
                "a number."
            )
    solved = learner.law.block is not None and found is not None
    reference = solved and found == FixedPoint(TD)
    taken = (*NAMED, *RENAMED, *BY_ACTION)
    if text in taken or (text == REFERENCE.name and not reference):
        raise InputError(
            f"a law of your own cannot be named {text}: an evaluation has an estimator of that "
            "name; rename the law."
        )
    return Request(learner.name, "solved" if solved else "online", text, learner, found, auto_alpha)


def _estimator(text: str) -> Request:
    """An estimator of the evaluation itself; only `drl` has a number, its lam."""
    name, _, rest = text.partition(":")
    if name in RENAMED:
        raise InputError(
            f"{name} is now {RENAMED[name]}; plain drl chooses lam from the data. Ask for one of "
            "the two."
        )
    form, given = NAMED[name].form, parse_params(name, rest)
    for param in given:
        if param != "lam" or form.kind != "drl":
            raise InputError(f"{name} has no parameter '{param}'; only drl has one, lam.")
    if given:
        form = form._replace(lam=_lam(given["lam"]))
        text = f"{name}:lam={form.lam:g}"
    return Request(name, "sampling", text, form=form)


def _lam(written: object) -> float:
    try:
        lam = float(str(written))
    except ValueError:
        lam = float("nan")
    if not 0.0 <= lam <= 1.0:
        raise InputError(f"drl: lam must be a number from 0 to 1, got {written}.")
    return lam


def _parsed(asked: str | Law) -> tuple[Law, dict[str, object]]:
    if isinstance(asked, Law):
        return asked, {}
    name, _, rest = asked.partition(":")
    if name.strip() not in names():
        raise unknown("learner", name.strip(), [*names(), *NAMED, *BY_ACTION])
    return algorithm(name.strip()), dict(parse_params(name.strip(), rest))

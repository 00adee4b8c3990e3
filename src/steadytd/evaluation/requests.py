"""The learners that an evaluation is asked for, and what of each can be solved from the sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from steadytd.base.errors import InputError
from steadytd.engine.law import AUTO, Law
from steadytd.engine.learner import Learner
from steadytd.engine.settings import parse_params
from steadytd.evaluation.closed_form import FixedPoint, fixed_point
from steadytd.evaluation.estimators import (
    DEFAULT,
    RENAMED,
    ActionEstimator,
    Drl,
    Estimator,
    Solved,
    named,
    registered,
)
from steadytd.evaluation.sums import TD, System
from steadytd.learners import EVALUATED, law_of, written

CHOSEN = ("eta", "ratio")  # that the data can choose
Kind = Literal["solved", "online", "sampling", "action"]


@dataclass(frozen=True)
class Request:
    """One learner as asked for. `fixed_point` is its equations, where the sums give them.

    `estimator` is there where it is an estimator of the evaluation itself.
    """

    name: str
    kind: Kind
    label: str = ""  # as asked for
    learner: Learner | None = None
    fixed_point: FixedPoint | None = None
    auto_alpha: bool = False
    estimator: Estimator | None = None

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
    several = isinstance(asked, Iterable) and not isinstance(asked, Mapping)
    if asked is not None and not (
        several and all(isinstance(one, str | Law | Learner) for one in asked)
    ):
        raise InputError(f"learners must be names or learners, in a list, got {asked!r}.")
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
    asks = any(one.label == Drl.name for one in asked)
    return asked if asks else [*asked, _request(Drl.name)]


def _request(asked: str | Law | Learner) -> Request:
    text = "".join(asked.split()) if isinstance(asked, str) else asked.name
    estimator = named(text) if isinstance(asked, str) else None
    if estimator is not None:
        kind: Kind = "action" if isinstance(estimator, ActionEstimator) else "sampling"
        label = estimator.label if kind == "sampling" else text
        return Request(estimator.name, kind, label, estimator=estimator)
    auto_alpha = False
    if isinstance(asked, Learner):
        learner, text = asked, str(asked)
    else:
        law = asked if isinstance(asked, Law) else law_of(asked, registered())
        settings = "" if isinstance(asked, Law) else "".join(written(asked).settings.split())
        params: dict[str, object] = dict(parse_params(law.name, settings))
        text = f"{law.name}:{settings}".rstrip(":")
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
    if learner.law.average_reward:
        raise InputError(
            f"{learner.name} learns the average reward step by step, which a log does not follow; "
            "leave it out: average_reward=True estimates the reward per step."
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
    taken = (*registered(), *RENAMED)
    if text in taken or (text == Solved.name and not reference):
        raise InputError(
            f"a law of your own cannot be named {text}: an evaluation has an estimator of that "
            "name; rename the law."
        )
    return Request(learner.name, "solved" if solved else "online", text, learner, found, auto_alpha)

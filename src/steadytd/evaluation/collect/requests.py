"""The learners that an evaluation is asked for, and what of each can be solved from the sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from steadytd.base.errors import InputError, unknown
from steadytd.engine.law import AUTO, Law
from steadytd.engine.learner import Learner, parse_params
from steadytd.evaluation.collect.plan import System
from steadytd.learners import algorithm, names

SAMPLING = {
    "pdis": "per-decision importance sampling",
    "snpdis": "self-normalised per-decision importance sampling",
    "dr": "doubly robust: LSTD's values, corrected by per-decision importance sampling",
}
DEFAULT = (
    "perturbed_lstd", "lstd", "perturbed_td", "tdc", "etd", "pdis", "snpdis", "dr",
)  # fmt: skip
TD_FIXED_POINT = {"td", "gtd", "gtd2", "tdc", "tdrc", "htd", "pgtd2", "lstd"}
UNTRACED_TD = {"vtrace", "tree_backup"}  # the same as td at lam = 0
EMPHATIC = {"etd", "etd_beta", "lsetd"}
PENALISED = {"perturbed_td", "perturbed_lstd"}

Kind = Literal["solved", "online", "sampling"]


@dataclass(frozen=True)
class Request:
    """One learner as asked for. `system` is that of its fixed point, where the sums give it."""

    name: str
    kind: Kind
    label: str = ""  # as asked for
    learner: Learner | None = None
    system: System | None = None
    auto_alpha: bool = False

    @property
    def automatic(self) -> list[str]:
        """The hyper-parameters that the data are to choose, beside alpha."""
        return self.learner.automatic if self.learner is not None else []

    @property
    def penalised(self) -> bool:
        """Whether the fixed point depends on eta."""
        return self.name in PENALISED


def requests(asked: Sequence[str | Law | Learner] | str | None) -> list[Request]:
    """The learners asked for, checked; the default ones for None."""
    listed = [asked] if isinstance(asked, str) else list(DEFAULT if asked is None else asked)
    if not listed:
        raise InputError("give at least one learner, for instance 'lstd'.")
    made = [_request(one) for one in listed]
    labels = [one.label for one in made]
    for i, text in enumerate(labels):
        if text in labels[:i]:
            raise InputError(f"learner '{text}' is given twice; leave one out.")
    return made


def _request(asked: str | Law | Learner) -> Request:
    if isinstance(asked, str) and asked.strip() in SAMPLING:
        return Request(asked.strip(), "sampling", asked.strip())
    auto_alpha = False
    text = "".join(asked.split()) if isinstance(asked, str) else asked.name
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
            f"{learner.name} values pairs of state and action, a log is evaluated by state values; "
            "use tdc instead."
        )
    kind: Kind = "solved" if learner.law.block is not None else "online"
    return Request(learner.name, kind, text, learner, system_of(learner), auto_alpha)


def _parsed(asked: str | Law) -> tuple[Law, dict[str, object]]:
    if isinstance(asked, Law):
        return asked, {}
    name, _, rest = asked.partition(":")
    if name.strip() not in names():
        raise unknown("learner", name.strip(), [*names(), *SAMPLING])
    return algorithm(name.strip()), dict(parse_params(name.strip(), rest))


def system_of(learner: Learner) -> System | None:
    """The system that the learner's fixed point solves, or None where the sums do not hold it."""
    name, values = learner.name, learner.values
    lam = float(values.get("lam", 0.0))
    if name in TD_FIXED_POINT:
        return System(lam)
    if name in UNTRACED_TD and lam == 0.0:
        return System()
    if name in EMPHATIC:
        beta = values.get("beta", "gamma")
        return System(lam, True, None if beta == "gamma" else float(beta))
    outside = values.get("penalty") == "outside" or name == "perturbed_lstd"
    if name in PENALISED and (lam == 0.0 or outside):
        return System(lam)
    return None

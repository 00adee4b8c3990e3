"""The result of an evaluation: values, what they rest on, and value functions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from steadytd.base.display import Displayable
from steadytd.base.errors import InputError, unknown, visible
from steadytd.base.finding import Finding
from steadytd.base.json import plain
from steadytd.base.numbers import count, number
from steadytd.evaluation.calibration import LogCalibration
from steadytd.evaluation.decide import (
    BestTarget,
    Decision,
    LoggedValue,
    Side,
    best,
    compared,
)
from steadytd.evaluation.facts import LogFacts, independent, rare_probability
from steadytd.evaluation.gate import Gate, Requirement
from steadytd.evaluation.next_log import LogNext
from steadytd.evaluation.quantiles import Spreads
from steadytd.evaluation.records import load_record, save_record
from steadytd.evaluation.rule import LoggedReturns
from steadytd.evaluation.segments import Segments
from steadytd.evaluation.sensitivity import Sensitivity
from steadytd.evaluation.value_function import ValueFunction
from steadytd.evaluation.values import SELECTED, TargetValues
from steadytd.evaluation.visits import Visits
from steadytd.features import FeatureMap
from steadytd.logs.rewards import reward_name

if TYPE_CHECKING:
    import polars as pl

NAMED = 3  # targets that the short form names


@dataclass(frozen=True)
class Recommendation:
    """The learner to use for a target, its value, and why.

    `warnings` are the codes of those that concern it; it is `trusted` if there are none.
    """

    target: str
    learner: str
    value: float
    lo: float
    hi: float
    reason: str
    trusted: bool
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "warnings": list(self.warnings)}


def recommend(values: TargetValues, found: list[Finding]) -> Recommendation:
    """`drl` as the rule selects it; where it has no value, the first learner that has one."""
    s, chosen = values.selection, SELECTED
    reason = f"of all supported lam, {s.lam:g} has the shortest interval"
    if not s.supported:
        reason = f"no lam has enough sample support; the value shown is that of lam = {s.lam:g}"
    if not np.isfinite(s.value):
        usable = [v.learner for v in values.values if np.isfinite([v.value, v.lo, v.hi]).all()]
        chosen = next(iter(usable), SELECTED)
        reason = f"{SELECTED} has no value"
    row = values.row(chosen)
    codes = tuple(dict.fromkeys(f.code for f in found if f.level == "warning"))
    return Recommendation(
        values.name, chosen, row.value, row.lo, row.hi, reason, not codes, codes
    )  # fmt: skip


@dataclass(frozen=True)
class RareOutcome:
    """An outcome of this `probability` per episode is missing in one of twenty such logs.

    If it changed the return by `change`, the difference to the logged policy would be 0. Both are
    NaN where units are stretches of rows. `stated` outcomes are within the intervals.
    """

    target: str
    probability: float
    change: float
    stated: bool

    @property
    def text(self) -> str:
        """The same as a sentence."""
        if self.stated:
            return "Intervals include rare outcomes within the stated reward range."
        if math.isnan(self.probability):
            return "No interval covers rewards outside the range seen in the log."
        return (
            f"An outcome with probability {number(self.probability, 2)} may be missing; if it "
            f"changed the return by {number(self.change, 2)}, the difference would vanish."
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "text": self.text}


@dataclass(frozen=True, repr=False)
class Evaluation(Displayable):
    """What every target policy is worth, by every learner asked for, and how far to trust it.

    `values`, `overlap`, `stability`, `path`, `visits`, `agreement` and `histogram` are frames;
    `warnings` a list of findings; `recommended` a dictionary from target to recommendation;
    `behavior` is what the policy that made the log is worth: value, lo, hi.
    """

    __kept__ = ("path_rows",)  # in a file, which cannot hold the function

    log: LogFacts
    features: FeatureMap
    results: tuple[TargetValues, ...]
    warnings: list[Finding]
    recommended: dict[str, Recommendation]
    behavior: LoggedValue
    sides: list[Side]
    data: LoggedReturns
    paths: Callable[[], list[dict[str, Any]]] | None
    histogram_rows: list[dict[str, Any]]
    settings: dict[str, Any]
    calibration: LogCalibration
    turning: list[Sensitivity]  # of every target, as the next two
    spreads: list[Spreads]
    places: Visits | None = None
    advice: list[LogNext] = field(default_factory=list)
    reward: str = ""  # which of several this is
    others: Mapping[str, Evaluation] = field(default_factory=dict)  # of the other rewards
    segments: Segments | None = None

    def __repr__(self) -> str:
        said = ", ".join(f"{d.target} {d.decision if d.trusted else 'not trusted'}"
                         for d in self.decisions[:NAMED])  # fmt: skip
        more = f" and {len(self.targets) - NAMED} more" if len(self.targets) > NAMED else ""
        log = f"{count(self.log.rows, 'row')}, {count(self.log.episodes, 'episode')}"
        return visible(f"<evaluation of {said}{more}; {log}>")

    @property
    def judged(self) -> tuple[TargetValues, ...]:
        """The old name of `results`."""
        warnings.warn("e.judged is now e.results", DeprecationWarning, stacklevel=2)
        return self.results

    @property
    def rewards(self) -> dict[str, Evaluation]:
        """The evaluation of every reward that was asked for, this one first."""
        return {self.reward: self, **self.others} if self.reward else {}

    @property
    def reward_name(self) -> str:
        """How a sentence names the reward: `-churn` is minus the column churn."""
        return reward_name(self.reward, self.settings.get("reward") or {})

    @property
    def targets(self) -> list[str]:
        """The target policies' names."""
        return [j.name for j in self.results]

    @cached_property
    def values(self) -> pl.DataFrame:
        """target, learner, value, lo, hi, stable, eta, kind, alpha, ratio, ... of each learner."""
        floats = dict.fromkeys(("eta", "alpha", "ratio", "fixed_point", "lam"), float)
        return _frame([v.to_dict() for v in self._rows()], diverged=int, stable=bool, **floats)

    def _rows(self) -> list[Any]:
        return [
            replace(v, recommended=self.recommended[j.name].learner == v.learner)
            for j in self.results
            for v in j.values
        ]

    @cached_property
    def overlap(self) -> pl.DataFrame:
        """One row per target; see `Overlap`."""
        return _frame([j.overlap.to_dict() for j in self.results])

    @cached_property
    def histogram(self) -> pl.DataFrame:
        """Rows of the log by ratio: target, lo, hi, rows."""
        return _frame(self.histogram_rows)

    @cached_property
    def stability(self) -> pl.DataFrame:
        """One row per target, none of rewards per step; see `Stability`."""
        return _frame(self._stabilities, td_stable_share=float)

    @property
    def _stabilities(self) -> list[dict[str, Any]]:
        return [] if self.log.average else [j.stability.to_dict() for j in self.results]

    @cached_property
    def path(self) -> pl.DataFrame:
        """The value over eta: target, eta, value, stable."""
        return _frame(self.path_rows, stable=bool)

    @cached_property
    def path_rows(self) -> list[dict[str, Any]]:
        """The same as rows."""
        return [] if self.paths is None else self.paths()

    @cached_property
    def visits(self) -> pl.DataFrame:
        """Shares of discounted visits by place: target, state (or x, y), log, visits."""
        rows = [] if self.places is None else self.places.rows()
        return _frame(rows, target=str, state=str, x=float, y=float, log=float, visits=float)

    @cached_property
    def agreement(self) -> pl.DataFrame:
        """Differences of learners: target, learner, other, difference, lo, hi, agree."""
        rows = [d.to_dict() for j in self.results for d in j.differences]
        floats = dict.fromkeys(("difference", "lo", "hi", "stderr"), float)
        return _frame(rows, target=str, learner=str, other=str, **floats, agree=bool)

    @overload
    def compare(self, target: str, other: str | None = None) -> Decision: ...

    @overload
    def compare(self, target: None = None) -> dict[str, Decision]: ...

    def compare(
        self, target: str | None = None, other: str | None = None
    ) -> Decision | dict[str, Decision]:
        """Is the target better than the policy that made the log, or than `other`? See `Decision`.

        Without a name: all targets, with simultaneous intervals (Bonferroni: each has the level
        1 - 0.05 / number of targets).
        """
        if target is not None:
            against = None if other is None else self.sides[self.place(other)]
            return compared(self.sides[self.place(target)], against, self.data)
        many = len(self.sides)
        return {side.name: compared(side, None, self.data, many) for side in self.sides}

    def require(self, what: str, margin: float = 0.0) -> Gate:
        """Is a requirement met, such as "better:new" or "not-worse:new" with a margin?"""
        required = Requirement.of(what, margin)
        return required.judge(self.compare(required.target))

    @cached_property
    def best(self) -> BestTarget:
        """The best trusted target, if that can be told: all pairs compared at once (Bonferroni)."""
        return best(self.sides, self.data)

    @cached_property
    def decisions(self) -> list[Decision]:
        """Every target against the policy that made the log, each by itself."""
        return [compared(side, None, self.data) for side in self.sides]

    def log_next(self, target: str) -> LogNext:
        """What to log next to decide about a target: which exploration, how many episodes."""
        return self.advice[self.place(target)]

    def sensitivity(self, target: str) -> Sensitivity:
        """How wrong the ratios would have to be before target and behaviour change places."""
        return self.turning[self.place(target)]

    def unseen(self, target: str) -> RareOutcome:
        """How rare an outcome is that the log may miss, and how large it would have to be."""
        probability = rare_probability(self.results[self.place(target)].selection, self.log)
        change = abs(self.compare(target).difference) / probability
        return RareOutcome(target, probability, change, self.log.stated is not None)

    def quantiles(self, target: str) -> pl.DataFrame:
        """Of the target's return: what ("quantile" or "cvar"), level, value, lo, hi.

        No rows where too few whole episodes are like the target's; `to_dict` has the reason.
        """
        rows = [row._asdict() for row in self.spreads[self.place(target)].rows]
        return _frame(rows, what=str, level=float, value=float, lo=float, hi=float)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {j.name: i for i, j in enumerate(self.results)}

    def place(self, target: str) -> int:
        """Where a target stands in `targets`, `results` and `sides`."""
        if target not in self._places:
            raise unknown("target", target, self.targets)
        return self._places[target]

    @property
    def features_reason(self) -> str:
        """Which features were used, and why."""
        return str(self.settings["features_reason"])

    @property
    def feature_names(self) -> list[str]:
        """What the features are called; by the columns where these were named (`obs=`)."""
        obs = self.log.obs_names or [f"obs_{i}" for i in range(self.features.n_obs)]
        return self.features.names(obs)

    @property
    def assumptions(self) -> list[str]:
        """What no log can show, and the answer takes for granted."""
        found = [
            f"{independent(self.log)} are independent",
            self._learned,
            "no unobserved variable affected both actions and rewards",
            "the environment does not change",
            "no episode is missing because of how it went",
        ]
        if self.log.average:
            found.append("in the long run it does not matter where a policy starts")
        if self.log.assumed.get("fixed_end"):
            found.append(f"episodes end after {self.log.longest} steps")
        return found

    @property
    def _learned(self) -> str:
        """What is taken for granted of how the targets came about."""
        folds = self.log.learned_folds
        if folds:
            return f"{folds} policies count, each learned without the units it is evaluated on"
        if self.settings.get("learned_on"):
            return "targets were learned from the stated data, which share no unit with this log"
        return "no target was learned from this log"

    @property
    def notes(self) -> list[str]:
        """What values and intervals mean."""
        f = self.log
        states = "all logged states" if f.continuing else "the first states of the logged episodes"
        found = [
            f"A value is the expected discounted return of the target policy from {states}.",
            "The interval of drl adds sampling error, bias of the features and truncation.",
            "Intervals of all other learners cover sampling error alone.",
            "The interval of an online learner is that of its fixed point on this log.",
        ]
        if f.average:
            found = [
                "A value is the reward per step of the target policy in the long run.",
                "Its interval adds sampling error and bias of the features.",
            ]
        found.append(f"Features: {self.features_reason}; {self._checked}.")
        if f.stated is not None:
            found.append("Intervals include rare outcomes within the stated range of rewards.")
        return found

    @property
    def _checked(self) -> str:
        """What checks the features."""
        second = self.settings["second_features"]
        return f"checked by {second}" if second else "of one step, so they do not bias drl"

    def value_function(self, target: str, learner: str | None = None) -> ValueFunction:
        """The value function of a target, by a learner (default: the recommended or lstd-like one).

        Importance sampling has no value function; where it is recommended, that of the solved
        learner which `drl` corrects is given.
        """
        found = self.results[self.place(target)]
        name = learner or self.recommended[target].learner
        if learner is None and name not in found.weights:
            name = next(iter([*found.solved, *found.weights]), name)
        if name not in found.weights:
            if any(v.learner == name for v in found.values):
                raise InputError(
                    f"{name} gives a value, not a value function; use one of: "
                    f"{', '.join(found.weights) or 'none was requested'}."
                )
            raise unknown("learner of this evaluation", name, list(found.weights))
        if not np.isfinite(found.weights[name]).all():
            raise InputError(f"{name} has overflowed for {target} and has no value function.")
        return ValueFunction(target, name, found.weights[name], self.features)

    def save(self, path: str | Path) -> Path:
        """Write the evaluation to a NumPy archive; `steadytd.load_evaluation` reads it back."""
        return save_record(Path(path), self)

    @property
    def summary(self) -> dict[str, Any]:
        """The answer without what it rests on, for JSON."""
        return {
            "decisions": [d.to_dict() for d in self.decisions],
            "behavior": self.behavior._asdict(),
            "recommended": [r.to_dict() for r in self.recommended.values()],
            "segments": None if self.segments is None else self.segments.to_dict(),
            "warnings": [w.to_dict() for w in self.warnings],
        }

    def to_dict(self) -> dict[str, Any]:
        """For JSON: numbers that are not finite become null."""
        document = {
            **self.summary,
            "best": vars(self.best),
            "values": [v.to_dict() for v in self._rows()],
            "overlap": [j.overlap.to_dict() for j in self.results],
            "stability": self._stabilities,
            "agreement": [d.to_dict() for j in self.results for d in j.differences],
            "path": self.path_rows,
            "visits": None if self.places is None else self.places.to_dict(),
            "calibration": self.calibration.to_dict(),
            "sensitivity": [s.to_dict() for s in self.turning],
            "unseen": [self.unseen(name).to_dict() for name in self.targets],
            "assumptions": self.assumptions,
            "log_next": [one.to_dict() for one in self.advice],
            "quantiles": [
                {**s._asdict(), "rows": [row._asdict() for row in s.rows]} for s in self.spreads
            ],
            "reward": self.reward_name or None,
            "other_rewards": {name: e.summary for name, e in self.others.items()},
            "notes": self.notes,
            "log": vars(self.log),
            "settings": self.settings,
        }
        cleaned: dict[str, Any] = plain(document)
        return cleaned


def load_evaluation(path: str | Path) -> Evaluation:
    """Read an evaluation that `Evaluation.save` wrote."""
    found = load_record(Path(path), "evaluation")
    if not isinstance(found, Evaluation):
        raise InputError(f"'{path}' is not a saved evaluation (it holds a {type(found).__name__}).")
    return found


def _frame(rows: list[dict[str, Any]], **types: Any) -> pl.DataFrame:
    """Rows as a frame; `types` of columns in which values may be missing, or of all columns."""
    import polars as pl

    if not rows:
        return pl.DataFrame(schema=types)
    return pl.DataFrame(rows, infer_schema_length=None, schema_overrides=types)

"""A learner, and what it is on a live stream: the compiled loop of a run, one step at a time.

`Learner` is a law with its hyper-parameters filled in, `OnlineLearner` a running one. `LiveBlock`
is what that is made of, and each part of a Horde with a law that needs it.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadytd.base.arrays import Floats
from steadytd.base.display import Displayable, InNotebooks
from steadytd.base.errors import InputError
from steadytd.base.files import write_arrays
from steadytd.base.numbers import count, whole
from steadytd.base.parallel import in_turn
from steadytd.engine.active import make_block
from steadytd.engine.block import Block, Transitions
from steadytd.engine.facts import GAMMA, STEP_FACTS, fact_table, number, numbers
from steadytd.engine.rows import Rows, sparse_rows
from steadytd.engine.schedule import step_factors
from steadytd.engine.settings import Settings

EVENT = np.zeros(1, dtype=np.int32)
ROW, ROW_NEXT = np.array([0], dtype=np.int32), np.array([1], dtype=np.int32)
REWARD, GAMMA_NEXT = STEP_FACTS.index("reward"), STEP_FACTS.index("gamma_next")


class LiveBlock:
    """Learners that may share a block, on a live stream; the bits are those of a run."""

    def __init__(self, learners: Sequence[Settings], w0: Floats) -> None:
        self.block = make_block(learners, w0)

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name."""
        return self.block.saved

    def take(self, rows: Rows, facts: Floats) -> Floats:
        """Take one step from row 0 to row 1; return each learner's TD error, with old weights."""
        before, after = (_value(rows, row, self.block.entries_at) for row in (0, 1))
        with np.errstate(all="ignore"):  # a diverged learner says so in `diverged`
            delta = facts[0, REWARD] + facts[0, GAMMA_NEXT] * after - before
        factor = step_factors(self.block.step, 1, *self.block.learners[0].schedule)
        self.block.advance(EVENT, factor, Transitions(ROW, ROW_NEXT, facts), rows)
        return np.asarray(delta)

    def cut(self) -> None:
        """The episode was cut off after the last step: the next one begins another.

        It sees what it would see after a discount of 0: nothing of the old episode is in its
        traces.
        """
        self.block.cut()

    def restore(self, state: dict[str, NDArray[Any]], step: int, of: str) -> None:
        """Take over a saved state, whose arrays must have the shapes of this block's own."""
        own = self.state
        for name, array in own.items():
            if name not in state or state[name].shape != array.shape:
                raise InputError(f"the saved learner's '{name}' does not fit {of}.")
            if state[name].dtype.kind not in "biuf":
                raise InputError(
                    f"the saved learner's '{name}' must hold numbers, got {state[name].dtype}."
                )
        whole("the saved learner's number of steps", step, 0)
        gone = state["diverged"] >= 0
        if not gone.any() and not np.isfinite(state["V"]).all():
            raise InputError(
                "the saved learner has weights that are not finite, but is not marked as diverged; "
                "save it again, or start a new learner."
            )
        finite = {"diverged": state["diverged"]}
        if "carry" in own and not gone.any():  # what else is carried is not known to every learner
            finite["carry"] = state["carry"][GAMMA]
        for name, values in finite.items():
            if not np.isfinite(values).all():
                raise InputError(f"the saved learner's '{name}' must hold finite numbers.")
        for name, array in own.items():
            array[...] = state[name]
        self.block.resume(step)


def _value(rows: Rows, row: int, entries_at: Any) -> Floats:
    """w.x of one row, for every learner."""
    part = slice(rows.first[row], rows.first[row] + rows.length[row])
    with np.errstate(all="ignore"):
        return np.asarray(rows.value[part] @ entries_at(rows.feature[part]))


class OnlineLearner(Displayable):
    """A running learner. Feed it transitions with `update`, ask it with `predict`.

    An episode ends with a transition of discount 0, or with `end_episode` where it was cut off.
    Threads may share it: a call waits for that of another thread to end.

    >>> import steadytd as st
    >>> a = st.learner("td", alpha=0.5).start(n_features=2)
    >>> a.update([1, 0], reward=1.0, x_next=[0, 1], rho=1.0, gamma=0.9)
    1.0
    >>> a.predict([1, 0])
    0.5
    """

    def __init__(self, learner: Settings, n_features: int, w0: ArrayLike | None = None) -> None:
        learner.require_numbers("a live stream")
        self.learner, self.turn = learner, threading.RLock()
        self.n_features = whole("n_features", n_features, 1)
        start = np.zeros(self.n_features) if w0 is None else self._vector("w0", w0)
        self._live = LiveBlock([learner], start)

    def __repr__(self) -> str:
        size = f"{count(self.n_features, 'feature')}, {count(self.step, 'update')}"
        return f"<online learner {self.learner}: {size}{', overflowed' if self.diverged else ''}>"

    @property
    def block(self) -> Block:
        """The state behind this learner: a block with one lane."""
        return self._live.block

    @property
    @in_turn
    def w(self) -> Floats:
        """The weights of the value function (a copy)."""
        weights: Floats = self.block.reported[:, 0].copy()
        return weights

    @property
    @in_turn
    def scalars(self) -> dict[str, float]:
        """The numbers that are learned beside the weights, such as a reward rate, by name."""
        return {name: float(self.block.memory(name)[0]) for name in self.learner.law.scalars}

    @property
    def step(self) -> int:
        """How many updates were made."""
        return self.block.step

    @property
    def diverged(self) -> bool:
        """Whether a weight has left the finite range."""
        return bool(self.block.diverged[0] >= 0)

    @in_turn
    def predict(self, x: ArrayLike) -> float:
        """The value estimate w.x of the observation with features x."""
        with np.errstate(all="ignore"):  # a diverged learner says so in `diverged`
            return float(self._vector("x", x) @ self.block.reported[:, 0])

    @in_turn
    def update(
        self,
        x: ArrayLike,
        reward: float,
        x_next: ArrayLike,
        rho: float | None = None,
        gamma: float | None = None,
        *,
        pi: float | None = None,
        mu: float | None = None,
        interest: float = 1.0,
        peaks: tuple[float, float] | None = None,
    ) -> float:
        """Learn from one transition; return its TD error r + gamma w.x_next - w.x (old weights).

        `rho` and `gamma` must be given. `gamma` is the discount of this transition: 0 ends the
        episode, and the next transition begins a new one. A learner of the average reward needs
        none; of the error that is returned its rate is not subtracted. `rho` = pi/mu is the
        importance ratio of the action taken, 1 on-policy; a law that does not use it needs none.
        `pi` and `mu` are the probabilities of the action taken under target and behaviour policy;
        together they give rho, and laws that use them (their documentation says so) need them.
        `peaks` are the least and the largest max(pi, mu) over all states and actions, for laws that
        use those (default: this action's).
        """
        features = np.stack([self._vector("x", x), self._vector("x_next", x_next)])
        if self.learner.law.average_reward:
            gamma = 1.0 if gamma is None else gamma
            if gamma != 1.0:
                raise InputError(
                    f"gamma must be 1, or left out, got {gamma}: {self.learner.name} learns the "
                    "average reward of a stream without end. Where it is cut off, end_episode()."
                )
        rho, pi, mu = self._ratio(rho, pi, mu)
        if gamma is None:
            raise InputError(
                "gamma, the discount of the transition, is missing; pass gamma=... to update, 0 "
                "where the episode ends."
            )
        reward = number("reward", reward)
        interest = number("interest", interest, low=0.0)
        gamma = number("gamma", gamma, low=0.0, high=1.0)
        low, high = (max(pi, mu), max(pi, mu)) if peaks is None else two_peaks(peaks)
        facts = fact_table(
            reward=reward, gamma_next=gamma, rho=rho, pi=pi, mu=mu, interest=interest,
            peak_min=low, peak_max=high,
        )  # fmt: skip
        return float(self._live.take(sparse_rows(features), facts)[0])

    @in_turn
    def end_episode(self) -> None:
        """The episode was cut off after the last update: the next update begins another one.

        That update sees what it would see after a transition of discount 0: nothing of the old
        episode is in its traces.
        """
        self._live.cut()

    @in_turn
    def save(self, path: str | Path) -> Path:
        """Save the learner's whole state; `steadytd.load_learner` reads it back."""
        settings = {"learner": str(self.learner), "step": self.step}
        content = {"settings": np.array(json.dumps(settings)), **self._live.state}
        return write_arrays(Path(path), content)

    @in_turn
    def restore(self, state: dict[str, Floats], step: int) -> None:
        """Take over a saved state, whose arrays must have the shapes of this learner's own."""
        self._live.restore(state, step, str(self.learner))

    def _vector(self, name: str, values: ArrayLike) -> Floats:
        vector = numbers(name, values)
        if vector.shape != (self.n_features,):
            raise InputError(
                f"{name} must be a vector of {self.n_features} features, got shape {vector.shape}."
            )
        return vector

    def _ratio(
        self, rho: float | None, pi: float | None, mu: float | None
    ) -> tuple[float, float, float]:
        """rho, pi and mu, as far as the law needs them; NaN for probabilities not given."""
        if (pi is None) != (mu is None):
            raise InputError("give both pi and mu (probabilities of the action taken), or neither.")
        if rho is not None:
            rho = number("rho", rho, low=0.0)
        if pi is None or mu is None:
            return self._without_policies(rho), np.nan, np.nan
        pi = number("pi", pi, low=0.0, high=1.0)
        mu = number("mu", mu, low=0.0, high=1.0)
        if mu == 0.0:
            raise InputError("mu must be > 0: it is the probability of an action that was taken.")
        if rho is not None and not math.isclose(rho, pi / mu, rel_tol=1e-6, abs_tol=1e-12):
            raise InputError(
                f"rho must be pi/mu = {pi / mu:g}, got {rho:g}; give rho, or pi and mu."
            )
        return pi / mu, pi, mu

    def _without_policies(self, rho: float | None) -> float:
        name, law = self.learner.name, self.learner.law
        if law.needs_policies:
            raise InputError(
                f"{name} needs pi and mu, the probabilities of the action taken; "
                "pass pi=..., mu=... to update."
            )
        if rho is None and law.needs_ratio:
            raise InputError(
                f"{name} needs rho, the importance ratio pi/mu of the action taken; pass rho=..., "
                "or pi=... and mu=..., to update. Use rho=1 where the target policy acts."
            )
        return 1.0 if rho is None else rho


class Learner(InNotebooks, Settings):
    """A law and its hyper-parameters, checked; see `Settings`, which is all that a block needs.

    `str(learner)` is its text form: the name, then every hyper-parameter that has no default or
    differs from it. Two learners are equal when their laws and hyper-parameters are.
    """

    __slots__ = ()

    def start(self, n_features: int, w0: ArrayLike | None = None) -> OnlineLearner:
        """A running learner for a live stream, its weights at `w0` (zero by default)."""
        return OnlineLearner(self, n_features, w0)


def two_peaks(peaks: object) -> tuple[float, float]:
    """The least and the largest max(pi, mu), as a user gives them."""
    try:
        low, high = (number("each of peaks", one, low=0.0) for one in peaks)  # type: ignore[attr-defined]
        fine = low <= high
    except (TypeError, ValueError):
        fine = False
    if not fine:
        raise InputError(
            "peaks must be two finite numbers >= 0, the least and the largest max(pi, mu) over "
            f"all states and actions, got {peaks!r}."
        )
    return low, high

"""A Horde: tens of thousands of predictions learned from one stream that the user feeds."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadytd.base.arrays import Floats, read_only
from steadytd.base.errors import InputError, unknown
from steadytd.base.files import reading_arrays, write_arrays
from steadytd.base.finding import Finding
from steadytd.base.numbers import SizeError, count, machine_memory, memory, whole
from steadytd.base.parallel import in_turn
from steadytd.engine.active import fits
from steadytd.engine.block import group_key
from steadytd.engine.facts import numbers
from steadytd.engine.law import Law
from steadytd.engine.schedule import step_factors
from steadytd.engine.step.layouts.active import LIMITS
from steadytd.engine.step.layouts.horde import LANES
from steadytd.hordes.health import CHUNK, Health, HealthColumns, follow, health_frame, warnings_of
from steadytd.hordes.inputs import Features, Inputs, LiveSteps
from steadytd.hordes.part import Columns, LanePart, WholePart
from steadytd.hordes.prediction import HordePrediction, prediction
from steadytd.learners import saved_learner

if TYPE_CHECKING:
    import polars as pl

FORMAT = 5  # of what `save` writes
CHUNK_ERRORS = 1 << 22  # TD errors of the steps that are taken at a time
WORTH = 100_000  # multiplications below which a second thread costs more than it saves
HEALTH_WORTH = 50_000  # the same for the health of predictions times steps


def horde(
    n_features: int,
    predictions: Iterable[HordePrediction],
    *,
    w0: ArrayLike | None = None,
    dtype: str = "float64",
    threads: int | None = None,
) -> Horde:
    """Many predictions on one stream; feed it with `update`, ask it with `predict`.

    Weights start at `w0` (zero by default). `dtype="float32"` halves the memory and the time of a
    large Horde. The number of threads never changes a bit.

    >>> import steadytd as st
    >>> predictions = [st.prediction("td:alpha=0.5", cumulant=0, policy="behavior", discount=g)
    ...                for g in (0.0, 0.9)]
    >>> h = st.horde(2, predictions)
    >>> h.update([1, 0], [0, 1], cumulants=[1.0]).tolist()
    [1.0, 1.0]
    >>> h.predict([1, 0]).tolist()
    [0.5, 0.5]
    """
    if not isinstance(predictions, Iterable):
        raise InputError(
            f"a horde needs a list of st.prediction(...), got {type(predictions).__name__}."
        )
    chosen = list(predictions)
    if not chosen:
        raise InputError("a horde needs at least one prediction, got none.")
    for one in chosen:
        if not isinstance(one, HordePrediction):
            raise InputError(f"a horde is made of st.prediction(...), got {type(one).__name__}.")
    if not isinstance(dtype, str) or dtype not in LIMITS:
        raise unknown("dtype of a horde", dtype, LIMITS)
    d = whole("n_features", n_features, 1)
    _require_memory(chosen, d, np.dtype(dtype).itemsize)
    start = np.zeros(d) if w0 is None else numbers("w0", w0) + 0.0
    if start.shape != (d,):
        raise InputError(f"w0 must be {d} finite numbers, got shape {start.shape}.")
    count = (os.cpu_count() or 1) if threads is None else whole("threads", threads, 1, 1024)
    return Horde(chosen, start, dtype, count)


def _require_memory(predictions: Sequence[HordePrediction], d: int, size: int) -> None:
    """Refuse a Horde whose weights alone would not fit into this machine's memory."""
    needed = d * size * sum(len(p.learner.law.vectors) for p in predictions)
    available = machine_memory()
    if needed > available:
        raise SizeError(
            f"the weights of {len(predictions):,} predictions with {d:,} features would take "
            f"{memory(needed)}, more than the {memory(available)} of this machine; take fewer "
            'predictions or features, or dtype="float32".'
        )


class Horde:
    """Predictions that learn together; made by `horde`, or read by `load_horde`.

    Threads may share it: a call waits for that of another thread to end.
    """

    def __init__(
        self, predictions: Sequence[HordePrediction], w0: Floats, dtype: str, threads: int
    ) -> None:
        self.predictions = tuple(predictions)
        self.dtype, self.threads, self.step = dtype, threads, 0
        self.turn = threading.RLock()
        self._inputs = Inputs(len(w0), predictions, dtype)
        learners = [p.learner for p in predictions]
        self._schedules = list(dict.fromkeys(x.schedule for x in learners))
        columns = [
            Columns(
                p.cumulant, self._inputs.policy_column(p), self._inputs.discount_column(p),
                self._schedules.index(p.learner.schedule),
            )
            for p in predictions
        ]  # fmt: skip
        sparse: dict[Any, list[int]] = {}
        whole: dict[Any, list[int]] = {}
        for i, x in enumerate(learners):
            if fits(x):
                sparse.setdefault((x.law, x.traced), []).append(i)
            else:
                whole.setdefault((group_key(x), columns[i]), []).append(i)
        self._lanes = [LanePart(some, learners, columns, w0, dtype) for some in sparse.values()]
        self._wholes = [WholePart(m, learners, columns[m[0]], w0) for m in whole.values()]
        lam = [float(x.values.get(x.law.trace_param, 0.0)) if x.traced else 0.0 for x in learners]
        table = np.array(columns, dtype=np.int64).T
        cumulant, policy, discount = (np.ascontiguousarray(row) for row in table[:3])
        decay = np.clip(lam, 0.0, 1.0)
        self._health = Health(len(w0), HealthColumns(cumulant, policy, discount, decay))

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        many, size = count(len(self), "prediction"), count(self.n_features, "feature")
        return f"<horde: {many} on {size}, {count(self.step, 'step')}>"

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self._inputs.n_features

    @property
    def nbytes(self) -> int:
        """The memory that the predictions take, in bytes."""
        return sum(array.nbytes for array in self._state().values())

    @property
    @in_turn
    def w(self) -> Floats:
        """The weights [predictions, features], as doubles (a copy)."""
        return np.stack([self.weights(i) for i in range(len(self))])

    @in_turn
    def weights(self, i: int) -> Floats:
        """The weights of prediction i."""
        part, lane = self._find(whole("the number of a prediction", i, 0, len(self) - 1))
        return part.weights(lane)

    @in_turn
    def predict(self, x: Features) -> Floats:
        """The predictions at an observation with features x; one row per observation if many."""
        active = self._inputs.features("x", x)
        out = np.empty((active.steps, len(self)))
        for part in self._all if active.steps else ():
            out[:, part.order[: part.count]] = part.values(active)[:, : part.count]
        single = active.steps == 1 and not _many(x)
        return out[0] if single else out

    @in_turn
    def update(
        self,
        x: Features,
        x_next: Features,
        cumulants: ArrayLike,
        rhos: ArrayLike | None = None,
        discounts: ArrayLike | None = None,
        *,
        pi: ArrayLike | None = None,
        mu: ArrayLike | None = None,
        interest: float = 1.0,
        peaks: tuple[float, float] | None = None,
        terminated: bool = False,
    ) -> Floats:
        """Learn from one step; return the TD error of each prediction, with the old weights.

        `x` and `x_next` are vectors of features, or pairs (indices, values) of the active ones
        (values None: all are 1). `cumulants`, `rhos` and `discounts` have one number for each
        column that the predictions name. `rhos` are the importance ratios pi/mu of the action
        taken; `pi` (one per policy) and `mu` may be given instead, and must be where a law uses
        them. `terminated` makes every discount of this step 0: the episode ends with it.
        `interest` and `peaks` are as in `OnlineLearner.update`.
        """
        if _many(x) or _many(x_next):
            raise InputError("update takes one step; use update_many for several.")
        steps = self._inputs.steps(
            x, x_next, cumulants, rhos, discounts,
            pi=pi, mu=mu, interest=interest, peaks=peaks, terminated=terminated,
        )  # fmt: skip
        return np.asarray(self._take(steps)[0])

    @in_turn
    def update_many(
        self,
        x: Features,
        x_next: Features,
        cumulants: ArrayLike,
        rhos: ArrayLike | None = None,
        discounts: ArrayLike | None = None,
        *,
        pi: ArrayLike | None = None,
        mu: ArrayLike | None = None,
        interest: ArrayLike = 1.0,
        peaks: tuple[float, float] | None = None,
        terminated: ArrayLike = False,
        truncated: ArrayLike = False,
    ) -> None:
        """Learn from many steps, one after the other along the first axis: the bits of `update`.

        Features are a matrix with a row for each step, a SciPy sparse matrix, or a pair of matrices
        (indices, values). `truncated` says after which steps `end_episode` would be called.
        """
        steps = self._inputs.steps(
            x, x_next, cumulants, rhos, discounts, pi=pi, mu=mu, interest=interest, peaks=peaks,
            terminated=terminated, truncated=truncated,
        )  # fmt: skip
        chunk = int(np.clip(CHUNK_ERRORS // len(self), 16, 256))
        for begin in range(0, steps.x.steps, chunk):
            self._take(steps.part(begin, min(begin + chunk, steps.x.steps)))

    @in_turn
    def end_episode(self) -> None:
        """The episode was cut off after the last step: the next one begins another.

        It sees what it would see after a termination: nothing of the old episode is in its traces.
        """
        for part in self._all:
            part.cut()
        self._health.cut()

    @in_turn
    def health(self) -> pl.DataFrame:
        """The health of each prediction, one row each; see `docs/horde.md`."""
        return health_frame(self.predictions, self._health, self.step)

    @property
    @in_turn
    def warnings(self) -> list[Finding]:
        """A finding for each prediction that has diverged or whose error grows or is too large."""
        return warnings_of(self.predictions, self._health, self.step)

    @in_turn
    def save(self, path: str | Path) -> Path:
        """Save the whole state; `steadytd.load_horde` reads it back and goes on, bit for bit."""
        settings = {
            "format": FORMAT, "step": self.step, "n_features": self.n_features,
            "dtype": self.dtype, "predictions": [p.settings for p in self.predictions],
        }  # fmt: skip
        content = {"settings": np.array(json.dumps(settings)), **self._state()}
        return write_arrays(Path(path), content)

    @in_turn
    def restore(self, state: dict[str, NDArray[Any]], step: int) -> None:
        """Take over a saved state, whose arrays must have the shapes of this Horde's own."""
        own = self._state()
        for name, array in own.items():
            found = state.get(name)
            if found is None or found.shape != array.shape or found.dtype != array.dtype:
                raise InputError(f"the saved horde's '{name}' does not match these predictions.")
        for name, array in own.items():
            array[...] = state[name]
        self._health.longest = float(state["health_longest"][0])
        self.step = step
        for part in self._wholes:
            part.block.resume(step)

    def _state(self) -> dict[str, NDArray[Any]]:
        """Every array that changes, under one name each."""
        parts = {f"part{i}": part.state for i, part in enumerate(self._all)}
        named = {**parts, "health": self._health.state}
        return {f"{part}_{n}": array for part, some in named.items() for n, array in some.items()}

    @property
    def _all(self) -> list[LanePart | WholePart]:
        return [*self._lanes, *self._wholes]

    def _find(self, i: int) -> tuple[LanePart | WholePart, int]:
        for part in self._all:
            lanes = np.flatnonzero(part.order[: part.count] == i)
            if len(lanes):
                return part, int(lanes[0])
        raise AssertionError("every prediction is in one part")

    def _take(self, steps: LiveSteps) -> Floats:
        """Take some steps; return delta [steps, predictions]."""
        n = steps.x.steps
        factors = np.empty((n, len(self._schedules)))
        for i, schedule in enumerate(self._schedules):
            factors[:, i] = step_factors(self.step, n, *schedule)
        arguments = steps.arguments(factors)
        delta = np.empty((n, len(self)))
        threads = self.threads if len(steps.x.feature) * len(self) > WORTH else 1
        for part in self._lanes:
            out = np.empty((n, part.blocks, LANES))

            def run(low: int, high: int, part: LanePart = part, out: Floats = out) -> None:
                part.advance(arguments, out, low, high)

            _in_threads(run, part.blocks, threads)
            lanes = out.reshape(n, -1)
            if part.count == len(self):  # the only part: gathering is quicker than scattering
                np.take(lanes, part.rank, axis=1, out=delta)
            else:
                delta[:, part.order[: part.count]] = lanes[:, : part.count]
        for whole_part in self._wholes:
            delta[:, whole_part.order] = whole_part.advance(steps)
        self._follow_health(steps, delta, threads)
        self.step += n
        return delta

    def _follow_health(self, steps: LiveSteps, delta: Floats, threads: int) -> None:
        health = self._health
        directions, rates = health.project(steps.x)
        fixed = health.numbers, health.columns, read_only(delta), directions, rates, steps.tables

        def run(low: int, high: int) -> None:
            follow(*fixed, self.step, low * CHUNK, min(high * CHUNK, len(self)))

        _in_threads(run, -(-len(self) // CHUNK), threads if delta.size > HEALTH_WORTH else 1)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="horde")


def _in_threads(run: Callable[[int, int], None], count: int, threads: int) -> None:
    """run(low, high) over 0 .. count, in a contiguous piece per thread; compiled loops run free."""
    pieces = min(threads, count)
    if pieces <= 1:
        run(0, count)
        return
    ends = [count * i // pieces for i in range(pieces + 1)]
    waiting = [_pool(threads).submit(run, ends[i], ends[i + 1]) for i in range(1, pieces)]
    run(ends[0], ends[1])
    for future in waiting:
        future.result()


def _many(x: Features) -> bool:
    """Whether features are those of several steps."""
    if hasattr(x, "tocsr"):
        return True
    try:
        return np.ndim(x[0] if isinstance(x, tuple) and len(x) else x) > 1
    except ValueError:  # rows of different lengths; `Inputs` says so
        return False


def load_horde(path: str | Path, laws: Iterable[Law] = ()) -> Horde:
    """Read a Horde that `save` wrote. Name your own laws in `laws`."""
    own = list(laws)
    with reading_arrays(Path(path), "horde") as file:
        settings = json.loads(str(file["settings"]))
        state = {name: file[name] for name in file.files if name != "settings"}
        saved, predictions = settings["format"], list(settings["predictions"])
        step = whole("step", settings["step"], 0)
        d, dtype = whole("n_features", settings["n_features"], 1), str(settings["dtype"])
    if saved != FORMAT:
        raise InputError(
            f"the horde in '{path}' has format {saved}, this version reads {FORMAT}; "
            "load it with the version that saved it, or train it again."
        )
    made = [prediction(saved_learner(str(p.pop("learner")), own), **p) for p in predictions]
    loaded = horde(d, made, dtype=dtype)
    loaded.restore(state, step)
    return loaded

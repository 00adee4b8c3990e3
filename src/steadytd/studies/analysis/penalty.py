"""What a penalty adds beside the learner without it, and what it costs, on the same grid.

A learner is *penalised* if its law has a parameter eta; the *plain* one beside it is the learner of
the study whose update is the same at eta = 0. Neither is known here by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from steadytd.base.errors import InputError
from steadytd.engine.law import Law, Param
from steadytd.engine.learner import Learner
from steadytd.learners import learner as make_learner
from steadytd.mdp.problem import Problem
from steadytd.studies.analysis.reading import Chapter
from steadytd.studies.analysis.tables import FACTS, Paired, axes_of, short
from steadytd.studies.analysis.theory import Prediction, instances, predict
from steadytd.theory.same import same_update

if TYPE_CHECKING:
    import polars as pl

ETA = "eta"
NUMBERS = ("error", "stderr", "diverged_share", "seeds")


@dataclass(frozen=True)
class PenaltyRow:
    """One value of eta (None: without): how its configurations fared, and the best of them."""

    eta: float | None
    configurations: int
    never_diverged: int
    useful: int
    error: float
    settings: str
    prediction: Prediction | None


@dataclass(frozen=True)
class Penalty:
    """A learner without and with a penalty on one problem.

    The four counts are of step sizes that both have: `*_steady` without divergence and `*_useful`
    with an error below that of w0, each at the best of the other parameters.
    """

    plain: str
    penalised: str
    rows: list[PenaltyRow]
    step_sizes: int
    plain_steady: int
    penalised_steady: int
    plain_useful: int
    penalised_useful: int
    difference: Paired | None

    @property
    def without(self) -> PenaltyRow:
        """The plain learner."""
        return self.rows[0]

    @property
    def helpful(self) -> list[PenaltyRow]:
        """The penalties whose least grid error is below that without one."""
        return [row for row in self.rows[1:] if row.error < self.without.error]


@lru_cache(maxsize=16)
def penalties(chapter: Chapter) -> list[Penalty]:
    """One comparison for each pair."""
    return [_penalty(chapter, *pair) for pair in plain_and_penalised(chapter)]


@lru_cache(maxsize=16)
def plain_and_penalised(chapter: Chapter) -> list[tuple[str, str]]:
    """The learners of the study with a penalty, each after its plain form.

    Learners of which no configuration is finished yet are left out.
    """
    finished = set(chapter.configurations["algorithm"])
    laws = {x.name: x.algorithm for x in chapter.task.learners if x.name in finished}
    return [
        (plain, name)
        for name, law in laws.items()
        if ETA in law.params
        for plain in _plain_forms(chapter.task.problem, law, laws)[:1]
    ]


def _plain_forms(problem: Problem, law: Law, laws: dict[str, Law]) -> list[str]:
    """The laws without eta that are the same update at eta = 0, whatever the other parameters."""
    own = law.params.keys() - {ETA}
    return [
        name
        for name, other in laws.items()
        if ETA not in other.params
        and own <= other.params.keys()
        and all(other.params[extra].default is not None for extra in other.params.keys() - own)
        and (law.block is None) == (other.block is None)
        and same_update(problem, _probe(law, own, {ETA: 0.0}), _probe(other, own, {}))
    ]


def _probe(law: Law, names: Any, fixed: dict[str, float]) -> Learner:
    """A learner that shows what its parameters do: each inside its range, not at the end of it."""
    values = {name: _inside(law.params[name]) for name in names}
    step = {} if law.block is not None else {"alpha": 0.01}
    return Learner(law, {**step, **values, **fixed})


def _inside(param: Param) -> float:
    high = min(param.high, param.low + 2.0)
    return (param.low + high) / 2.0


def _penalty(chapter: Chapter, plain: str, penalised: str) -> Penalty:
    import polars as pl

    table = chapter.configurations
    without, having = (table.filter(pl.col("algorithm") == name) for name in (plain, penalised))
    seeds = range(max(without["seeds"].to_list()))
    problems = instances(chapter.task, seeds) if chapter.theory else []
    rows = [_row(chapter, None, without, problems)]
    for eta in having[ETA].drop_nulls().unique().sort():
        rows.append(_row(chapter, eta, having.filter(pl.col(ETA) == eta), problems))
    both = [without, having]
    sizes = [set(x["alpha"].drop_nulls()) if "alpha" in x.columns else set() for x in both]
    shared = sorted(sizes[0] & sizes[1])
    steady = [_step_sizes(x, shared, pl.col("diverged_share") == 0.0) for x in both]
    useful = [_step_sizes(x, shared, pl.col("error") < chapter.start) for x in both]
    counts = (len(shared), steady[0], steady[1], useful[0], useful[1])
    return Penalty(plain, penalised, rows, *counts, chapter.pairs.get((penalised, plain)))


def _step_sizes(own: pl.DataFrame, shared: list[float], good: Any) -> int:
    """On how many of the shared step sizes at least one configuration is good."""
    import polars as pl

    if not shared:
        return 0
    return own.filter(good & pl.col("alpha").is_in(shared))["alpha"].n_unique()


def _row(chapter: Chapter, eta: float | None, own: pl.DataFrame, problems: list[Any]) -> PenaltyRow:
    import polars as pl

    best = own.sort("error", "diverged_share").row(0, named=True)
    axes = axes_of(own.drop(NUMBERS))
    settings = ", ".join(f"{k} {short(best[k])}" for k in axes if best[k] is not None)
    return PenaltyRow(
        eta=eta,
        configurations=len(own),
        never_diverged=len(own.filter(pl.col("diverged_share") == 0.0)),
        useful=len(own.filter(pl.col("error") < chapter.start)),
        error=best["error"],
        settings=settings,
        prediction=_prediction(best, problems),
    )


def _prediction(best: dict[str, Any], problems: list[Any]) -> Prediction | None:
    if not problems:
        return None
    known = {k: v for k, v in best.items() if k not in (*FACTS, *NUMBERS) and v is not None}
    try:
        return predict(problems, make_learner(best["algorithm"], **known))
    except InputError:
        return None


def by_lam(chapter: Chapter) -> tuple[list[float], list[tuple[str, list[float | None]]]]:
    """The lams of a study, and for each learner its least grid error at each of them."""
    import polars as pl

    table = chapter.configurations
    if "lam" not in table.columns:
        return [], []
    several = table.filter(pl.col("lam").is_not_null())
    lams = several["lam"].unique().sort().to_list()
    rows = []
    for name in [b.algorithm for b in chapter.best]:
        own = several.filter(pl.col("algorithm") == name)
        if own["lam"].n_unique() > 1:
            at = dict(own.group_by("lam").agg(pl.col("error").min()).iter_rows())
            rows.append((name, [at.get(lam) for lam in lams]))
    return (lams, rows) if rows and len(lams) > 1 else ([], [])

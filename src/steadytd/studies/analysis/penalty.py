"""What a penalty adds beside the learner without it, and what it costs, on the same grid.

A learner is *penalised* if its law has a parameter eta; the *plain* one beside it is the learner of
the study whose update is the same at eta = 0. Neither is known here by name.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.mdp.problem import Problem
from steadytd.studies.analysis.reading import Chapter, Prediction, instances, predict
from steadytd.studies.analysis.tables import axes_of, short, tally
from steadytd.theory.same import same_update

if TYPE_CHECKING:
    import polars as pl

ETA = "eta"


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
    """A learner without and with a penalty on one problem; the first row is without.

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


def _probe(law: Law, names: Collection[str], fixed: dict[str, float]) -> Learner:
    """A learner that shows what its parameters do: each inside its range, not at the end of it."""
    step = {} if law.block is not None else {"alpha": 0.01}
    ranges = {name: (law.params[name].low, law.params[name].high) for name in names}
    inside = {name: (low + min(high, low + 2.0)) / 2.0 for name, (low, high) in ranges.items()}
    return Learner(law, {**step, **inside, **fixed})


def _penalty(chapter: Chapter, plain: str, penalised: str) -> Penalty:
    import polars as pl

    table = chapter.configurations
    without, having = (table.filter(pl.col("algorithm") == name) for name in (plain, penalised))
    seeds = range(max(without["seeds"].to_list()))
    problems = instances(chapter.task, seeds) if chapter.theory else []
    values = having[ETA].drop_nulls().unique().sort()
    groups = [(None, without), *((eta, having.filter(pl.col(ETA) == eta)) for eta in values)]
    shared: set[float] = set()
    if "alpha" in table.columns:
        shared = set(without["alpha"].drop_nulls()) & set(having["alpha"].drop_nulls())

    def step_sizes(own: pl.DataFrame, good: pl.Expr) -> int:
        if not shared:
            return 0
        return own.filter(good & pl.col("alpha").is_in(list(shared)))["alpha"].n_unique()

    steady, useful = pl.col("diverged_share") == 0.0, pl.col("error") < chapter.start
    return Penalty(
        plain=plain,
        penalised=penalised,
        rows=[_row(chapter, eta, own, problems) for eta, own in groups],
        step_sizes=len(shared),
        plain_steady=step_sizes(without, steady),
        penalised_steady=step_sizes(having, steady),
        plain_useful=step_sizes(without, useful),
        penalised_useful=step_sizes(having, useful),
    )


def _row(
    chapter: Chapter, eta: float | None, own: pl.DataFrame, problems: list[Problem]
) -> PenaltyRow:
    run, error = own.sort("error", "diverged_share").select("run", "error").row(0)
    learner = next(one for one in chapter.task.learners if str(one) == run)
    settings = [f"{k} {short(learner[k])}" for k in axes_of(own) if k in learner.values]
    return PenaltyRow(
        eta=eta,
        **tally(own, chapter.start),
        error=error,
        settings=", ".join(settings),
        prediction=predict(problems, learner) if problems else None,
    )


def by_lam(chapter: Chapter) -> tuple[list[float], list[tuple[str, list[float | None]]]]:
    """The lams of a study, and for each learner its least grid error at each of them."""
    import polars as pl

    table = chapter.configurations
    if "lam" not in table.columns:
        return [], []
    several = table.filter(pl.col("lam").is_not_null())
    lams = several["lam"].unique().sort().to_list()
    rows = []
    for b in chapter.best:
        own = several.filter(pl.col("algorithm") == b.algorithm)
        at = dict(own.group_by("lam").agg(pl.col("error").min()).iter_rows())
        if len(at) > 1:
            rows.append((b.algorithm, [at.get(lam) for lam in lams]))
    return (lams, rows) if rows else ([], [])

"""Estimates from the sums of units, for one or many resamples of the units at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import InputError
from steadytd.evaluation.collect.statistics import Statistics

RANK = 1e-10  # eigenvalues of the features' correlations below this share of the largest are zero
AT_ONCE = 60e6  # bytes of matrices that are solved together

Where = Literal["start", "states"]


class Form(NamedTuple):
    """How a value is computed: solved from a system, or by importance sampling.

    `solved`: (A + eta G + ridge I) w = b of the system with this number. `pdis`, `snpdis`, `dr`:
    see `docs/evaluate.md`.
    """

    kind: Literal["solved", "pdis", "snpdis", "dr"]
    system: int = 0
    eta: float = 0.0
    ridge: float = 0.0


LSTD, PDIS, SNPDIS, DR = Form("solved"), Form("pdis"), Form("snpdis"), Form("dr")


@dataclass(frozen=True)
class Estimator:
    """The units' sums, and the values that they give.

    Systems are solved for a largest set of linearly independent features, the other weights being
    0; the values are those of any other choice. The value is the mean of phi(s).w over the
    episodes' first states (`start`), or over all logged states (`states`) where the log is one
    endless episode.
    """

    units: Statistics
    where: Where

    @property
    def n_units(self) -> int:
        """How many units there are to resample."""
        return len(self.units.block)

    @cached_property
    def kept(self) -> Longs:
        """The numbers of the features that are solved for, in ascending order."""
        from scipy.linalg import lapack

        G = self.units.G.sum(axis=0)
        scale = np.sqrt(np.diag(G))
        shown = np.flatnonzero(scale > 0.0)
        inner = G[np.ix_(shown, shown)] / np.outer(scale[shown], scale[shown])
        if not len(shown):
            raise InputError("all features are 0 in every row; nothing can be learned from them.")
        _, order, rank, _ = lapack.dpstrf(inner, tol=RANK)
        return np.sort(shown[order[:rank] - 1])

    @property
    def rank(self) -> int:
        """How many features are linearly independent."""
        return len(self.kept)

    @cached_property
    def start(self) -> Floats:
        """Sums of the features whose mean value is asked for [units, rank]."""
        sums = self.units.x_start if self.where == "start" else self.units.x
        return np.asarray(sums[:, self.kept])

    @cached_property
    def starts(self) -> Floats:
        """How many states those are, by unit."""
        return np.asarray(self.units.counts[:, 1 if self.where == "start" else 0])

    @cached_property
    def start_mean(self) -> Floats:
        """The mean of all features where the value is asked for [d]."""
        sums = self.units.x_start if self.where == "start" else self.units.x
        return np.asarray(sums.sum(axis=0) / self.starts.sum())

    def ones(self) -> Floats:
        """Every unit once: the log as it is."""
        return np.ones((1, self.n_units))

    def values(self, counts: Floats, target: int, forms: list[Form]) -> Floats:
        """The value [resamples, forms] when unit u is counted counts[., u] times."""
        size = max(1, int(AT_ONCE / (8 * (self.rank + 1) ** 2)))
        parts = [
            self._values(counts[i : i + size], target, forms) for i in range(0, len(counts), size)
        ]
        return np.concatenate(parts)

    def _values(self, counts: Floats, target: int, forms: list[Form]) -> Floats:
        result = np.empty((len(counts), len(forms)))
        start = counts @ self.start
        number = counts @ self.starts
        with np.errstate(all="ignore"):
            for i, form in enumerate(forms):
                if form.kind == "solved":
                    u = self.solve(counts, target, form)
                    result[:, i] = np.einsum("rk,rk->r", start, u) / number
                elif self.where == "states":
                    result[:, i] = np.nan
                elif form.kind == "pdis":
                    result[:, i] = counts @ self.units.weighted[:, target, -1] / number
                elif form.kind == "snpdis":
                    result[:, i] = self._snpdis(counts, target)
                else:
                    result[:, i] = self._doubly_robust(counts, target) / number
        return result

    def summed(self, counts: Floats, sums: Floats) -> Floats:
        """The sums [resamples, rank, rank (+ 1)] of matrices [units, d, d (+ 1)]."""
        shape = sums.shape[1:]
        total = (counts @ sums.reshape(len(sums), -1)).reshape(len(counts), *shape)
        if self.rank == shape[0]:
            return np.asarray(total)
        columns = self.kept if shape[0] == shape[1] else np.append(self.kept, shape[0])
        return np.asarray(total[:, self.kept[:, None], columns])

    def solve(self, counts: Floats, target: int, form: Form) -> Floats:
        """The weights u [resamples, rank] of a solved form."""
        total = self.summed(counts, self.units.systems[:, target, form.system])
        return self._solution(counts, total, form)

    def _solution(self, counts: Floats, total: Floats, form: Form) -> Floats:
        A, b = total[:, :, :-1], total[:, :, -1]
        if form.eta:
            A = A + form.eta * self.summed(counts, self.units.G)
        if form.ridge:
            A = A + form.ridge * np.eye(self.rank)
        return solve_all(A, b)

    def weights(self, target: int, form: Form) -> Floats:
        """The weights w [d] of a solved form, from the whole log."""
        w = np.zeros(self.units.G.shape[1])
        w[self.kept] = self.solve(self.ones(), target, form)[0]
        return w

    def _snpdis(self, counts: Floats, target: int) -> Floats:
        u = self.units
        numerator = counts @ u.numerator[:, target]
        denominator = counts @ (u.denominator[:, target] + np.cumsum(u.ended[:, target], axis=1))
        used = numerator != 0.0
        return np.asarray(np.where(used, numerator / denominator, 0.0).sum(axis=1))

    def _doubly_robust(self, counts: Floats, target: int) -> Floats:
        """Each half of the units with the weights that the other half gives."""
        even = np.arange(self.n_units) % 2 == 0
        weighted = self.units.weighted[:, target]
        total = np.zeros(len(counts))
        for half in (even, ~even):
            u = self.solve(counts * ~half, target, LSTD)
            start = (counts * half) @ self.start
            sums = (counts * half) @ weighted
            total += np.einsum("rk,rk->r", start - sums[:, self.kept], u) + sums[:, -1]
        return total

    def held_out(self, target: int) -> HeldOut:
        """The projected Bellman error of lstd's weights on episodes that did not make them.

        With A, b, G means over the rows of one half of the units and w solved from the other half:
        (b - A w)' G^-1 (b - A w), the mean of both halves; with w = 0 for comparison.
        """
        even = np.arange(self.n_units) % 2 == 0
        if self.n_units < 2:
            return NOT_KNOWN
        squares = np.zeros(2)
        with np.errstate(all="ignore"):  # weights that the other half does not determine
            for half in (even, ~even):
                counts = half[None].astype(np.float64)
                u = self.solve(1.0 - counts, target, LSTD)[0]
                total = self.summed(counts, self.units.systems[:, target, 0])[0]
                g = np.stack([total[:, -1] - total[:, :-1] @ u, total[:, -1]])
                G, rows = self.summed(counts, self.units.G)[0], counts @ self.units.counts[:, 0]
                fine = np.isfinite(g).all()
                x = np.linalg.lstsq(G, g.T, rcond=RANK)[0] if fine else np.full(g.T.shape, np.nan)
                squares += np.einsum("ik,ki->i", g, x) / rows / 2.0
            error, of_zero = np.sqrt(np.maximum(squares, 0.0)).tolist()
        return HeldOut(error if np.isfinite(error) else float("inf"), of_zero)


class HeldOut(NamedTuple):
    """Root mean square projected Bellman errors on held-out episodes."""

    error: float
    error_of_zero: float  # that of the value 0

    @property
    def share(self) -> float:
        """What is left of the error: 0 is perfect, 1 no better than the value 0."""
        if self.error == float("inf"):
            return self.error
        return self.error / self.error_of_zero if self.error_of_zero > 0.0 else float("nan")


NOT_KNOWN = HeldOut(float("nan"), float("nan"))


def solve_all(A: Floats, b: Floats) -> Floats:
    """The solutions of many systems; by least squares where one is singular."""
    try:
        return np.asarray(np.linalg.solve(A, b[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        found = [np.linalg.lstsq(M, g, rcond=RANK)[0] for M, g in zip(A, b, strict=True)]
        return np.stack(found)

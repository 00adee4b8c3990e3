"""A log's table again, by plain loops: what the findings of an evaluation are held against."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from steadytd.base.arrays import Bools, Floats, Longs

STRETCHES, GROUPS = 200, 20  # of rows where episodes are divided; of units
WIDE = 20  # features from which on there are fewer resamples


def solved(A: Any, b: Any) -> Floats:
    """The solution of least norm of A w = b, or of many of them; large ones have to be regular."""
    if b.shape[-1] >= WIDE:
        return np.asarray(np.linalg.solve(A, b[..., None])[..., 0])
    return np.asarray((np.linalg.pinv(A, rcond=1e-12) @ b[..., None])[..., 0])


class RawLog:
    """The usable transitions of a table for one target; the features are the observations.

    `unit` numbers what intervals take for independent: episodes; or, where episodes are `divided`,
    equal stretches of the table.
    """

    def __init__(self, rows: list[dict[str, Any]], target: str, divided: bool = False) -> None:
        found = []
        for i, row in enumerate(rows):
            gamma = 0.0 if row["terminated"] else row["discount"]
            after = rows[i + 1] if i + 1 < len(rows) else None
            if row.get("next_obs") is not None:
                x_next = row["next_obs"]
            elif after is not None and after["episode_id"] == row["episode_id"]:
                x_next = after["obs"]
            elif gamma == 0.0:
                x_next = row["obs"]
            else:
                continue
            chance = row["behavior_prob"]
            rho = row["target_prob_" + target] / chance if chance > 0.0 else 0.0
            found.append((i, row["episode_id"], row["obs"], x_next, row["reward"], gamma, rho))
        columns = [np.array(c) for c in zip(*found, strict=True)]
        self.row, self.episode, self.x, self.x_next, self.reward, self.gamma, self.rho = columns
        self.table_rows, self.left_out = len(rows), len(rows) - len(found)
        self.first: Bools = np.append(True, self.episode[1:] != self.episode[:-1])
        self.divided = divided
        stretch = self.row * min(STRETCHES, len(rows)) // len(rows)
        self.unit: Longs = stretch if divided else np.cumsum(self.first) - 1  # by row

    @property
    def n(self) -> int:
        return len(self.rho)

    @property
    def episodes(self) -> int:
        return int(self.first.sum())

    @property
    def units(self) -> int:
        return int(self.unit[-1]) + 1

    @cached_property
    def products(self) -> tuple[Floats, Floats, Floats]:
        """By row: c_t = rho_0 ... rho_t, g_t the product of discounts before, and that after."""
        c, g = np.empty(self.n), np.empty(self.n)
        for i in range(self.n):
            new = self.first[i]
            c[i] = self.rho[i] * (1.0 if new else c[i - 1])
            g[i] = 1.0 if new else g[i - 1] * self.gamma[i - 1]
        return c, g, g * self.gamma

    @cached_property
    def last(self) -> Longs:
        """The last rows of the episodes."""
        return np.append(np.flatnonzero(self.first)[1:] - 1, self.n - 1)

    @cached_property
    def cut(self) -> Floats:
        """The discount left at the end of the episodes that are cut off."""
        left = self.products[2][self.last]
        return np.asarray(left[left > 0.0])

    def effective(self, weights: Floats) -> float:
        squares = float(weights @ weights)
        return float(weights.sum() ** 2 / squares) if squares else 0.0

    def by_unit(self, values: Floats) -> Floats:
        """Sums over the rows of each unit [units, ...]."""
        sums = np.zeros((self.units, *values.shape[1:]))
        np.add.at(sums, self.unit, values)
        return sums

    @cached_property
    def per_unit(self) -> dict[str, Floats]:
        """A, b, G, x and c g (x - gamma x'), c g r by unit; the starts' x, and numbers of both."""
        c, g, _ = self.products
        v = self.x - self.gamma[:, None] * self.x_next
        zx = self.rho[:, None] * self.x
        return {
            "A": self.by_unit(zx[:, :, None] * v[:, None, :]),
            "b": self.by_unit(zx * self.reward[:, None]),
            "G": self.by_unit(self.x[:, :, None] * self.x[:, None, :]),
            "x": self.by_unit(self.x),
            "v": self.by_unit((c * g)[:, None] * v),
            "r": self.by_unit(c * g * self.reward),
            "start": self.by_unit(self.x * self.first[:, None]),
            "starts": self.by_unit(self.first.astype(float)),
            "rows": self.by_unit(np.ones(self.n)),
        }

    def sums(self, name: str, counts: Floats | None = None) -> Floats:
        """Over the units, each as often as `counts` says; of many counts at once [..., unit]."""
        c = np.ones(self.units) if counts is None else counts
        return np.asarray(np.tensordot(c, self.per_unit[name], axes=1))

    @property
    def A(self) -> Floats:
        """Mean over rows, as G."""
        return np.asarray(self.sums("A") / self.n)

    @property
    def G(self) -> Floats:
        return np.asarray(self.sums("G") / self.n)

    def weights(self, eta: float = 0.0, counts: Floats | None = None) -> Floats:
        A = self.sums("A", counts)
        if eta:
            A = A + eta * self.sums("G", counts)
        return solved(A, self.sums("b", counts))

    def traced(self, lam: float) -> Floats:
        """The weights of TD(lam)'s fixed point: z = rho (gamma lam z + x)."""
        d = self.x.shape[1]
        A, b, z = np.zeros((d, d)), np.zeros(d), np.zeros(d)
        for i in range(self.n):
            carried = 0.0 if self.first[i] else self.gamma[i - 1]
            z = self.rho[i] * (carried * lam * z + self.x[i])
            A += np.outer(z, self.x[i] - self.gamma[i] * self.x_next[i])
            b += self.reward[i] * z
        return np.asarray(np.linalg.solve(A, b))

    def followed(self, alpha: float, steps: int | None = None) -> Floats:
        """Where TD with lam = 0 ends, after all rows or so many steps."""
        w = np.zeros(self.x.shape[1])
        scale = alpha * self.rho
        with np.errstate(all="ignore"):
            for i in range(self.n if steps is None else steps):
                x = self.x[i]
                delta = self.reward[i] + self.gamma[i] * (w @ self.x_next[i]) - w @ x
                w = w + scale[i] * delta * x
        return w

    def at_start(self, w: Floats, counts: Floats | None = None) -> Any:
        return (self.sums("start", counts) * w).sum(axis=-1) / self.sums("starts", counts)

    def lstd(self, counts: Floats | None = None) -> Any:
        """A number, or one for each of many counts; so are `dr` and `pdis`."""
        return self.at_start(self.weights(counts=counts), counts)

    def dr(self, counts: Floats | None = None) -> Any:
        """Each fifth of the units corrected with the other units' weights."""
        c = np.ones(self.units) if counts is None else counts
        fifths = [slice(i * self.units // 5, (i + 1) * self.units // 5) for i in range(5)]
        own = {
            name: [np.tensordot(c[..., f], self.per_unit[name][f], axes=1) for f in fifths]
            for name in ("A", "b", "start", "v", "r")
        }
        total = np.zeros(())
        for i in range(5):
            w = solved(*(sum(own[name][:i] + own[name][i + 1 :]) for name in ("A", "b")))
            total = total + ((own["start"][i] - own["v"][i]) * w).sum(axis=-1) + own["r"][i]
        return total / self.sums("starts", c)

    def pdis(self, counts: Floats | None = None) -> Any:
        return self.sums("r", counts) / self.sums("starts", counts)

    def snpdis(self) -> float:
        """c_t is divided by its mean over episodes; an ended episode keeps its last c."""
        c, g, _ = self.products
        step = np.arange(self.n) - np.flatnonzero(self.first)[np.cumsum(self.first) - 1]
        total = 0.0
        for t in range(int(step.max()) + 1):
            here, ended = step == t, step[self.last] < t
            mean = c[here].sum() + c[self.last][ended].sum()
            total += float((g * c * self.reward)[here].sum() / mean)
        return total

    def held_out(self) -> tuple[float, float]:
        """Projected Bellman errors of the other half's weights, and of no weights."""
        unit = np.arange(self.units)
        even = (unit * GROUPS // self.units if self.divided else unit) % 2 == 0
        squares = np.zeros(2)
        for half in (even, ~even):
            own = half.astype(float)
            rows = float(self.sums("rows", own))
            inverse = np.linalg.pinv(self.sums("G", own) / rows)
            b, A = self.sums("b", own) / rows, self.sums("A", own) / rows
            for i, w in enumerate((self.weights(counts=1.0 - own), np.zeros(len(b)))):
                g = b - A @ w
                squares[i] += g @ inverse @ g / 2.0
        error, zero = np.sqrt(squares).tolist()
        return error, zero

    @cached_property
    def drawn(self) -> dict[str, Floats]:
        """lstd, dr and pdis on resamples of the units."""
        rng, number = np.random.default_rng(99), 200 if self.x.shape[1] < WIDE else 60
        counts = rng.multinomial(self.units, np.full(self.units, 1.0 / self.units), size=number)
        c = counts.astype(float)
        return {"lstd": self.lstd(c), "drl:lam=1": self.dr(c), "pdis": self.pdis(c)}

    @property
    def half(self) -> float:
        """Half of lstd's 95 % interval."""
        return float(1.96 * np.std(self.drawn["lstd"]))

    def spectrum(self, eta: float = 0.0) -> float:
        """The least real part of an eigenvalue of A + eta G."""
        return float(np.linalg.eigvals(self.A + eta * self.G).real.min())

"""The names in the loop of a Horde: its arrays, and what a law's arguments are called."""

from __future__ import annotations

from steadytd.base.files import file_name
from steadytd.engine.facts import CARRIED
from steadytd.engine.law import Function, Law
from steadytd.engine.step.old import FEATURES, Loop
from steadytd.hordes.loop.shape import LANES, SLOTS, LoopShape

COLUMNS = {
    "reward": "cumulants[t, column_c[j]]",
    "gamma_next": "discounts[t, column_d[j]]",
    "rho": "rhos[t, column_p[j]]",
    "pi": "pis[t, column_p[j]]",
    "mu": "mus[t, column_p[j]]",
    "peak_min": "peaks_min[t, column_p[j]]",
    "peak_max": "peaks_max[t, column_p[j]]",
    "interest": "interests[t]",
}
TABLES = (
    "cumulants", "discounts", "rhos", "pis", "mus", "peaks_min", "peaks_max", "interests",
    "carries", "factors", "dots", "first_x", "feature_x", "value_x",
    "first_x_next", "feature_x_next", "value_x_next",
)  # fmt: skip
PLACES = ("column_c", "column_p", "column_d", "column_s", "group_of", "starts")
DOTS = {"x_x": 0, "x_x_next": 1, "x_next_x_next": 2}

HEADER = '''"""The Horde loop of {name}, {path}. Written by steadytd.hordes.write; do not edit."""

import numpy as np
from numba import njit

from steadytd.engine.step.vectors import add_at, add_product, ask, eight, put, same, spread

real = np.{dtype}


@njit(nogil=True, error_model="numpy", **disjoint,
      no_cpython_wrapper=True, no_cfunc_wrapper=True)
def advance({arguments}):
'''
DRIVER = """

@njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def run(V, Z, slots, scales, groups, sums, lanes, params, heads, begins, {places}, {tables},
        out, low, high):
    size, features = {size}, V.shape[1]
    reads = np.zeros(({reads}, size), dtype=real)
    wide = np.zeros(({wide}, size))
    shift = np.zeros(({shift}, {slots}, size), dtype=real)
    for b in range(low, high):
        count = begins[b + 1] - begins[b]
        zx = np.zeros(({zx}, {slots} + 1, count))
        small = np.zeros(({small}, count))
{views}        advance({given})
"""


class Names(Loop):
    """Names and shapes of all that the loop of one block of predictions works on."""

    groups, group = "range(count)", "group_of[j]"  # those of the block, and that of prediction j

    def __init__(self, law: Law, traced: bool, dtype: str) -> None:
        super().__init__(law, traced, averaged=False)
        self.dtype, self.size = dtype, LANES[dtype]
        self.shape = LoopShape(law, traced)
        wanted = [*self.reads.values(), *self.before.values(), ("w", "x"), ("w", "x_next")]
        wanted += [(v, "x") for v, _ in self.shape.lane_products]
        rows = [(v, b) for v, b in wanted if v in law.vectors and b in FEATURES]
        self.rows = tuple(dict.fromkeys(rows))  # inner products over rows of the weights
        # what is written at x and at x_next; a trace's new entry is written at x
        self.at_x = tuple(v for v in law.vectors if self.parts(v) & {"x"} or self.along_of(v))
        self.at_next = tuple(v for v in law.vectors if "x_next" in self.parts(v))

    def parts(self, vector: str) -> set[str]:
        """What a vector is changed along, where a trace that is not stored is part of x."""
        return set(self.stored_writes()[vector])

    def along_of(self, vector: str) -> list[str]:
        """The stored traces that a vector is changed along."""
        return [z for v, z in self.shape.along if v == vector]

    # Names and shapes of the arrays that last for one step

    def read_rows(self) -> list[str]:
        """Of the weights' own type."""
        reads = [f"row_{v}_{b}" for v, b in self.rows]
        return reads + [f"by_x_{v}" for v in self.at_x] + [f"by_x_next_{v}" for v in self.at_next]

    def wide_rows(self) -> list[str]:
        """Doubles, one per prediction."""
        return [f"{v}_{b}" for v, b in self.rows] + [f"along_{v}_{z}" for v, z in self.shape.along]

    def shift_rows(self) -> list[str]:
        """One number per generation and prediction: what moving an entry on adds to V."""
        return [f"shift_{v}_{z}" for v, z in self.shape.along]

    def bucket_rows(self) -> list[str]:
        """One number per generation and group."""
        return [f"{a}_{z}" for z in self.shape.traces for a in ("zx", "zn", "ratio")]

    def small_rows(self) -> list[str]:
        """One number per group."""
        names = ("decay", "scale", "fresh", "old_x", "old_x_next", "now_x", "now_x_next")
        return [f"{a}_{z}" for z in self.shape.traces for a in names]

    def state_views(self) -> dict[str, str]:
        """The arrays of a block that last, and how the driver finds them."""
        shape, views = self.shape, {}
        for v in shape.vectors:
            views[f"V_{v}"] = "V[b]"  # all name one table, but v has its own lanes, from `at_{v}`
        for i, z in enumerate(shape.traces):
            cells = "begins[b] * features : begins[b + 1] * features"
            table = f"[{i}, {cells}].reshape((features, count))"
            views |= {f"Z_{z}": f"Z{table}", f"slot_{z}": f"slots{table}"}
            groups = f"begins[b] * {SLOTS} : begins[b + 1] * {SLOTS}"
            views[f"c_{z}"] = f"scales[{2 * i}, {groups}].reshape(({SLOTS}, count))"
            views[f"peak_{z}"] = f"scales[{2 * i + 1}, {groups}].reshape(({SLOTS}, count))"
            views[f"head_{z}"] = f"heads[{i}, begins[b] : begins[b + 1]]"
        for i, (v, z) in enumerate(shape.along):
            views[f"S_{v}_{z}"] = f"sums[b, {i}]"
        for i, name in enumerate(shape.lane_rows):
            views[name] = f"lanes[b, {i}]"
        for i, name in enumerate(shape.group_rows):
            views[name] = f"groups[{i}, begins[b] : begins[b + 1]]"
        for i, name in enumerate(shape.params):
            views[name] = f"params[b, {i}]"
        return views

    def all_views(self) -> dict[str, str]:
        """State and scratch, one argument each: so the compiler knows that no two overlap."""
        scratch = {
            "reads": self.read_rows(), "wide": self.wide_rows(), "shift": self.shift_rows(),
            "zx": self.bucket_rows(), "small": self.small_rows(),
        }  # fmt: skip
        named = {
            n: f"{array}[{i}]" for array, names in scratch.items() for i, n in enumerate(names)
        }
        places = {name: f"{name}[b]" for name in PLACES if name != "starts"}
        places["starts"] = "starts[begins[b] + b : begins[b + 1] + b + 1]"
        return {**self.state_views(), **named, **places, "delta": "out[:, b]"}

    def module(self, path: str = "", shown: int = 0) -> str:
        """The source of the whole module."""
        views = self.all_views()
        given = ", ".join([*views, *TABLES])
        header = HEADER.format(
            name=file_name(self.law.name), dtype=self.dtype, arguments=given,
            path="with trace vectors" if self.traced else "without trace vectors",
        )  # fmt: skip
        local = "".join(f"        own_{n} = {expression}\n" for n, expression in views.items())
        driver = DRIVER.format(
            places=", ".join(PLACES), tables=", ".join(TABLES), views=local, slots=SLOTS,
            given=", ".join([*(f"own_{n}" for n in views), *TABLES]), reads=len(self.read_rows()),
            wide=len(self.wide_rows()), shift=len(self.shift_rows()), zx=len(self.bucket_rows()),
            small=len(self.small_rows()), size=self.size,
        )  # fmt: skip
        return header + self.body() + driver

    # What a law's argument is called

    def argument(self, name: str) -> str:
        """What a law's argument is called in the loop, for prediction j of group g."""
        law = self.law
        if name == "alpha":
            return "_alpha[j] * factors[t, column_s[j]]"
        if name in law.params or name in law.memory:
            return f"_{name}[j]"
        if name in COLUMNS:
            return COLUMNS[name]
        if name in CARRIED:
            return f"last_{name}[j]"
        if name in DOTS:
            return f"dots[t, {DOTS[name]}]"
        return self.product(*law.products[name])

    def product(self, left: str, right: str) -> str:
        """An inner product that depends on the prediction or on its trace."""
        traces = self.law.traces
        if not self.traced and {left, right} & set(traces):  # z is a multiple of x
            scales = [f"scale_{part}" for part in (left, right) if part in traces]
            inner = f"{self.untraced(left)}_{self.untraced(right)}"
            plain = f"dots[t, {DOTS[inner]}]" if inner in DOTS else f"{inner}[j]"
            return " * ".join([*scales, plain])
        if left in traces and right in FEATURES:
            return f"now_{right}_{left}[g]"
        if left in traces:
            return f"kept_{left}_{right}[g]"
        return f"kept_{left}_{right}[j]" if right in traces else f"{left}_{right}[j]"

    def call_trace(self, z: str, function: Function) -> str:
        """A call of a trace's function, with inner products from before it moves on."""
        before: dict[str, str] = {}
        for name, (left, right) in self.before.items():
            stands = self.product(left, right) if self.traced else "0.0"
            before[name] = stands.replace("now_x", "old_x")
        return self.call(function, f"trace_{z}", **before)

    def active(self, depth: int, basis: str, name: str = "q", k: str = "k") -> None:
        """Feature number and value of entry `name` of a basis."""
        self.add(depth, f"{k} = np.uintp(feature_{basis}[{name}])")
        self.add(depth, f"x_{k} = value_{basis}[{name}]")

    def over_group(self, depth: int, *lines: str) -> None:
        """Lines for every prediction j of group g."""
        if lines:
            self.add(depth, "for j in range(starts[g], starts[g + 1]):")
            self.add(depth + 1, *lines)

    def vectors_along(self, z: str) -> list[str]:
        """The vectors that a trace writes."""
        return [v for v, y in self.shape.along if y == z]

    def add_rows(self, depth: int, basis: str, vectors: tuple[str, ...]) -> None:
        """One row of each vector; one whose multiples are all 0 is left alone, and not fetched."""
        for v in vectors:
            self.add(depth, f"if moves_by_{basis}_{v}:", "    for j in range(size):")
            self.add(depth + 2, f"V_{v}[k, at_{v} + j] += by_{basis}_{v}[j] * x_k")

"""Writes the loop of a Horde: many predictions of one law, each with its own facts, on one stream.

Weights are stored feature-major in blocks of lanes, `V_w[feature, lane]`, so an active feature is
one contiguous run and the compiler vectorises over predictions without reordering an addition.

**Traces cost what the active features cost.** A trace decays as a whole and grows at the active
features only, so it is kept scaled, and so is what it writes. For a *generation* e of entries

    z = sum_e c_e Z_e,        v = f (V + sum_e S_e Z_e)          for every vector v that z writes,

where each feature is in one generation (`slot`). Then, exactly,

    z <- decay z + scale x     c_e *= decay; an active k moves to the present generation p:
                               V_k += (S_e - r S_p) Z_k,  Z_k <- r Z_k  with  r = c_e / c_p;
                               Z_k += (scale / c_p) x_k,  V_k -= S_p (scale / c_p) x_k
    v += m z                   S_e += m c_e / f
    v += m x,  v += m v        V_k += (m / f) x_k,   f *= 1 + m
    v.x                        f (V.x + sum_e S_e (Z_e.x))

so a step costs O(active features), and what it adds to V lies on rows that it visits anyway. When
c_p has fallen below FALL of its peak (or is 0: rho = 0, a new episode), a new generation begins;
the rounding error of v is 1e-16 / FALL. Of SLOTS generations the oldest is written out: its trace
is 0, or has decayed by more than GONE. Where it has not (a trace that grows and falls in turn), all
are written out and begin again as one. Z and c belong to a *group*: the predictions of a block
whose traces are equal. S belongs to a prediction. Products of a trace are carried as numbers:

    z.y <- d_z d_y z.y + d_z s_y z.x + s_z d_y y.x + s_z s_y x.x
    h.z <- d_z h.z + s_z h.x   when z moves;    h.z += m z.z + n x.z + ...   when h += m z + n x + ...

Without trace vectors (lam = 0) the loop does the arithmetic of `engine.loop.write` in its order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from steadytd.base.files import file_name
from steadytd.engine.facts import CARRIED
from steadytd.engine.law import Function, Law, arguments
from steadytd.engine.loop.write import FEATURES, Loop, lane_params

SLOTS = 8
NONE = 255  # the slot of a feature that is in no generation
FALL = {"float64": 1e-4, "float32": 0.03}
GONE = {"float64": 1e-20, "float32": 1e-10}
RISE = 1e50  # a scale beyond this begins a new generation
SHRUNK = {"float64": 1e-100, "float32": 1e-10}  # a factor f beyond this or its inverse is put into V
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
UNROLL = 4


@dataclass(frozen=True)
class Shape:
    """What the loop of a law keeps, in the order of the arrays' rows."""

    law: Law
    traced: bool
    vectors: tuple[str, ...] = field(init=False)
    traces: tuple[str, ...] = field(init=False)
    along: tuple[tuple[str, str], ...] = field(init=False)  # (vector, trace that writes it)
    carried: tuple[str, ...] = field(init=False)
    factors: tuple[str, ...] = field(init=False)  # vectors with a factor f
    lane_products: tuple[tuple[str, str], ...] = field(init=False)  # h.z
    group_products: tuple[tuple[str, str], ...] = field(init=False)  # z.y

    def __post_init__(self) -> None:
        law, put = self.law, object.__setattr__
        traces = tuple(law.traces) if self.traced else ()
        put(self, "vectors", law.vectors)
        put(self, "traces", traces)
        put(self, "along", tuple((v, z) for v in law.vectors for z in traces if z in law.writes[v]))
        put(self, "carried", tuple(now for now in CARRIED if now in law.asked))
        put(self, "factors", tuple(v for v in law.vectors if v in law.writes[v]))
        asked = [law.products[name] for name in law.products if name in law.asked]
        lanes = [(v, z) for v, z in asked if v in law.vectors and z in traces]
        groups = [(z, y) for z, y in asked if z in traces and y in traces]
        groups += [(z, y) for v, z in lanes for y in traces if y in law.writes[v]]
        put(self, "lane_products", tuple(dict.fromkeys(lanes)))
        put(self, "group_products", tuple(dict.fromkeys(groups)))

    @property
    def lane_rows(self) -> tuple[str, ...]:
        """One number per prediction that lasts from step to step."""
        memory = [f"_{m}" for m in self.law.memory]
        products = [f"kept_{v}_{z}" for v, z in self.lane_products]
        return (*memory, *(f"last_{c}" for c in self.carried), *products,
                *(f"f_{v}" for v in self.factors))  # fmt: skip

    @property
    def group_rows(self) -> tuple[str, ...]:
        """One number per group that lasts from step to step."""
        return tuple(f"kept_{z}_{y}" for z, y in self.group_products)

    @property
    def params(self) -> tuple[str, ...]:
        """The hyper-parameters, one row each."""
        return tuple(f"_{name}" for name in lane_params(self.law))


def fits(law: Law, traced: bool, averaged: bool) -> bool:
    """Whether a law can be written so that a step costs O(active features).

    Not where a step changes all features at once: maps, whole other vectors, windows, averages,
    solved systems.
    """
    vectors = set(law.vectors)
    if law.block is not None or law.maps or law.windows or averaged:
        return False
    whole = any(set(law.writes[v]) & (vectors - {v}) for v in vectors)
    both = any(set(law.products[name]) <= vectors for name in law.products if name in law.asked)
    return not (whole or both)


def source_double(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the module that runs `law` with weights of eight bytes."""
    return Writer(law, traced, "float64").module()


def source_single(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the module that runs `law` with weights of four bytes."""
    return Writer(law, traced, "float32").module()


HEADER = '''"""The Horde loop of {name}, {path}. Written by steadytd.horde.write; do not edit."""

import numpy as np
from numba import njit

real = np.{dtype}


@njit(nogil=True, error_model="numpy", pipeline_class=Disjoint,
      no_cpython_wrapper=True, no_cfunc_wrapper=True)
def advance({arguments}):
'''
DRIVER = """

@njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)
def run(V, Z, slots, scales, groups, sums, lanes, params, heads, begins, {places}, {tables},
        out, low, high):
    size, features = V.shape[3], V.shape[2]
    reads = np.zeros(({reads}, size), dtype=real)
    wide = np.zeros(({wide}, size))
    shift = np.zeros(({shift}, {slots}, size), dtype=real)
    for b in range(low, high):
        count = begins[b + 1] - begins[b]
        zx = np.zeros(({zx}, {slots}, count))
        small = np.zeros(({small}, count))
{views}        advance({given})
"""


class Writer(Loop):
    """Writes the body of `advance` for one block of predictions."""

    def __init__(self, law: Law, traced: bool, dtype: str) -> None:
        super().__init__(law, traced, averaged=False)
        self.dtype = dtype
        self.shape = Shape(law, traced)
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
        for i, v in enumerate(shape.vectors):
            views[f"V_{v}"] = f"V[b, {i}]"
        for i, z in enumerate(shape.traces):
            cells = "begins[b] * features : begins[b + 1] * features"
            views[f"Z_{z}"] = f"Z[{i}, {cells}].reshape((features, count))"
            views[f"slot_{z}"] = f"slots[{i}, {cells}].reshape((features, count))"
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
        named = {n: f"{array}[{i}]" for array, names in scratch.items() for i, n in enumerate(names)}
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
            small=len(self.small_rows()),
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

    # The loop

    def body(self) -> str:
        """The body of `advance`."""
        self.add(0, "features, size = V_w.shape", "count = len(starts) - 1")
        self.add(0, "for t in range(len(first_x) - 1):")
        self.read_all(1)
        if self.traced:
            self.buckets(1)
        self.combine(1)
        self.remember(1)
        if self.traced:
            self.move_traces(1)
        self.apply(1)
        self.sum_up(1)
        self.write_rows(1)
        self.carry_over(1)
        return "\n".join(self.lines) + "\n"

    def active(self, depth: int, basis: str, name: str = "q", k: str = "k") -> None:
        """Feature number and value of entry `name` of a basis."""
        self.add(depth, f"{k} = np.uintp(feature_{basis}[{name}])")
        self.add(depth, f"x_{k} = value_{basis}[{name}]")

    def read_all(self, depth: int) -> None:
        """Sums over rows of weights, several rows at a time but in order."""
        for basis in FEATURES:
            wanted = [v for v, b in self.rows if b == basis]
            self.add(depth, "for j in range(size):")
            self.add(depth + 1, *(f"row_{v}_{basis}[j] = 0.0" for v in wanted))
            self.add(depth, f"begin, end = first_{basis}[t], first_{basis}[t + 1]")
            self.add(depth, f"whole = begin + (end - begin) // {UNROLL} * {UNROLL}")
            self.add(depth, f"for q in range(begin, whole, {UNROLL}):")
            for i in range(UNROLL):
                self.active(depth + 1, basis, f"q + {i}", f"k{i}")
            self.add(depth + 1, "for j in range(size):")
            for v in wanted:
                total = f"row_{v}_{basis}[j]"
                for i in range(UNROLL):
                    total = f"({total} + V_{v}[k{i}, j] * x_k{i})"
                self.add(depth + 2, f"row_{v}_{basis}[j] = {total}")
            self.add(depth, "for q in range(whole, end):")
            self.active(depth + 1, basis)
            self.add(depth + 1, "for j in range(size):")
            self.add(depth + 2, *(f"row_{v}_{basis}[j] += V_{v}[k, j] * x_k" for v in wanted))

    def buckets(self, depth: int) -> None:
        """Z_e.x and Z_e.x_next of every generation and group, before the traces move on."""
        self.add(depth, f"for e in range({SLOTS}):", "    for g in range(count):")
        names = [f"{a}_{z}[e, g] = 0.0" for z in self.shape.traces for a in ("zx", "zn")]
        self.add(depth + 2, *names)
        for basis, bucket in (("x", "zx"), ("x_next", "zn")):
            self.add(depth, f"for q in range(first_{basis}[t], first_{basis}[t + 1]):")
            self.active(depth + 1, basis)
            self.add(depth + 1, "for g in range(count):")
            for z in self.shape.traces:
                self.add(depth + 2, f"e = np.uintp(slot_{z}[k, g])", f"if e < {SLOTS}:")
                self.add(depth + 3, f"{bucket}_{z}[e, g] += Z_{z}[k, g] * x_k")

    def combine(self, depth: int) -> None:
        """Whole inner products of the vectors with x and x_next, and the TD error."""
        self.add(depth, "for j in range(size):")
        if self.traced:
            self.add(depth + 1, "g = group_of[j]")
        for v, basis in self.rows:
            name, bucket = f"{v}_{basis}", "zx" if basis == "x" else "zn"
            self.add(depth + 1, f"total = np.float64(row_{name}[j])")
            for z in self.along_of(v):
                self.add(depth + 1, f"for e in range({SLOTS}):")
                self.add(depth + 2, f"total += S_{v}_{z}[e, j] * {bucket}_{z}[e, g]")
            factor = f"f_{v}[j] * " if v in self.shape.factors else ""
            self.add(depth + 1, f"{name}[j] = {factor}total")
        reward, gamma = COLUMNS["reward"], COLUMNS["gamma_next"]
        self.add(depth + 1, f"delta[t, j] = {reward} + {gamma} * w_x_next[j] - w_x[j]")

    def remember(self, depth: int) -> None:
        """Move the memory on."""
        for m, function in self.law.memory.items():
            if function is not None:
                self.add(depth, "for j in range(size):")
                self.add(depth + 1, f"_{m}[j] = {self.call(function, f'memory_{m}')}")

    def move_traces(self, depth: int) -> None:
        """c, generations and carried products of every group; the entries wait for the rows."""
        self.add(depth, "for g in range(count):", "    j = starts[g]")
        inner = depth + 1
        for z in self.shape.traces:
            self.add(inner, f"old_x_{z}[g] = old_x_next_{z}[g] = 0.0", f"for e in range({SLOTS}):")
            self.add(inner + 1, f"old_x_{z}[g] += c_{z}[e, g] * zx_{z}[e, g]")
            self.add(inner + 1, f"old_x_next_{z}[g] += c_{z}[e, g] * zn_{z}[e, g]")
        for z, function in self.law.traces.items():
            self.add(inner, f"decay_{z}[g], scale_{z}[g] = {self.call_trace(z, function)}")
        for z in self.shape.traces:
            self.add(inner, f"total_x = total_x_next = 0.0", f"for e in range({SLOTS}):")
            self.add(inner + 1, f"c_{z}[e, g] *= decay_{z}[g]")
            self.add(inner + 1, f"total_x += c_{z}[e, g] * zx_{z}[e, g]")
            self.add(inner + 1, f"total_x_next += c_{z}[e, g] * zn_{z}[e, g]")
            self.add(inner, f"now_x_{z}[g] = total_x + scale_{z}[g] * dots[t, 0]")
            self.add(inner, f"now_x_next_{z}[g] = total_x_next + scale_{z}[g] * dots[t, 1]")
        for z, y in self.shape.group_products:
            self.add(inner, f"kept_{z}_{y}[g] = decay_{z}[g] * decay_{y}[g] * kept_{z}_{y}[g]"
                     f" + decay_{z}[g] * scale_{y}[g] * old_x_{z}[g]"
                     f" + scale_{z}[g] * decay_{y}[g] * old_x_{y}[g]"
                     f" + scale_{z}[g] * scale_{y}[g] * dots[t, 0]")  # fmt: skip
        moved = "kept_{v}_{z}[j] = decay_{z}[g] * kept_{v}_{z}[j] + scale_{z}[g] * {v}_x[j]"
        self.over_group(inner, *(moved.format(v=v, z=z) for v, z in self.shape.lane_products))
        for z in self.shape.traces:
            self.generation(inner, z)

    def over_group(self, depth: int, *lines: str) -> None:
        """Lines for every prediction j of group g."""
        if lines:
            self.add(depth, "for j in range(starts[g], starts[g + 1]):")
            self.add(depth + 1, *lines)

    def generation(self, depth: int, z: str) -> None:
        """Begin a new generation where the present one has decayed; how entries move to it."""
        along = [v for v, y in self.shape.along if y == z]
        self.add(depth, f"p = head_{z}[g]")
        self.add(depth, f"if peak_{z}[p, g] == 0.0:  # nothing in it yet", f"    c_{z}[p, g] = 1.0")
        fall, gone = FALL[self.dtype], GONE[self.dtype]
        size = f"abs(c_{z}[p, g])"
        self.add(depth, f"elif not ({size} > {fall} * peak_{z}[p, g] and {size} < {RISE}):")
        inner = depth + 1
        self.add(inner, f"old, p = p, (p + 1) % {SLOTS}", f"head_{z}[g] = p")
        self.add(inner, f"if peak_{z}[p, g] > 0.0:  # the oldest is written out, or all are")
        self.add(inner + 1, f"every = abs(c_{z}[p, g]) > {gone} * peak_{z}[p, g]")
        self.add(inner + 1, "for k in range(features):", f"    e = np.intp(slot_{z}[k, g])")
        self.add(inner + 2, f"if e == p or (every and e < {SLOTS}):")
        self.add(inner + 3, f"z_k = Z_{z}[k, g]")
        self.over_group(inner + 3, *(f"V_{v}[k, j] += real(S_{v}_{z}[e, j] * z_k)" for v in along))
        self.add(inner + 3, f"Z_{z}[k, g] = c_{z}[e, g] * z_k if every else 0.0")
        self.add(inner + 3, f"slot_{z}[k, g] = p if every else {NONE}")
        self.add(inner + 1, "if every:", f"    for e in range({SLOTS}):")
        self.add(inner + 3, f"c_{z}[e, g] = peak_{z}[e, g] = 0.0")
        self.over_group(inner + 3, *(f"S_{v}_{z}[e, j] = 0.0" for v in along))
        self.add(inner + 2, f"peak_{z}[p, g] = 1.0")
        self.add(inner + 1, "else:", f"    peak_{z}[p, g] = 0.0")
        self.add(inner, f"c_{z}[p, g] = 1.0")
        self.over_group(inner, *(f"S_{v}_{z}[p, j] = 0.0" for v in along))
        self.add(depth, f"fresh_{z}[g] = scale_{z}[g] / c_{z}[p, g]")
        self.add(depth, f"if scale_{z}[g] != 0.0:")
        self.add(inner, f"peak_{z}[p, g] = max(peak_{z}[p, g], abs(c_{z}[p, g]))")
        self.add(inner, f"for e in range({SLOTS}):")
        self.add(inner + 1, f"ratio_{z}[e, g] = c_{z}[e, g] / c_{z}[p, g]")
        moved = "S_{v}_{z}[e, j] - ratio_{z}[e, g] * S_{v}_{z}[p, j]"
        lines = (f"shift_{v}_{z}[e, j] = {moved.format(v=v, z=z)}" for v in along)
        self.over_group(inner + 1, *lines)

    def apply(self, depth: int) -> None:
        """Call the law; its multiples of x and x_next, per unit of the factor f."""
        law, shape = self.law, self.shape
        targets = [f"by_x_{v}" for v in self.at_x] + [f"by_x_next_{v}" for v in self.at_next]
        self.add(depth, *(f"moves_{name} = False" for name in targets))
        self.add(depth, "for j in range(size):")
        inner = depth + 1
        if self.traced:
            self.add(inner, "g = group_of[j]")
        idle = law.idle_at_rho_zero and not self.traced
        if idle:  # as in a run: such a step is skipped, whatever the numbers are
            self.add(inner, f"if {COLUMNS['rho']} == 0.0:")
            self.add(inner + 1, *(f"{name}[j] = 0.0" for name in targets), "continue")
        if not self.traced:
            for z, function in law.traces.items():
                self.add(inner, f"_, scale_{z} = {self.call_trace(z, function)}")
        returned = [
            f"({', '.join(names)})" if len(names) > 1 else names[0]
            for names in ([f"{v}_by_{p}" for p in parts] for v, parts in law.writes.items())
        ]
        self.add(inner, f"{', '.join(returned)} = {self.call(law.update, 'update')}")
        for v, z in shape.lane_products:
            self.carry_product(inner, v, z)
        for v in shape.factors:
            self.factor(inner, v)
        for v, z in shape.along:
            self.add(inner, f"along_{v}_{z}[j] = {self.per_factor(v, f'{v}_by_{z}')}")
        for v in self.at_x:
            terms = []
            for part in law.writes[v]:
                if part == "x":
                    terms.append(f"{v}_by_x")
                elif not self.traced and part in law.traces:
                    terms.append(f"{v}_by_{part} * scale_{part}")
            total = self.per_factor(v, " + ".join(terms)) if terms else "0.0"
            for z in self.along_of(v):  # its new entry at x must not change the vector
                total += f" - S_{v}_{z}[head_{z}[g], j] * fresh_{z}[g]"
            self.add(inner, f"by_x_{v}[j] = {total}")
        for v in self.at_next:
            self.add(inner, f"by_x_next_{v}[j] = {self.per_factor(v, f'{v}_by_x_next')}")
        self.add(inner, *(f"moves_{name} |= {name}[j] != 0.0" for name in targets))
        self.add(inner, *(f"_{m}[j] = {m}_by_value" for m in law.memory if m in law.writes))

    def per_factor(self, vector: str, multiple: str) -> str:
        """A multiple of something added to f V is that multiple / f added to V."""
        return f"({multiple}) / f_{vector}[j]" if vector in self.shape.factors else multiple

    def carry_product(self, depth: int, v: str, z: str) -> None:
        """v.z after v was changed."""
        kept = f"kept_{v}_{z}[j]"
        terms = [f"(1.0 + {v}_by_{v}) * {kept}" if v in self.shape.factors else kept]
        for part in self.law.writes[v]:
            if part in FEATURES:
                terms.append(f"{v}_by_{part} * now_{part}_{z}[g]")
            elif part in self.shape.traces:
                pair = f"kept_{part}_{z}[g]" if (part, z) in self.shape.group_products else (
                    f"kept_{z}_{part}[g]")  # fmt: skip
                terms.append(f"{v}_by_{part} * {pair}")
        self.add(depth, f"{kept} = {' + '.join(terms)}")

    def factor(self, depth: int, v: str) -> None:
        """v += m v is one multiplication; a factor that leaves its range is put into V."""
        least = SHRUNK[self.dtype]
        self.add(depth, f"f_{v}[j] *= 1.0 + {v}_by_{v}", f"size_f = abs(f_{v}[j])")
        self.add(depth, f"if not {least} < size_f < {1 / least}:")
        self.add(depth + 1, "for k in range(features):")
        self.add(depth + 2, f"V_{v}[k, j] = real(f_{v}[j] * V_{v}[k, j])")
        for z in self.along_of(v):
            self.add(depth + 1, f"for e in range({SLOTS}):")
            self.add(depth + 2, f"S_{v}_{z}[e, j] *= f_{v}[j]", f"shift_{v}_{z}[e, j] *= f_{v}[j]")
        self.add(depth + 1, f"f_{v}[j] = 1.0")

    def sum_up(self, depth: int) -> None:
        """v += m z for the entries that are there: S_e += m c_e."""
        if self.shape.along:
            self.add(depth, f"for e in range({SLOTS}):", "    for j in range(size):")
            self.add(depth + 2, "g = group_of[j]")
        for v, z in self.shape.along:
            self.add(depth + 2, f"S_{v}_{z}[e, j] += along_{v}_{z}[j] * c_{z}[e, g]")

    def write_rows(self, depth: int) -> None:
        """What is added at the active features: entries that move on, x, then x_next."""
        if self.at_x or self.shape.traces:
            self.add(depth, "for q in range(first_x[t], first_x[t + 1]):")
            self.active(depth + 1, "x")
            for z in self.shape.traces:
                self.move_entries(depth + 1, z)
            self.add_rows(depth + 1, "x", self.at_x)
        if self.at_next:
            self.add(depth, f"if {' or '.join(f'moves_by_x_next_{v}' for v in self.at_next)}:")
            self.add(depth + 1, "for q in range(first_x_next[t], first_x_next[t + 1]):")
            self.active(depth + 2, "x_next")
            self.add_rows(depth + 2, "x_next", self.at_next)

    def add_rows(self, depth: int, basis: str, vectors: tuple[str, ...]) -> None:
        """One row of each vector; one whose multiples are all 0 is left alone, and not fetched."""
        for v in vectors:
            self.add(depth, f"if moves_by_{basis}_{v}:", "    for j in range(size):")
            self.add(depth + 2, f"V_{v}[k, j] += by_{basis}_{v}[j] * x_k")

    def move_entries(self, depth: int, z: str) -> None:
        """Entry k of a trace moves to the present generation and grows, without a change of v."""
        along = [v for v, y in self.shape.along if y == z]
        self.add(depth, "for g in range(count):", f"    if scale_{z}[g] != 0.0:")
        inner = depth + 2
        self.add(inner, f"p = head_{z}[g]", f"e = np.uintp(slot_{z}[k, g])", "entry = 0.0")
        self.add(inner, "if e == np.uintp(p):", f"    entry = Z_{z}[k, g]")
        self.add(inner, f"elif e < {SLOTS}:")
        self.add(inner + 1, f"z_k = real(Z_{z}[k, g])")
        self.over_group(inner + 1, *(f"V_{v}[k, j] += shift_{v}_{z}[e, j] * z_k" for v in along))
        self.add(inner + 1, f"entry = ratio_{z}[e, g] * Z_{z}[k, g]")
        self.add(inner, f"Z_{z}[k, g] = entry + fresh_{z}[g] * np.float64(x_k)")
        self.add(inner, f"slot_{z}[k, g] = p")

    def carry_over(self, depth: int) -> None:
        """What this step hands to the next."""
        if self.shape.carried:
            self.add(depth, "for j in range(size):")
        for now in self.shape.carried:
            fact = COLUMNS["gamma_next" if now == "gamma" else CARRIED[now]]
            held = f"{fact} * carries[t]" if now == "gamma" else fact
            self.add(depth + 1, f"last_{now}[j] = {held}")


def asked_by_traces(law: Law) -> set[str]:
    """All that decides a trace: what its function asks for, and the memory that it asks for."""
    asked: set[str] = set()
    waiting = [name for f in law.traces.values() for name in arguments(f)]
    while waiting:
        name = waiting.pop()
        if name not in asked:
            asked.add(name)
            function = law.memory.get(name)
            waiting += arguments(function) if function is not None else ()
    return asked

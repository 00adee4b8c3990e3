"""Writes the loop of a Horde: many predictions of one law, each with its own facts, on one stream.

Weights are stored feature-major in blocks of lanes, `V[feature, lane of w, lane of h, ...]`, so an
active feature is one contiguous run of all vectors and the compiler vectorises over predictions
without reordering an addition.

Traces cost what the active features cost: see `traces`. Without trace vectors (lam = 0) the loop
does the arithmetic of `engine.step.write` in its order.
"""

from __future__ import annotations

from steadytd.engine.facts import CARRIED
from steadytd.engine.law import Law
from steadytd.engine.step.old import FEATURES, multiples
from steadytd.hordes.loop.names import COLUMNS
from steadytd.hordes.loop.shape import SLOTS
from steadytd.hordes.loop.traces import Traces

UNROLL = 4  # rows that are read together
FEW = 8  # groups of a block up to which a row is written group by group
SHRUNK = {
    "float64": 1e-100,
    "float32": 1e-10,
}  # a factor f beyond this or its inverse is put into V


def source_double(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the module that runs `law` with weights of eight bytes."""
    return Writer(law, traced, "float64").module()


def source_single(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the module that runs `law` with weights of four bytes."""
    return Writer(law, traced, "float32").module()


class Writer(Traces):
    """Writes the body of `advance` for one block of predictions."""

    def body(self) -> str:
        """The body of `advance`."""
        self.sizes()
        self.add(0, "count = len(starts) - 1")
        self.add(0, "for t in range(len(first_x) - 1):")
        if self.traced:
            self.clear_buckets(1)
        self.read_all(1)
        self.combine(1)
        self.remember(1)
        if self.traced:
            self.move_traces(1)
        self.apply(1)
        self.sum_up(1)
        self.write_rows(1)
        self.carry_over(1)
        return "\n".join(self.lines) + "\n"

    def sizes(self) -> None:
        """How many features and lanes there are, and where the lanes of each vector begin."""
        self.add(0, f"features, size = len(V_w), np.uintp({self.size})")
        at = (f"at_{v} = np.uintp({i * self.size})" for i, v in enumerate(self.shape.vectors))
        self.add(0, *at)

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
            for i in range(UNROLL):
                self.fill_buckets(depth + 1, basis, f"k{i}")
            self.add(depth + 1, "for j in range(size):")
            for v in wanted:
                total = f"row_{v}_{basis}[j]"
                for i in range(UNROLL):
                    total = f"({total} + V_{v}[k{i}, at_{v} + j] * x_k{i})"
                self.add(depth + 2, f"row_{v}_{basis}[j] = {total}")
            self.add(depth, "for q in range(whole, end):")
            self.active(depth + 1, basis)
            self.fill_buckets(depth + 1, basis, "k")
            self.add(depth + 1, "for j in range(size):")
            self.add(
                depth + 2, *(f"row_{v}_{basis}[j] += V_{v}[k, at_{v} + j] * x_k" for v in wanted)
            )

    def combine(self, depth: int) -> None:
        """Whole inner products of the vectors with x and x_next, and the TD error."""
        self.add(depth, "for j in range(size):")
        self.add(depth + 1, *(f"{v}_{b}[j] = row_{v}_{b}[j]" for v, b in self.rows))
        for z in self.shape.traces:
            self.add(depth, f"for g in {self.groups}:", f"    for e in range({SLOTS}):")
            for basis, bucket in (("x", "zx"), ("x_next", "zn")):
                wanted = [v for v, b in self.rows if b == basis and v in self.vectors_along(z)]
                if wanted:
                    self.add(depth + 2, f"entry = {bucket}_{z}[e, g]", "if entry != 0.0:")
                lines = (f"{v}_{basis}[j] += S_{v}_{z}[e, j] * entry" for v in wanted)
                self.over_group(depth + 3, *lines)
            self.add(depth + 2, "pass")
        self.finish_products(depth)

    def finish_products(self, depth: int) -> None:
        """The factors of inner products, and the TD error."""
        self.add(depth, "for j in range(size):")
        scaled = [(v, b) for v, b in self.rows if v in self.shape.factors]
        self.add(depth + 1, *(f"{v}_{b}[j] *= f_{v}[j]" for v, b in scaled))
        reward, gamma = COLUMNS["reward"], COLUMNS["gamma_next"]
        self.add(depth + 1, f"delta[t, j] = {reward} + {gamma} * w_x_next[j] - w_x[j]")

    def remember(self, depth: int) -> None:
        """Move the memory on."""
        for m, function in self.law.memory.items():
            if function is not None:
                self.add(depth, "for j in range(size):")
                self.add(depth + 1, f"_{m}[j] = {self.call(function, f'memory_{m}')}")

    def apply(self, depth: int) -> None:
        """Call the law; its multiples of x and x_next, per unit of the factor f."""
        law, shape = self.law, self.shape
        targets = [f"by_x_{v}" for v in self.at_x] + [f"by_x_next_{v}" for v in self.at_next]
        self.add(depth, *(f"moves_{name} = False" for name in targets))
        self.add(depth, "for j in range(size):")
        inner = depth + 1
        if self.traced:
            self.add(inner, f"g = {self.group}")
        idle = law.idle_at_rho_zero and not self.traced
        if idle:  # as in a run: such a step is skipped, whatever the numbers are
            self.add(inner, f"if {COLUMNS['rho']} == 0.0:")
            self.add(inner + 1, *(f"{name}[j] = 0.0" for name in targets), "continue")
        if not self.traced:
            for z, function in law.traces.items():
                self.add(inner, f"_, scale_{z} = {self.call_trace(z, function)}")
        self.add(inner, f"{multiples(law)} = {self.call(law.update, 'update')}")
        for v, z in shape.lane_products:
            self.carry_product(inner, v, z)
        for v in shape.factors:
            self.factor(inner, v)
        for v, z in shape.along:
            self.add(inner, f"along_{v}_{z}[j] = {self.per_factor(v, f'{v}_by_{z}')}")
        for v in self.at_x:
            self.add(inner, f"by_x_{v}[j] = {self.multiple_of_x(v)}")
        for v in self.at_next:
            self.add(inner, f"by_x_next_{v}[j] = {self.per_factor(v, f'{v}_by_x_next')}")
        self.add(inner, *(f"moves_{name} |= {name}[j] != 0.0" for name in targets))
        self.add(inner, *(f"_{m}[j] = {m}_by_value" for m in law.memory if m in law.writes))

    def multiple_of_x(self, v: str) -> str:
        """What is added to V along x: the law's multiple, and what a new entry must not change."""
        terms = []
        for part in self.law.writes[v]:
            if part == "x":
                terms.append(f"{v}_by_x")
            elif not self.traced and part in self.law.traces:
                terms.append(f"{v}_by_{part} * scale_{part}")
        total = self.per_factor(v, " + ".join(terms)) if terms else "0.0"
        for z in self.along_of(v):
            total += f" - S_{v}_{z}[head_{z}[g], j] * fresh_{z}[g]"
        return total

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
        self.add(depth + 2, f"V_{v}[k, at_{v} + j] = real(f_{v}[j] * V_{v}[k, at_{v} + j])")
        for z in self.along_of(v):
            self.add(depth + 1, f"for e in range({SLOTS}):")
            self.add(depth + 2, f"S_{v}_{z}[e, j] *= f_{v}[j]", f"shift_{v}_{z}[e, j] *= f_{v}[j]")
        self.add(depth + 1, f"f_{v}[j] = 1.0")

    def write_rows(self, depth: int) -> None:
        """What is added at the active features: entries that move on, x, then x_next."""
        if len(self.shape.traces) == 1:
            (z,) = self.shape.traces
            self.add(depth, f"if count <= {FEW}:")
            self.write_groups(depth + 1, z)
            self.add(depth, "else:")
            self.write_x(depth + 1)
        elif self.at_x or self.shape.traces:
            self.write_x(depth)
        if self.at_next:
            self.add(depth, f"if {' or '.join(f'moves_by_x_next_{v}' for v in self.at_next)}:")
            self.add(depth + 1, "for q in range(first_x_next[t], first_x_next[t + 1]):")
            self.active(depth + 2, "x_next")
            self.add_rows(depth + 2, "x_next", self.at_next)

    def write_x(self, depth: int) -> None:
        """Rows of x: entries that move on, then the multiples of x."""
        self.add(depth, "for q in range(first_x[t], first_x[t + 1]):")
        self.active(depth + 1, "x")
        for z in self.shape.traces:
            self.move_entries(depth + 1, z)
        self.add_rows(depth + 1, "x", self.at_x)

    def carry_over(self, depth: int) -> None:
        """What this step hands to the next."""
        if self.shape.carried:
            self.add(depth, "for j in range(size):")
        for now in self.shape.carried:
            fact = COLUMNS["gamma_next" if now == "gamma" else CARRIED[now]]
            held = f"{fact} * carries[t]" if now == "gamma" else fact
            self.add(depth + 1, f"last_{now}[j] = {held}")

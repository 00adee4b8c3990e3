"""Writes the loop of one piece of `pieces`: eight predictions that share a trace."""

from __future__ import annotations

from steadytd.engine.law import Law
from steadytd.hordes.loop.lead import LISTS, logged_slots, logged_small, timed
from steadytd.hordes.loop.names import PLACES
from steadytd.hordes.loop.shape import SLOTS
from steadytd.hordes.loop.write import Writer

PIECE = 8  # predictions: as many as `engine.step.vectors` takes at a time
AHEAD = 12  # rows: so far ahead one that will be written is asked for


class Learn(Writer):
    """Takes eight predictions of one trace through all steps, with its log."""

    groups, group = "range(t, t + 1)", "t"

    def __init__(self, law: Law, traced: bool, dtype: str) -> None:
        super().__init__(law, traced, dtype)
        self.size = PIECE

    def views(self) -> dict[str, str]:
        """The arguments, and what the driver gives for them."""
        (z,) = self.shape.traces
        views = {f"V_{v}": "own_V" for v in self.shape.vectors}
        for i, (v, _) in enumerate(self.shape.along):
            rows = f"{i * SLOTS} : {(i + 1) * SLOTS}"
            views |= {f"S_{v}_{z}": f"own_sums[{rows}]", f"shift_{v}_{z}": f"shift[{i}]"}
        tables = {
            "own_lanes[{}]": self.shape.lane_rows, "own_params[{}]": self.shape.params,
            "reads[{}]": self.read_rows(), "wide[{}]": self.wide_rows(),
            "own_columns[{}]": PLACES[:4], "log_slots[{}, g]": logged_slots(self),
            "log_small[{}, g]": logged_small(self),
        }  # fmt: skip
        for place, names in tables.items():
            views |= {name: place.format(i) for i, name in enumerate(names)}
        views |= {f"head_{z}": "log_head[g]", "began": "log_began[g]", "live": "log_live[g]"}
        views |= {name: f"{name}[g]" for name in LISTS}
        return {**views, "delta": "own_delta", "follows": "follows[begin:]", **timed("begin")}

    def body(self) -> str:
        """The body of `learn`."""
        (z,) = self.shape.traces
        self.sizes()
        width = len(self.shape.vectors) * PIECE
        self.add(0, f"width = np.uintp({width})")
        self.add(0, *(f"flat_{v} = V_{v}.reshape(V_{v}.size)" for v in self.shape.vectors))
        flat = "flat_{0} = {0}.reshape({0}.size)"
        for name in ("shift", "S"):
            self.add(0, *(flat.format(f"{name}_{v}_{z}") for v in self.vectors_along(z)))
        self.add(0, *(f"sum_{v}_{b} = spread(0.0)" for v, b in self.rows))
        self.add(0, "ready = False", "for t in range(len(first_x) - 1):")
        self.read_all(1)
        self.combine(1)
        self.remember(1)
        self.add(1, "g = t")
        moved = "kept_{v}_{z}[j] = decay_{z}[g] * kept_{v}_{z}[j] + scale_{z}[g] * {v}_x[j]"
        self.over_group(1, *(moved.format(v=v, z=z) for v, z in self.shape.lane_products))
        self.generation(1, z)
        self.apply(1)
        self.sum_up(1)
        self.write_rows(1)
        self.carry_over(1)
        return "\n".join(self.lines) + "\n"

    def read_rows(self) -> list[str]:
        """Sums over rows are in registers."""
        return [name for name in super().read_rows() if not name.startswith("row")]

    def over_group(self, depth: int, *lines: str) -> None:
        """Lines for every prediction j of the piece."""
        if lines:
            self.add(depth, "for j in range(size):")
            self.add(depth + 1, *lines)

    def rows_of(self, depth: int, basis: str, written: bool = False) -> None:
        """The loop over rows of a basis: where each begins; its value.

        Rows that are to be written are asked for some rows ahead.
        """
        first = f"first_{basis}"
        self.add(depth, f"last = {first}[t + 1] - 1", f"for n in range({first}[t], last + 1):")
        if written:
            soon = f"np.uintp(feature_{basis}[np.uintp(min(n + {AHEAD}, last))]) * width"
            self.add(
                depth + 1, f"k = {soon}", *(f"ask(flat_{v}, k + at_{v})" for v in self.law.vectors)
            )
        self.add(depth + 1, "i = np.uintp(n)")
        self.add(
            depth + 1, f"k, x_k = np.uintp(feature_{basis}[i]) * width, same(value_{basis}, i)"
        )

    def read_all(self, depth: int) -> None:
        """Sums over rows of weights; those of x may have been taken when they were written."""
        self.add(depth, "if not ready:")
        self.sums(depth + 1, "x")
        self.sums(depth, "x_next")

    def sums(self, depth: int, basis: str, change: str = "") -> None:
        """Sums over the rows of a basis, each after a change."""
        name = "x_next" if change else basis
        wanted = [v for v, b in self.rows if b == basis]
        self.add(depth, *(f"sum_{v}_{basis} = spread(0.0)" for v in wanted))
        self.rows_of(depth, name, written=bool(change))
        for v in wanted:
            self.add(depth + 1, f"new = eight(flat_{v}, k + at_{v})")
            if change and v in self.at_next:
                self.add(depth + 1, f"new = add_product(new, next_{v}, x_k)")
                self.add(depth + 1, f"put(flat_{v}, k + at_{v}, new)")
            self.add(depth + 1, f"sum_{v}_{basis} = add_product(sum_{v}_{basis}, new, x_k)")

    def combine(self, depth: int) -> None:
        """Whole inner products of the vectors with x and x_next, and the TD error."""
        (z,) = self.shape.traces
        along = self.vectors_along(z)
        for basis, bucket in (("x", "zx"), ("x_next", "zn")):
            wanted = [v for v, b in self.rows if b == basis]
            self.add(depth, *(f"all_{v} = sum_{v}_{basis}" for v in wanted))
            self.slots(depth, f"{bucket}_{z}[t, e]", "!= 0.0")
            grown = "all_{v} = add_product(all_{v}, eight(flat_S_{v}_{z}, at), spread(entry))"
            self.add(depth + 2, *(grown.format(v=v, z=z) for v in wanted if v in along), "pass")
            self.add(depth, *(f"put({v}_{basis}, 0, all_{v})" for v in wanted))
        self.finish_products(depth)

    def slots(self, depth: int, entry: str, condition: str) -> None:
        """The loop over generations whose entry meets a condition; where their sums begin."""
        self.add(depth, f"for e in range({SLOTS}):", f"    entry = {entry}")
        self.add(depth + 1, f"if entry {condition}:", f"    at = np.uintp(e * {PIECE})")

    def generation(self, depth: int, z: str) -> None:
        """What `Lead` did, for the predictions."""
        along = self.vectors_along(z)
        self.add(depth, f"p = head_{z}[t]", "if began[t]:")
        inner = depth + 1
        self.add(inner, "for n in range(log_gone[t], log_gone[t + 1]):", "    i = np.uintp(n)")
        self.add(inner + 1, "k, z_k = np.uintp(gone_k[i]) * width, same(gone_z, i)")
        self.add(inner + 1, f"at = np.uintp(gone_e[i]) * np.uintp({PIECE})")
        gone = "put(flat_{v}, k + at_{v}, add_product(eight(flat_{v}, k + at_{v}), {S}, z_k))"
        self.add(inner + 1, *(gone.format(v=v, S=f"eight(flat_S_{v}_{z}, at)") for v in along))
        self.add(inner, "if began[t] == 2:", f"    for e in range({SLOTS}):")
        self.over_group(inner + 2, *(f"S_{v}_{z}[e, j] = 0.0" for v in along))
        self.over_group(inner, *(f"S_{v}_{z}[p, j] = 0.0" for v in along))
        self.add(depth, f"here = np.uintp(p * {PIECE})")
        self.add(depth, *(f"now_{v} = eight(flat_S_{v}_{z}, here)" for v in along))
        none = f"put(flat_shift_{{v}}_{z}, here, spread(-0.0))"  # of an entry that stays
        self.add(depth, *(none.format(v=v) for v in along))
        self.slots(depth, "live[t, e]", "")
        self.add(depth + 2, f"less = spread(-ratio_{z}[t, e])")
        for v in along:
            new = f"add_product(eight(flat_S_{v}_{z}, at), less, now_{v})"
            self.add(depth + 2, f"put(flat_shift_{v}_{z}, at, {new})")

    def sum_up(self, depth: int) -> None:
        """v += m z for the entries that are there: S_e += m c_e."""
        for v, z in self.shape.along:
            self.add(depth, f"m_{v} = eight(along_{v}_{z}, 0)")
        (z,) = self.shape.traces
        self.slots(depth, f"c_{z}[t, e]", "!= 0.0")
        for v in self.vectors_along(z):
            new = f"add_product(eight(flat_S_{v}_{z}, at), m_{v}, spread(entry))"
            self.add(depth + 2, f"put(flat_S_{v}_{z}, at, {new})")
        self.add(depth + 2, "pass")

    def write_rows(self, depth: int) -> None:
        """What is added at the active features: entries that move on, x, then x_next."""
        (z,) = self.shape.traces
        along = self.vectors_along(z)
        self.add(depth, *(f"by_{v} = eight(by_x_{v}, 0)" for v in self.at_x))
        self.add(depth, f"if scale_{z}[t] != 0.0:")
        self.rows_of(depth + 1, "x", written=True)
        self.add(depth + 2, f"z_k, e = same(row_z, i), np.uintp(row_e[i]) * np.uintp({PIECE})")
        for v in self.at_x:
            old = f"eight(flat_{v}, k + at_{v})"
            moved = f"add_product({old}, eight(flat_shift_{v}_{z}, e), z_k)" if v in along else old
            self.add(depth + 2, f"put(flat_{v}, k + at_{v}, add_product({moved}, by_{v}, x_k))")
        grown = "put(flat_{v}, k + at_{v}, add_product(eight(flat_{v}, k + at_{v}), by_{v}, x_k))"
        self.add(depth, "else:", "    pass")
        for v in self.at_x:
            self.add(depth + 1, f"if moves_by_x_{v}:")
            self.rows_of(depth + 2, "x")
            self.add(depth + 3, grown.format(v=v))
        self.add(depth, "ready = False")
        if self.at_next:
            self.write_next(depth, grown)

    def write_next(self, depth: int, grown: str) -> None:
        """Rows of x_next. Where they are the rows of the next x, they are read in the same go."""
        self.add(depth, *(f"next_{v} = eight(by_x_next_{v}, 0)" for v in self.at_next))
        known = set(self.at_next) <= {v for v, b in self.rows if b == "x"}
        self.add(depth, f"ready = {known} and follows[t + 1]")
        self.add(depth, *(f"ready = ready and moves_by_x_next_{v}" for v in self.at_next))
        self.add(depth, "if ready:")
        self.sums(depth + 1, "x", change="x_next")
        self.add(depth, "else:")
        for v in self.at_next:
            self.add(depth + 1, f"if moves_by_x_next_{v}:")
            self.rows_of(depth + 2, "x_next")
            self.add(depth + 3, grown.format(v=v).replace(f"by_{v}", f"next_{v}"))

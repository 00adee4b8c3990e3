"""Writes what goes before the pieces of `pieces`: the traces of a block, with a log of them."""

from __future__ import annotations

from steadytd.hordes.loop.names import PLACES, TABLES
from steadytd.hordes.loop.shape import NONE, SLOTS, asked_by_traces
from steadytd.hordes.loop.write import Writer

TIMED = (*TABLES[:11], "first_x", "first_x_next")  # tables with a row for each step
LISTS = ("log_gone", "gone_k", "gone_e", "gone_z", "row_e", "row_z")
LOGS = ("log_slots", "log_small", "log_head", "log_began", "log_live", *LISTS)


def logged_slots(loop: Writer) -> list[str]:
    """What is logged for each generation."""
    (z,) = loop.shape.traces
    return [*loop.bucket_rows(), f"c_{z}"]


def logged_small(loop: Writer) -> list[str]:
    """What is logged once per step."""
    return [*loop.small_rows(), *loop.shape.group_rows]


def timed(begin: str) -> dict[str, str]:
    """The tables, from step `begin` to `end`."""
    cut = {name: f"{name}[{begin} : end{' + 1' * name.startswith('first')}]" for name in TIMED}
    return {name: cut.get(name, name) for name in TABLES}


class Lead(Writer):
    """Takes the traces of a block through all steps, and logs what its predictions need."""

    def views(self) -> dict[str, str]:
        """The arguments, and what the driver gives for them."""
        weights = tuple(f"{a}_{v}" for v in self.shape.vectors for a in ("V", "S"))
        state = {n: e for n, e in self.state_views().items() if not n.startswith(weights)}
        state |= {name: f"copy[{i}]" for i, name in enumerate(self.shape.lane_rows)}
        scratch = {"zx": self.bucket_rows(), "small": self.small_rows()}
        named = {n: f"{array}[{i}]" for array, rows in scratch.items() for i, n in enumerate(rows)}
        places = {name: f"{name}[b]" for name in PLACES[:4]} | {"starts": "own_starts"}
        return {**state, **named, **places, **timed("begin"), **{name: name for name in LOGS}}

    def body(self) -> str:
        """Steps, until there is no room for more entries that are written out; how many."""
        (z,) = self.shape.traces
        self.add(0, f"features, size, steps = len(slot_{z}), {self.size}, len(first_x) - 1")
        self.add(0, "count, most = len(starts) - 1, len(gone_k[0])", "log_gone[:, 0] = 0")
        self.add(0, f"flat_Z, flat_slot = Z_{z}.reshape(Z_{z}.size), slot_{z}.reshape(Z_{z}.size)")
        self.add(0, "bits, row_bits = flat_Z.view(np.int64), row_z.view(np.int64)")
        self.add(
            0, f"groups, sums, ratio = np.uintp(count), np.zeros({SLOTS}), np.zeros({NONE + 1})"
        )
        self.add(0, "for t in range(steps):", "    for g in range(count):")
        self.add(2, "if log_gone[g, t] + features > most:", "    return t")
        self.add(2, "log_gone[g, t + 1] = log_gone[g, t]")
        self.sum_buckets(1, z)
        self.remember(1)
        self.move_traces(1)
        self.note(1)
        self.move_rows(1, z)
        self.carry_over(1)
        self.add(0, "return steps")
        return "\n".join(self.lines) + "\n"

    def sum_buckets(self, depth: int, z: str) -> None:
        """Z_e.x and Z_e.x_next of every generation: the eight sums of a group in registers."""
        for basis, bucket in (("x", "zx"), ("x_next", "zn")):
            self.add(depth, "for g in range(count):", "    total = spread(0.0)")
            self.cells(depth + 1, basis)
            self.add(depth + 2, "total = add_at(total, np.intp(flat_slot[k]), flat_Z[k] * x_k)")
            self.add(depth + 1, "put(sums, 0, total)", f"for e in range({SLOTS}):")
            self.add(depth + 2, f"{bucket}_{z}[e, g] = sums[e]")

    def over_group(self, depth: int, *lines: str) -> None:
        """No prediction is moved here."""

    def remember(self, depth: int) -> None:
        """Move the memory on that the trace asks for."""
        asked = asked_by_traces(self.law)
        for m, function in self.law.memory.items():
            if function is not None and m in asked:
                self.add(depth, "for j in range(size):")
                self.add(depth + 1, f"_{m}[j] = {self.call(function, f'memory_{m}')}")

    def generation(self, depth: int, z: str) -> None:
        """Log whether a generation began (1), and whether all were written out for it (2)."""
        self.add(depth, f"before, every = head_{z}[g], False")
        super().generation(depth, z)
        self.add(depth, f"log_began[g, t] = (1 + every) * (head_{z}[g] != before)")

    def write_out(self, depth: int, z: str) -> None:
        """Log an entry that is written out."""
        self.add(depth, "n = log_gone[g, t + 1]", "log_gone[g, t + 1] = n + 1")
        self.add(depth, "gone_k[g, n], gone_e[g, n], gone_z[g, n] = k, e, z_k")

    def note(self, depth: int) -> None:
        """Log the numbers of all groups."""
        (z,) = self.shape.traces
        self.add(depth, "for g in range(count):", f"    log_head[g, t] = head_{z}[g]")
        for i, name in enumerate(logged_small(self)):
            self.add(depth + 1, f"log_small[{i}, g, t] = {name}[g]")
        self.add(depth + 1, f"for e in range({SLOTS}):")
        self.add(depth + 2, f"live = peak_{z}[e, g] > 0.0 and e != head_{z}[g]")
        self.add(depth + 2, f"log_live[g, t, e] = live and scale_{z}[g] != 0.0")
        for i, name in enumerate(logged_slots(self)):
            self.add(depth + 2, f"log_slots[{i}, g, t, e] = {name}[e, g]")

    def move_rows(self, depth: int, z: str) -> None:
        """The entries of the active features move on and grow; from where, and what they were.

        One that stays is logged as 0, so that no loop over rows has to ask.
        """
        self.add(
            depth, "for g in range(count):", f"    if scale_{z}[g] == 0.0:", "        continue"
        )
        inner = depth + 1
        self.add(inner, f"p, fresh = np.uintp(head_{z}[g]), fresh_{z}[g]")
        self.add(inner, f"for e in range({SLOTS}):", f"    ratio[e] = ratio_{z}[e, g]")
        self.add(inner, f"ratio[p] = ratio[{NONE}] = 1.0")
        self.add(inner, "own_e, own_bits = row_e[g], row_bits[g]")
        self.cells(inner, "x")
        self.add(inner + 1, "e, entry = np.uintp(flat_slot[k]), flat_Z[k]")
        self.add(inner + 1, f"moves = np.uintp((e != p) & (e < {SLOTS}))")  # without a branch
        self.add(
            inner + 1, "own_e[i] = p + moves * (e - p)", "own_bits[i] = bits[k] & -np.int64(moves)"
        )
        self.add(inner + 1, "flat_Z[k] = entry * ratio[e] + fresh * np.float64(x_k)")
        self.add(inner + 1, "flat_slot[k] = p")

    def cells(self, depth: int, basis: str) -> None:
        """The loop over the entries of group g at the active features: where each is; its value."""
        self.add(depth, f"for q in range(first_{basis}[t], first_{basis}[t + 1]):")
        self.add(depth + 1, "i = np.uintp(q)", f"x_k = value_{basis}[i]")
        self.add(depth + 1, f"k = np.uintp(feature_{basis}[i]) * groups + np.uintp(g)")

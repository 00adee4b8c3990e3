"""Traces at the cost of the active features: the part of the loop that moves them.

A trace decays as a whole and grows at the active features only, so it is kept scaled, and so is
what it writes. For a *generation* e of entries

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
    h.z <- d_z h.z + s_z h.x      when z moves
    h.z += m z.z + n x.z + ...    when h += m z + n x + ...
"""

from __future__ import annotations

from steadytd.hordes.loop.names import Names
from steadytd.hordes.loop.shape import NONE, SLOTS

FALL = {"float64": 1e-4, "float32": 0.03}
GONE = {"float64": 1e-20, "float32": 1e-10}
RISE = 1e50  # a scale beyond this begins a new generation


class Traces(Names):
    """Writes what moves the traces of a block."""

    def clear_buckets(self, depth: int) -> None:
        """Z_e.x and Z_e.x_next of every generation and group begin at 0."""
        self.add(depth, f"for e in range({SLOTS} + 1):", "    for g in range(count):")
        names = [f"{a}_{z}[e, g] = 0.0" for z in self.shape.traces for a in ("zx", "zn")]
        self.add(depth + 2, *names)

    def fill_buckets(self, depth: int, basis: str, k: str) -> None:
        """Add feature k to them, while its rows are on the way; without a branch."""
        bucket = "zx" if basis == "x" else "zn"
        if self.shape.traces:
            self.add(depth, "for g in range(count):")
        for z in self.shape.traces:
            at = f"np.uintp(slot_{z}[{k}, g]), g"
            self.add(depth + 1, f"{bucket}_{z}[{at}] += Z_{z}[{k}, g] * x_{k}")

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
            self.add(inner, "total_x = total_x_next = 0.0", f"for e in range({SLOTS}):")
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

    def generation(self, depth: int, z: str) -> None:
        """Begin a new generation where the present one has decayed; how entries move to it."""
        along = self.vectors_along(z)
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
        self.write_out(inner + 3, z)
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
        self.add(inner, f"for e in range({SLOTS}):", f"    if peak_{z}[e, g] > 0.0 and e != p:")
        self.add(inner + 2, f"ratio_{z}[e, g] = c_{z}[e, g] / c_{z}[p, g]")
        moved = "S_{v}_{z}[e, j] - ratio_{z}[e, g] * S_{v}_{z}[p, j]"
        lines = (f"shift_{v}_{z}[e, j] = {moved.format(v=v, z=z)}" for v in along)
        self.over_group(inner + 2, *lines)

    def write_out(self, depth: int, z: str) -> None:
        """Entry k leaves generation e: what its trace has written becomes part of V."""
        along = self.vectors_along(z)
        written = (f"V_{v}[k, at_{v} + j] += real(S_{v}_{z}[e, j] * z_k)" for v in along)
        self.over_group(depth, *written)

    def sum_up(self, depth: int) -> None:
        """v += m z for the entries that are there: S_e += m c_e."""
        for z in self.shape.traces:
            lines = [f"S_{v}_{z}[e, j] += along_{v}_{z}[j] * scale" for v in self.vectors_along(z)]
            if lines:
                self.add(depth, f"for g in {self.groups}:", f"    for e in range({SLOTS}):")
                self.add(depth + 2, f"scale = c_{z}[e, g]", "if scale != 0.0:")
                self.over_group(depth + 3, *lines)

    def write_groups(self, depth: int, z: str) -> None:
        """Rows of x in one visit each, group by group: entries that move on, and what is added."""
        along = self.vectors_along(z)
        self.add(depth, "for q in range(first_x[t], first_x[t + 1]):")
        self.active(depth + 1, "x")
        self.add(depth + 1, "for g in range(count):", f"    p = np.uintp(head_{z}[g])")
        inner = depth + 2
        self.add(inner, f"e, entry = np.uintp(slot_{z}[k, g]), Z_{z}[k, g]")
        self.add(inner, f"if scale_{z}[g] != 0.0 and e != p and e < {SLOTS}:")
        self.add(inner + 1, "z_k = real(entry)", f"entry *= ratio_{z}[e, g]")
        for v in self.at_x:
            moved = (
                f"(V_{v}[k, at_{v} + j] + shift_{v}_{z}[e, j] * z_k)"
                if v in along
                else f"V_{v}[k, at_{v} + j]"
            )
            self.over_group(inner + 1, f"V_{v}[k, at_{v} + j] = {moved} + by_x_{v}[j] * x_k")
        self.add(inner, "else:", "    pass")
        for v in self.at_x:
            self.add(inner + 1, f"if moves_by_x_{v}:")
            self.over_group(inner + 2, f"V_{v}[k, at_{v} + j] += by_x_{v}[j] * x_k")
        self.add(inner, f"if scale_{z}[g] != 0.0:")
        self.add(inner + 1, f"Z_{z}[k, g] = entry + fresh_{z}[g] * np.float64(x_k)")
        self.add(inner + 1, f"slot_{z}[k, g] = p")

    def move_entries(self, depth: int, z: str) -> None:
        """Entry k of a trace moves to the present generation and grows, without a change of v."""
        along = self.vectors_along(z)
        self.add(depth, "for g in range(count):", f"    if scale_{z}[g] != 0.0:")
        inner = depth + 2
        self.add(inner, f"p = head_{z}[g]", f"e = np.uintp(slot_{z}[k, g])", "entry = 0.0")
        self.add(inner, "if e == np.uintp(p):", f"    entry = Z_{z}[k, g]")
        self.add(inner, f"elif e < {SLOTS}:")
        self.add(inner + 1, f"z_k = real(Z_{z}[k, g])")
        self.over_group(
            inner + 1, *(f"V_{v}[k, at_{v} + j] += shift_{v}_{z}[e, j] * z_k" for v in along)
        )
        self.add(inner + 1, f"entry = ratio_{z}[e, g] * Z_{z}[k, g]")
        self.add(inner, f"Z_{z}[k, g] = entry + fresh_{z}[g] * np.float64(x_k)")
        self.add(inner, f"slot_{z}[k, g] = p")

"""Laws that are solved: a loop that sums instead of learning; see `engine.second_order`.

The sums are in V, one after the other: b, the rows of A', those of one more matrix, and w0.
"""

from __future__ import annotations

from dataclasses import replace

from steadytd.base.errors import unknown
from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.law import Law, arguments
from steadytd.engine.step.layouts.lanes import Lanes
from steadytd.engine.step.program import (
    FEATURES,
    Call,
    Outer,
    Program,
    Step,
    Write,
    check,
    lower,
    without_traces,
)
from steadytd.engine.step.statements import Bind, For, If, Statement, bind, lanes
from steadytd.engine.step.targets import numba

TINY = 1e-8  # relative size of a Sherman-Morrison denominator below which the inverse is given up
EQUATION = ("target", "on_x", "on_x_next")


def sums_program(law: Law, traced: bool, matrix: str) -> Program:
    """The program of a law that is solved, whose update is the equation of a step."""
    for argument in arguments(law.update):
        if argument not in (*STEP_FACTS, *CARRIED):
            raise unknown(f"fact of a step in {law.name}:", argument, (*STEP_FACTS, *CARRIED))
    (z,) = law.traces
    steps: list[Step] = []
    for step in lower(law).steps:
        match step:
            case Call(function="update"):
                steps.append(replace(step, results=EQUATION))
            case Write():
                steps.append(Outer(("", z), EQUATION, matrix))
            case _:
                steps.append(step)
    program = replace(lower(law), steps=tuple(steps))
    return check(program if traced else without_traces(program))


class Sums(Lanes):
    """Writes the loop that sums for a law."""

    def source(self, path: str) -> str:
        """The source of the module that Numba compiles."""
        body = numba.printed([*self.views(), *self.time(self.steps(self.program.steps))])
        scratch = len(self.scratch())
        return numba.head(self.program.name, path) + numba.driven(self.arrays(), scratch, 0, body)

    @property
    def outer(self) -> Outer:
        """What is summed."""
        return next(step for step in self.program.every if isinstance(step, Outer))

    def scratch(self) -> list[str]:
        """Arrays of one number a lane."""
        inverse = ["bottom", "size", "share"] * (self.outer.matrix == "C")
        return [*inverse, *(f"_{n}" for n in self.stored)]

    def arrays(self) -> dict[str, str]:
        """The arrays of the loop; V as a whole."""
        given = {n: a for n, a in super().arrays().items() if not a.startswith(("V", "scratch"))}
        given |= {n: f"scratch[{i}]" for i, n in enumerate(self.scratch())}
        return {"V": "V", **({"given_up": "M[-1]"} if self.outer.matrix == "C" else {}), **given}

    def views(self) -> list[Statement]:
        """The sums, and matrices as rows of all features and lanes together."""
        wide = "reshape((features, features * lanes))"
        found: list[Statement] = [
            Bind(("_", "features", "lanes"), "V.shape"),
            bind("b", "V[0]"),
            bind("A", f"V[1 : 1 + features].{wide}"),
        ]
        found += [bind("z", f"Z_{z}.reshape(features * lanes)") for z in self.program.traces]
        if self.outer.matrix:
            found.append(bind(self.outer.matrix, "V[1 + features : -1]"))
        if self.outer.matrix == "C":
            found += [
                bind("rows", f"C.{wide}"),
                bind("C_z", "np.empty((features, lanes))"),
                bind("v_C", "np.empty((features, lanes))"),
                bind("all_v_C", "v_C.reshape(features * lanes)"),
            ]
        return found

    def z_k(self, step: Outer) -> str:
        """Entry k of the trace in lane j."""
        number, basis = step.z
        return f"{self.number(number)} * x_k" if number else self.entry(basis)

    def outers(self, steps: list[Outer]) -> list[Statement]:
        """b += target z, and A += z (on_x x + on_x_next x_next)'."""
        (step,) = steps
        z_k, basis = self.z_k(step), step.z[1]
        target, *on = map(self.number, step.equation)
        found = self.over(basis, lanes([f"b[k, j] += {target} * ({z_k})"]))
        for name, by in zip(FEATURES, on, strict=True):
            m = [bind("m", f"feature[p - shift_{name}]"), bind("v_m", f"{by} * value[p]")]
            if basis in FEATURES:
                grown = self.over(basis, lanes([f"A[m, k * lanes + j] += v_m * ({z_k})"]))
            else:
                grown = [For("i", "0", "features * lanes", ["A[m, i] += v_m * z[i]"])]
            found.append(For("p", f"first_{name}", f"last_{name}", [*m, *grown]))
        if step.matrix == "G":
            m = [bind("m", "feature[p - shift_x]"), bind("rho_x_m", "rho * value[p]")]
            grown = self.over("x", lanes(["G[m, k, j] += rho_x_m * x_k"]))
            found.append(For("p", "first_x", "last_x", [*m, *grown]))
        return [*found, *(self.inverse(step) if step.matrix == "C" else [])]

    def inverse(self, step: Outer) -> list[Statement]:
        """C -= (C z)(v' C) / (1 + v' C z) for A += z v'."""
        found: list[Statement] = [
            "C_z[:] = 0.0",
            "v_C[:] = 0.0",
            "bottom[:] = 1.0",
            "size[:] = 1.0",
        ]
        of_z = self.over(step.z[1], lanes([f"C_z[m, j] += C[m, k, j] * ({self.z_k(step)})"]))
        found.append(For("m", "0", "features", of_z))
        for name, by in zip(FEATURES, step.equation[1:], strict=True):
            found += self.over(name, [
                bind("v_k", f"{self.number(by)} * x_k"),
                *lanes(["bottom[j] += v_k * C_z[k, j]", "size[j] += abs(v_k * C_z[k, j])"]),
                For("i", "0", "features * lanes", ["all_v_C[i] += v_k * rows[k, i]"]),
            ])  # fmt: skip
        found += lanes([
            If(f"not abs(bottom[j]) > {TINY} * size[j]", ["given_up[j] = 1.0"]),
            "share[j] = 0.0 if given_up[j] != 0.0 else 1.0 / bottom[j]",
        ])  # fmt: skip
        alone: list[Statement] = [  # the usual case, which nested loops would spoil
            bind("by", "share[0] * C_z[k, 0]"),
            For("i", "0", "features", ["rows[k, i] -= by * all_v_C[i]"]),
        ]
        several = lanes(["C[k, m, j] -= (share[j] * C_z[k, j]) * v_C[m, j]"])
        both = If("lanes == 1", alone, [For("m", "0", "features", several)])
        return [*found, For("k", "0", "features", [both])]

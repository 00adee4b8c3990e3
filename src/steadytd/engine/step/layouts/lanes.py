"""Many learners side by side on dense vectors: the plain loop.

Vectors are stored feature-major, `V_w[feature, lane]`, so that every innermost loop runs over
contiguous lanes without a reduction: the compiler vectorises it under strict IEEE arithmetic, and a
lane's bits do not depend on its neighbours. An inner product is, for instance,

    for q in range(first_x, last_x):        # the active features of x
        k, x_k = ...
        for j in range(lanes):
            _w_x[j] += V_w[k, j] * x_k

With fewer than FEW lanes there is nothing to vectorise: each lane takes the whole step by itself,
and its numbers are locals. That form, with one lane, is the browser's, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from steadytd.engine.law import Law
from steadytd.engine.step.layouts.layout import Layout
from steadytd.engine.step.program import (
    FEATURES,
    Dot,
    Map,
    Mean,
    Move,
    Slide,
    Write,
    step_program,
)
from steadytd.engine.step.statements import Bind, For, If, Statement, bind, lanes
from steadytd.engine.step.targets import numba

FEW = 4


class Lanes(Layout):
    """Writes the loop of a program with its vectors as they are."""

    place = "k, j"  # of an entry in an array; one lane alone has "k"
    single = False  # writing the loop of one lane

    def source(self, path: str) -> str:
        """The source of the module that Numba compiles."""
        size = Bind(("features", "lanes"), "V_w.shape")
        text = numba.head(self.program.name, path)
        measured = len(self.program.vectors) if self.program.averaged else 0
        body = numba.printed([size, *self.windows(), *self.time(self.step())])
        return text + numba.driven(self.arrays(), len(self.stored), measured, body)

    def arrays(self) -> dict[str, str]:
        """The arrays of the loop, and what of the driver's each of them is."""
        program = self.program
        names = {
            "V": [f"V_{v}" for v in program.vectors] + ["average"] * program.averaged,
            "Z": [f"Z_{z}" for z in program.traces],
            "M": [f"_{m}" for m in program.memory],
            "params": [f"_{p}" for p in program.params],
            "scratch": [f"_{n}" for n in self.stored],
        }
        return {name: f"{part}[{i}]" for part, some in names.items() for i, name in enumerate(some)}

    def windows(self) -> list[Statement]:
        """How many steps a trace or memory looks back."""
        named = self.program.windows.items()
        return [
            bind(f"window_{name}", f"int(_{param}[0]) + {more}") for name, (param, more) in named
        ]

    def step(self) -> list[Statement]:
        """One step: few lanes one by one, more of them side by side."""
        return [If(f"lanes < {FEW}", lanes(self.alone()), self.steps(self.program.steps))]

    def alone(self) -> list[Statement]:
        """One step of lane j alone, its numbers locals."""
        stored, self.stored, self.single = self.stored, [], True
        found = self.steps(self.program.steps)
        self.stored, self.single = stored, False
        self.open.clear()
        return found

    def over_lanes(self, body: Iterable[Statement]) -> list[Statement]:
        """The statements for every lane, unless one takes the step alone."""
        return list(body) if self.single else lanes(body)

    def close(self) -> None:
        """The end of a loop over lanes: its locals are gone, unless one lane goes on alone."""
        if not self.single:
            super().close()

    def entry(self, name: str) -> str:
        """Entry k of a vector or trace in lane j, or of the features."""
        if name in FEATURES:
            return "x_k"
        return f"{'Z' if name in self.program.traces else 'V'}_{name}[{self.place}]"

    def maps(self, steps: list[Map]) -> list[Statement]:
        """A function of every entry."""
        (step,) = steps
        entry = self.entry(step.vector)
        value = self.call(step.function, step.arguments, value=entry)
        return self.over(step.vector, self.over_lanes([f"{entry} = {value}"]))

    def means(self, steps: list[Mean]) -> list[Statement]:
        """The mean of a vector over all steps."""
        (step,) = steps
        mean, entry = f"average[{self.place}]", self.entry(step.vector)
        moved = self.over(step.vector, self.over_lanes([f"{mean} += ({entry} - {mean}) * share"]))
        return [bind("share", "1.0 / (first_step + t + 1)"), *moved]

    def dots(self, steps: list[Dot]) -> list[Statement]:
        """Inner products: a sum in the order of the features, for each lane."""
        found: list[Statement] = []
        for dot in steps:
            self.open.add(dot.name)
            if dot.left in FEATURES:
                found.append(bind(f"_{dot.name}", self.feature_dot(dot)))
        own = [dot for dot in steps if dot.left not in FEATURES]
        found += self.over_lanes(bind(self.number(dot.name), "0.0") for dot in own)
        for basis in dict.fromkeys((*FEATURES, *(dot.right for dot in own))):
            found += self.over(basis, self.over_lanes(
                f"{self.number(dot.name)} += {self.entry(dot.left)} * {self.entry(basis)}"
                for dot in own if dot.right == basis
            ))  # fmt: skip
        return found

    def slides(self, steps: list[Slide]) -> list[Statement]:
        """Move on a memory that looks back n steps: from itself without its oldest step."""
        (step,) = steps
        m = step.name
        younger = self.call(step.function, step.arguments, **{m: f"_{m}[(age + 1) * lanes + j]"})
        nothing = self.call(step.function, step.arguments, **{m: "0.0"})
        return self.over_lanes([
            For("age", "0", f"window_{m} - 1", [f"_{m}[age * lanes + j] = {younger}"]),
            f"_{m}[(window_{m} - 1) * lanes + j] = {nothing}",
        ])  # fmt: skip

    def moves(self, steps: list[Move]) -> list[Statement]:
        """Traces move on: all entries decay, the active ones grow."""
        found: list[Statement] = []
        plain = [step for step in steps if step.trace not in self.program.windows]
        for step in plain:
            z = self.entry(step.trace)
            found += self.over(
                step.trace, self.over_lanes([f"{z} = {self.number(step.decay)} * {z}"])
            )
        grown = (f"{self.entry(s.trace)} += {self.number(s.scale)} * x_k" for s in plain)
        found += self.over("x", self.over_lanes(grown))
        for step in steps:
            if step not in plain:
                found += self.move_window(step)
        return found

    def move_window(self, step: Move) -> list[Statement]:
        """Move on a trace that looks back n steps: from itself without its oldest step."""
        z, oldest = f"Z_{step.trace}", f"(window_{step.trace} - 1) * features"
        here, older, grown = (
            f"{z}[{self.place.replace('k', k)}]" for k in ("k", "k + features", "begin_k + k")
        )
        decayed = f"{here} = {self.number(step.decay)} * {older}"
        return [
            For("k", "0", oldest, self.over_lanes([decayed])),
            For("k", oldest, f"window_{step.trace} * features", self.over_lanes([f"{here} = 0.0"])),
            For("age", "0", f"window_{step.trace}", [
                bind("begin_k", "index(age * features)"),
                *self.over("x", self.over_lanes([f"{grown} += {self.number(step.scale)} * x_k"])),
            ]),
        ]  # fmt: skip

    def writes(self, steps: list[Write]) -> list[Statement]:
        """Add the multiples: of whole vectors first, while they are the old ones, then the rest."""
        (step,) = steps
        whole = [v for v in self.program.vectors if step.on(v)]
        added: list[Statement] = [bind(f"old_{v}", self.entry(v)) for v in whole]
        for v, parts in step.sums:
            by = {basis: number for number, basis in parts}
            # v itself first, so that -1 of v and 1 of another vector make a copy of that one
            for b in dict.fromkeys((v, *whole)):
                if b in by:
                    added.append(f"{self.entry(v)} += {self.number(by[b])} * old_{b}")
        found = self.over("w", self.over_lanes(added)) if whole else []
        for basis in (*self.program.traces, *FEATURES):
            found += self.over(basis, self.over_lanes(
                f"{self.entry(v)} += {self.number(n)} * {self.entry(basis)}"
                for v, n in step.on(basis)
            ))  # fmt: skip
        return found


def loop_source(law: Law, traced: bool, averaged: bool = False) -> str:
    """The source of the loop of a law, with trace vectors or (at lam = 0) without.

    `averaged` adds one more vector, the mean of w over all steps, and measures its error.
    """
    path = f"{'with' if traced else 'without'} trace vectors"
    return Lanes(step_program(law, traced, averaged)).source(path)

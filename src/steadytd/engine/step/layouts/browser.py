"""One learner alone, in JavaScript: the loop that Numba runs for fewer than FEW lanes."""

from __future__ import annotations

from steadytd.engine.facts import STEP_FACTS
from steadytd.engine.step.layouts.lanes import Lanes
from steadytd.engine.step.statements import bind
from steadytd.engine.step.targets import javascript


class Browser(Lanes):
    """Writes the loop of a program for one lane, on plain arrays."""

    place = "k"

    def arrays(self) -> dict[str, str]:
        """The arrays of a learner; all other numbers are locals."""
        return {n: a for n, a in super().arrays().items() if not a.startswith("scratch")}

    def script(self) -> str:
        """The loop, as an expression for a function."""
        one = [bind("lanes", "1"), bind("j", "0")]
        steps = self.time(self.alone(), f"facts[e * {len(STEP_FACTS)} + {{}}]")
        statements = [*one, *self.windows(), *steps]
        return javascript.loop(self.arrays(), self.program.functions, statements)

"""The program of a law: what a step does, as data; its passes, its text, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from textwrap import indent

import pytest

from steadytd.engine.active import programs
from steadytd.engine.law import Law
from steadytd.engine.step.layouts.active import active_source
from steadytd.engine.step.layouts.lanes import Lanes, loop_source
from steadytd.engine.step.program import (
    Call,
    Dot,
    Let,
    Move,
    Program,
    ProgramError,
    Write,
    check,
    lower,
    step_program,
)
from steadytd.learners import algorithm, names

TD = """\
decay_z, scale_z = trace_z(rho, gamma, lam)
z = decay_z z + scale_z x
w_x = w.x
w_x_next = w.x_next
w_by_z = update(reward, gamma_next, w_x, w_x_next, alpha)
w += w_by_z z"""
TD_WITHOUT = """\
unless rho = 0:
    w_x = w.x
    w_x_next = w.x_next
    _, scale_z = trace_z(rho, gamma, lam)
    w_by_z = update(reward, gamma_next, w_x, w_x_next, alpha)
    w_on_x = w_by_z * scale_z
    w += w_on_x x
average = mean of w over all steps"""


def laws() -> list[Law]:
    """All registered laws, and their variants."""
    found = [algorithm(name) for name in names()]
    return found + [v for one in found for v in one.variants.values() if v is not None]


def test_the_text_reads_like_the_documentation() -> None:
    td = algorithm("td")
    assert str(step_program(td, traced=True)) == TD
    assert str(step_program(td, traced=False, averaged=True)) == TD_WITHOUT


def test_every_law_has_a_program_on_every_path() -> None:
    kinds: set[type] = set()
    for law in laws():
        for program in programs(law).values():
            assert check(program) is program
            kinds |= {type(step) for step in program.every}
    assert {kind.__name__ for kind in kinds} == {
        "Call", "Dot", "Drop", "Each", "Gather", "Grow", "Keep", "Let", "Move", "Outer", "Skip",
        "Slide", "Total", "Write",
    }  # fmt: skip


def broken(program: Program, old: type, *new: object) -> Program:
    """The program with other steps in place of those of one kind."""
    steps = [s for s in program.steps if not isinstance(s, old)]
    return replace(program, steps=(*steps, *new))  # type: ignore[arg-type]


TDC = lower(algorithm("tdc"))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (broken(TDC, Dot), "'w_x' is not known"),
        (broken(TDC, Call), "'decay_z' is not known"),
        (broken(TDC, Write, Let("w_x", ())), "'w_x' is made twice"),
        (broken(TDC, Write, Dot("u_x", "u", "x")), "no such vector"),
        (broken(TDC, Write, Write((("w", (("w_by_z", "y"),)),))), "no such vector"),
        (broken(TDC, Write, Move("y", "decay_z", "scale_z")), "no such vector"),
        (broken(TDC, Write, Call(("a",), "update", ("rho",))), "wrong arguments"),
        (replace(TDC, memory=("rho",)), "a name means two things"),
    ],
)
def test_what_cannot_be_run_is_refused(program: Program, said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        check(program)


def test_a_number_that_another_loop_made_must_be_stored() -> None:
    """Numba would take the number of the last lane, silently."""
    layout = Lanes(step_program(algorithm("tdc"), traced=True))
    assert {"decay_z", "scale_z", "h_z", "h_by_x"} <= set(layout.stored)
    layout.stored.remove("decay_z")
    with pytest.raises(ProgramError, match="decay_z is used in another loop"):
        layout.source("")


def test_the_page_shows_the_loops() -> None:
    """docs/engine.md has a part of TD's plain loop, and of TDC's at the active features."""
    page = (Path(__file__).parents[2] / "docs" / "engine.md").read_text(encoding="utf-8")
    law, plain, active = (part.split("```")[0] for part in page.split("```text\n")[1:])
    assert "def td(reward, gamma_next, w_x, w_x_next, alpha):" in law
    assert indent(plain, 12 * " ") in loop_source(algorithm("td"), True)
    assert indent(active, 8 * " ") in active_source(algorithm("tdc"), True)

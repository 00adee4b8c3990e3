"""The lab's page: one file with problems, learners as JavaScript, theory and course inside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from textwrap import dedent
from typing import Any

import numpy as np

from steadytd.base.errors import InputError
from steadytd.engine.law import AUTO, GENERAL, Law, Param
from steadytd.engine.step.layouts.lanes import Browser
from steadytd.engine.step.program import step_program
from steadytd.engine.step.targets import javascript
from steadytd.lab.course import course
from steadytd.learners import algorithm, names
from steadytd.mdp.problem import Problem
from steadytd.problems import problem as make_problem
from steadytd.problems import problems as all_problems
from steadytd.report.palette import looks
from steadytd.theory.closed_form import closed_form, has_closed_form

MOST_STATES = 10
SHADES = 8  # learners of one law
LIGHTER = {"#222222": "#7f7f7f", "#774400": "#a86a2c"}
START = {"alpha": 0.001, "eta": 0.5, "beta": 0.5, "ratio": 10.0}  # where a slider begins
WORKER = ("engine.js", "algebra.js", "theory.js", "worker.js")
PAGE = ("algebra.js", "theory.js", "charts.js", "triad.js", "page.js")


def lab_page(problems: Sequence[Problem] = (), laws: Sequence[Law] = ()) -> str:
    """The page, with some problems and laws of the user's own beside the registered ones."""
    for one in problems:
        if not fits(one):
            raise InputError(
                f"problem {one.name} has {one.n_states} states and {one.n_policies} target "
                f"policies; the lab takes problems of at most {MOST_STATES} states, with one "
                "target policy, a discount and all states active."
            )
    own = {one.name: one for one in problems}
    registered = {name: make_problem(name) for name in all_problems() if name not in own}
    shown = [*own.values(), *(p for p in registered.values() if fits(p))]
    known = [algorithm(name) for name in names()]
    taken = [law for law in [*laws, *known] if law.block is None and law.of_discounted_states]
    steps = course()  # about the registered problems: not where another has the name of one
    loops: list[str] = []
    data = {
        "problems": [{"name": p.name, "summary": p.summary, "model": model_of(p)} for p in shown],
        "learners": [learner_of(law, loops) for law in taken],
        "colours": {law.name: _colours(law.name) for law in taken},
        "first": next(iter(own), None),
        "course": [] if own.keys() & {step["state"]["problem"] for step in steps} else steps,
    }
    return assembled(data, loops)


def _colours(law: str) -> list[str]:
    """The law's own colour, and shades of it for further learners of the same law.

    Lines stand on a dark page as well as on a light one, so the darkest hues are lightened.
    """
    found = looks({str(i): law for i in range(SHADES)})
    return [LIGHTER.get(one.colour, one.colour) for one in found.values()]


def fits(problem: Problem) -> bool:
    """Whether the page can show a problem: small, discounted, one target policy, all active."""
    return bool(
        problem.n_states <= MOST_STATES
        and problem.n_policies == 1
        and problem.active.all()
        and not problem.average_reward
    )


def assembled(data: dict[str, Any], loops: Sequence[str]) -> str:
    """The page from its parts; what is data cannot end the script that holds it.

    Loops are part of the worker's script: the page makes no code from texts.
    """
    parts = {
        "css": asset("page.css"),
        "data": json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        "worker": "\n".join([*map(asset, WORKER), f"const LOOPS = {javascript.script(loops)};"]),
        "page": "\n".join(asset(name) for name in PAGE),
    }
    text = asset("page.html")
    for name, part in parts.items():
        before, _, after = text.partition("{{ " + name + " }}")
        text = before + part + after
    return text


def asset(name: str) -> str:
    """One of the page's own files."""
    return (files("steadytd.lab") / "assets" / name).read_text(encoding="utf-8")


def model_of(problem: Problem) -> dict[str, Any]:
    """A problem as plain lists, as theory.js takes it; shape and name as in `Problem`."""
    m = problem.moments()
    m.require_array("the lab")
    arrays = {
        "P": m.P, "r": m.r, "gamma": m.gamma, "mu": m.mu, "pi": m.pi, "Phi": m.Phi,
        "w0": problem.w0, "start": problem.start, "interest": m.interest,
    }  # fmt: skip
    return {name: array.tolist() for name, array in arrays.items()}


def learner_of(law: Law, loops: list[str]) -> dict[str, Any]:
    """A law for the page: its parameters, and its variants and paths, whose loops go to `loops`."""
    variants = {law.variant_param: law.variants} if law.variant_param else {}
    params = {n: p for n, p in law.all_params.items() if n not in GENERAL and n not in variants}
    listed = [_param(name, param) for name, param in params.items()]
    for name, choices in variants.items():
        first, *_ = words = list(choices)
        listed.append(
            {**_param(name, Param("variant")), "words": words, "default": first, "start": first}
        )
    forms = []
    for variant, one in (law.variants or {"": None}).items():
        chosen = one or law
        for traced in (False, True) if chosen.traces else (False,):
            form, loop = form_of(chosen, traced)
            forms.append({"variant": variant, "traced": traced, "loop": len(loops), **form})
            loops.append(loop)
    return {
        "name": law.name,
        "summary": (law.update.__doc__ or "").partition("\n")[0],
        "equations": equations_of(law),
        "params": listed,
        "forms": forms,
        "variant": law.variant_param,
        "trace": law.trace_param if law.traces else None,
        "penalty": penalty_of(law),
    }


def equations_of(law: Law) -> str:
    """The update as its text has it, in Unicode; a law of the user's own has its first line."""
    found = re.search(r"^Update[^:]*(?::[^:]+)*?::\n\n((?:    .*\n)+)", law.doc, re.M)
    return dedent(found[1]).strip() if found else (law.update.__doc__ or "").partition("\n")[0]


def form_of(law: Law, traced: bool, averaged: bool = False) -> tuple[dict[str, Any], str]:
    """What `Bench` in assets/engine.js needs to know of a law on one of its paths; and its loop.

    A step is `affine` in the vectors if they are all that is carried over; the page tries whether
    it truly is.
    """
    layout = Browser(step_program(law, traced, averaged))
    form = {
        "arrays": list(layout.arrays()), "memory": list(law.memory), "windows": dict(law.windows),
        "starts": dict(law.starts),
        "affine": not (traced or averaged or law.memory or law.maps or law.settled),
    }  # fmt: skip
    return form, layout.script()


def penalty_of(law: Law) -> str:
    """The parameter p for which the mean update at lam = 0 is b - (A + p G) w; "" if none is."""
    if not has_closed_form(law) or len(law.vectors) != 1 or law.scalars:
        return ""
    m = make_problem("three_state").moments()
    given = {n: START.get(n, 0.0) if isinstance(p.default, str | None) else p.default
             for n, p in law.all_params.items()}  # fmt: skip
    for name, param in law.params.items():
        if not param.auto:
            continue
        for amount in (0.3, 1.7):
            mean = closed_form(law, m, {**given, law.trace_param: 0.0, name: amount})
            if not (np.allclose(mean.M, m.A() + amount * m.G) and np.allclose(mean.g, m.b())):
                break
        else:
            return name
    return ""


def _param(name: str, param: Param) -> dict[str, Any]:
    default = None if param.default in (None, AUTO) or param.word else param.default
    start = default if default is not None else START.get(name, max(param.low, 0.5))
    return {
        "name": name, "doc": param.doc, "default": default, "start": start, "words": [],
        "low": max(param.low, -1e9), "high": min(param.high, 1e9), "above": param.above,
        "rule": param.rule,
    }  # fmt: skip

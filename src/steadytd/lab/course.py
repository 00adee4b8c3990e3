"""The lab's course: its text is data, its numbers and answers are those of the certificate."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

import numpy as np

from steadytd.base.numbers import number
from steadytd.mdp.problem import Problem
from steadytd.problems import problem as make_problem
from steadytd.theory.certificate import Certificate


def course() -> list[dict[str, Any]]:
    """The steps for the page, with every fact that they name filled in."""
    text = (files("steadytd.lab") / "assets" / "course.toml").read_text(encoding="utf-8")
    return [_filled(step) for step in tomllib.loads(text)["steps"]]


def problem_of(state: dict[str, Any]) -> Problem:
    """The problem that a step shows."""
    p = make_problem(state["problem"])
    if not state.get("onPolicy"):
        return p
    name = f"{p.name}, on-policy"
    return Problem(name=name, P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.mu, Phi=p.Phi, w0=p.w0)


def _filled(step: dict[str, Any]) -> dict[str, Any]:
    found = _facts(problem_of(step["state"]), step["state"]["learners"][0])
    words = {
        name: " and ".join(number(x) for x in np.atleast_1d(value))
        for name, value in found.items()
        if not isinstance(value, bool)
    }
    (answer,) = np.atleast_1d(found[step["answer"]])
    predict = step["predict"]
    return {
        **step,
        "predict": {
            "question": predict["question"].format(**words),
            "choices": predict["choices"],
            "right": 0 if found[predict["true"]] else 1,
        },
        "text": [text.format(**words) for text in step["text"]],
        "why": step["why"].format(**words),
        "answer": float(answer),
    }


def _facts(problem: Problem, first_learner: str) -> dict[str, Any]:
    """What a step can say of its problem, and of the first learner that it shows."""
    c = Certificate(problem)
    rates = c.pencil.rates(0.0)
    negative = np.sort(rates.real[rates.real < 0.0])
    moments = c.mean_square(first_learner)
    auto_error = c.error(c.pencil.fixed_point(c.best_eta))
    td_error, zero_error = c.error(c.pencil.fixed_point(0.0)), c.error(np.zeros(problem.n_features))
    return {
        "td_settles": bool(c.td_stable),
        "settles_at_0.2": bool(c.pencil.slowest(0.2) > 0.0),
        "least_penalty_is_best": bool(
            c.error(c.pencil.fixed_point(1.02 * c.eta_hurwitz)) <= auto_error
        ),
        "td_beats_zero": bool(td_error < zero_error),
        "a_penalty_harms": bool(c.td_stable and c.unstable_etas),
        "td_error": td_error,
        "best_error": c.best_error,
        "zero_error": zero_error,
        "least_eigenvalue": rates.real.min(),
        "growth_rate": -rates.real.min(),
        "negative": len(negative),
        "negative_eigenvalues": negative,
        "stable_from": c.eta_hurwitz,
        "unstable_from": [low for low, _ in c.unstable_etas],
        "definite_from": c.eta_pd,
        "paper_bound": c.bounds["paper"],
        "pole": c.poles,
        "auto_eta": c.best_eta,
        "auto_error": auto_error,
        "largest_alpha": np.nan if moments is None else moments.largest_alpha,
    }

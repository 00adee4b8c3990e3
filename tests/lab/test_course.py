"""The course says nothing that the theory, or a run of its own step, does not show.

Every sentence of every step stands here with its check, by its first words and those that claim
something. A check returns the numbers of the sentence, in order, computed from the problem's
matrices or by `certify`; words are asserted. What is not listed, or not computed, fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest

import steadytd as st
from steadytd.engine.learner import Learner
from steadytd.lab.course import course, problem_of

LETTERS = {"half": 0.5, "two": 2, "both": 2, "seven": 7, "eight": 8}


class StepFacts:
    """A step, its problem, and the theory of it, here by dense linear algebra."""

    def __init__(self, step: dict[str, Any]) -> None:
        self.step, self.p = step, problem_of(step["state"])
        self.c = st.certify(self.p)
        self.learners = [st.learner(text) for text in step["state"]["learners"]]
        p, m = self.p, self.p.moments()
        D = np.diag(p.d_mu)
        self.A = p.Phi.T @ D @ (np.eye(p.n_states) - m.P_gamma) @ p.Phi
        self.G = p.Phi.T @ D @ p.Phi
        self.b = p.Phi.T @ D @ m.r_pi
        self.zero = self.error(np.zeros(p.n_features))

    def rates(self, eta: float = 0.0) -> Any:
        """Eigenvalues of A(eta) where features reach, by real part."""
        values, vectors = np.linalg.eigh(self.G)
        Q = vectors[:, values > 1e-9]
        found = np.linalg.eigvals(Q.T @ (self.A + eta * self.G) @ Q)
        return found[np.argsort(found.real)]

    def fixed(self, eta: float = 0.0) -> Any:
        return np.linalg.lstsq(self.A + eta * self.G, self.b, rcond=None)[0]

    def error(self, w: Any) -> float:
        p = self.p
        return float(np.sqrt(p.d_mu @ (p.Phi @ w - p.v_pi) ** 2))

    def best(self) -> float:
        """The least error of all weights."""
        root = np.sqrt(self.p.d_mu)
        fit = np.linalg.lstsq(root[:, None] * self.p.Phi, root * self.p.v_pi, rcond=None)[0]
        return self.error(fit)

    def changed(self, **arrays: Any) -> st.Problem:
        """The problem with other arrays."""
        names = ("P", "r", "gamma", "mu", "pi", "Phi")
        return st.Problem(name="changed", **{n: getattr(self.p, n) for n in names} | arrays)

    @cached_property
    def errors(self) -> Any:
        """Errors [learner, seed, point] of the step's own run."""
        state = self.step["state"]
        found = st.run(self.p, state["learners"], steps=state["steps"], seeds=state["seeds"])
        return np.array(found.errors)

    def settles(self, i: int, at: float, rel: float = 0.1, absolute: float = 1e-9) -> bool:
        """Whether all seeds of a learner end near an error: within a tenth, four times the spread
        that `mean_square` gives for these step sizes."""
        last = self.errors[i][:, -20:].mean(axis=1)
        return bool(np.allclose(last, at, rtol=rel, atol=absolute))

    def grows(self, i: int) -> bool:
        """Whether all seeds of a learner end ten times above their start, and none overflows."""
        curves = self.errors[i]
        return bool(np.isfinite(curves).all() and (curves[:, -1] > 10 * curves[:, 0]).all())


Numbers = Iterable[float]
Check = Callable[[StepFacts], Numbers]


def true(condition: object, *numbers: float) -> Numbers:
    assert condition
    return numbers


def meaning(*numbers: float) -> Check:
    """A definition, an instruction or a question: it claims no fact of the problem."""
    return lambda h: numbers


def meets(h: StepFacts) -> bool:
    """Two real eigenvalues on the left, a complex pair before they cross; then none on the left."""
    start, late = h.rates(), h.rates(0.99 * h.c.eta_hurwitz)
    real = (start[:2].real < 0).all() and not start[:2].imag.any()
    pair = (
        (late[:2].real < 0).all()
        and np.isclose(late[0], late[1].conj())
        and abs(late[0].imag) > 0.1
    )
    return bool(real and pair and (h.rates(1.01 * h.c.eta_hurwitz).real > 0).all())


def two_of_three(h: StepFacts) -> bool:
    """Unstable with all three; stable without each."""
    on_policy, table = h.changed(pi=h.p.mu), h.changed(Phi=np.eye(h.p.n_states))
    rest = st.certify(on_policy).td_stable, st.certify(table).td_stable, h.c.is_stable("td", lam=1)
    return not h.c.td_stable and all(rest)


def shorter(h: StepFacts, eta: float = 0.7) -> bool:
    """The fixed point is TD's with gamma / (1 + eta) and r / (1 + eta)."""
    other = h.changed(gamma=h.p.gamma / (1 + eta), r=h.p.r / (1 + eta))
    return np.allclose(st.certify(other).fixed_point("td"), h.fixed(eta))


def least_on_path(h: StepFacts) -> tuple[float, float]:
    """The least error over stable penalties, by a fine grid, and where."""
    etas = h.c.eta_hurwitz + np.linspace(1e-4, 3.0, 30_001)
    errors = [h.error(h.fixed(eta)) for eta in etas]
    return min(errors), float(etas[np.argmin(errors)])


def updates_grow(h: StepFacts) -> bool:
    """From the first state every possible change of w > 0 points up or is none."""
    p, gamma = h.p, h.p.moments().gamma
    pull = [p.pi[0, a] * (gamma[0, a, a] * p.Phi[a, 0] - p.Phi[0, 0]) for a in range(2)]
    return bool(min(pull) >= 0.0 and max(pull) > 0.0)


def setting(learner: Learner, name: str) -> float:
    return float(learner.values.get(name, 0.0))


def largest_alpha(h: StepFacts, learner: Learner) -> float:
    """In the mean square, or where that is not known in the mean."""
    moments = h.c.mean_square(learner)
    return h.c.largest_alpha(learner) if moments is None else moments.largest_alpha


def penalised(h: StepFacts, eta: float) -> bool:
    """Stable in the mean at a penalty that the step runs, in theory, and not growing in its run."""
    i = [setting(x, "eta") for x in h.learners].index(eta)
    stable = bool((h.rates(eta).real > 0).all())
    return stable and not h.grows(i) and h.errors[i][:, -1].max() < 0.01 * h.errors[i][0, 0]


CHECKS: list[dict[str, Check]] = [
    {
        "On-policy TD works": lambda h: true(
            (h.p.pi == h.p.mu).all() and h.settles(0, h.error(h.fixed()))
        ),
        "What will the error of on-policy TD do?": meaning(),
        "Temporal-difference learning": meaning(),
        "After each step": meaning(),
        "Here data and question belong to the same policy: μ = π.":
            lambda h: true((h.p.pi == h.p.mu).all()),
        "All eigenvalues of A ... lie to the right of the axis":
            lambda h: true((h.rates().real > 0).all()),
        "The curves fall to its error and stay near it.": lambda h: true(
            h.settles(0, h.error(h.fixed())) and (h.errors[:, :, 0] > 2 * h.error(h.fixed())).all()
        ),
        "What is the error": meaning(2),
        "The fixed point has error ": lambda h: [h.error(h.fixed())],
        "The best that these features can do is ... TD with λ = 1 goes there.": lambda h: true(
            np.isclose(h.error(h.c.fixed_point("td", lam=1)), h.best()), h.best(), 1
        ),
        "With λ = 0 it ends above, since": lambda h: true(h.error(h.fixed()) > 1.5 * h.best(), 0),
    },
    {
        "Off-policy, it diverges": lambda h: true((h.p.pi != h.p.mu).any() and h.grows(0)),
        "Now the data come from another policy, and all rewards are 0.":
            lambda h: true((h.p.pi != h.p.mu).any() and not h.p.r.any(), 0),
        "What will the error do?": meaning(),
        "Two states with features ... one weight, values w and 2w.":
            lambda h: [h.p.n_states, *h.p.Phi[:, 0], h.p.Phi[1, 0]],
        "The behaviour policy goes to either state equally often ... always to the second.":
            lambda h: true(
                (h.p.mu == 0.5).all() and (h.p.pi == [0, 1]).all()
                and (h.p.P[:, 0] == [1, 0]).all() and (h.p.P[:, 1] == [0, 1]).all()
            ),
        "All rewards are 0, so w = 0 is right.":
            lambda h: true(not h.p.r.any() and not h.p.v_pi.any(), 0, 0),
        "The ratio ρ": meaning(),
        "The target policy never returns to the first state.":
            lambda h: true(not (h.p.pi[:, :, None] * h.p.P)[:, :, 0].any()),
        "The behaviour policy is there half the time ... make w larger.":
            lambda h: true(updates_grow(h), h.p.d_mu[0]),
        "So the error grows without end.": lambda h: true(h.rates()[0] < 0 and h.grows(0)),
        "What is A": meaning(0),
        "It is one number: minus it is the rate at which the error grows":
            lambda h: true(h.A.shape == (1, 1)),
        "A = ": lambda h: [h.A[0, 0]],
        "In the mean a step multiplies w by about 1 + ": lambda h: [1, -h.A[0, 0]],
    },
    {
        "Why: the eigenvalue": meaning(),
        "Eight weights can give seven states any values.": lambda h: true(
            np.linalg.matrix_rank(h.p.Phi) == h.p.n_states, h.p.n_features, h.p.n_states
        ),
        "What will the error do?": meaning(),
        "Baird's ... seven states, eight weights, all values 0.":
            lambda h: true(not h.p.v_pi.any(), h.p.n_states, h.p.n_features, 0),
        "In the mean, w": meaning(),
        "A mode of A": meaning(1),
        "With small steps": meaning(),
        "The picture of the eigenvalues shows some to the left of the axis.":
            lambda h: true((h.rates().real < 0).any()),
        "Function approximation ... together allow that; any two of them alone do not":
            lambda h: true(two_of_three(h), 2),
        "That is the deadly": meaning(),
        "How many": meaning(0),
        "2, both real: ": lambda h: true(
            not h.rates()[:2].imag.any() and h.rates()[2].real > 0, 2, 2, *h.rates()[:2].real
        ),
        "So two modes grow, and neither swings.":
            lambda h: true(h.grows(0), (h.rates().real < 0).sum()),
        "A penalty brings ... they meet and become a complex pair.": lambda h: true(meets(h), 2),
    },
    {
        "What the penalty does": meaning(),
        "The paper's bound asks for a penalty of ": lambda h: [h.c.bounds["paper"]],
        "Does perturbed TD settle with η = ":
            lambda h: [setting(h.learners[1], "eta")],
        "The paper adds": meaning(1),
        "In the mean it adds η G to A, with G = Φ' D Φ.":
            lambda h: true(np.allclose(h.c.A(0.7) - h.c.A(0.0), 0.7 * h.G)),
        "Drag η ... on the left meet, become a complex pair and cross the axis.":
            lambda h: true(meets(h) and h.grows(0) and penalised(h, 0.2)),
        "The theorem asks": meaning(),
        "To converge in the mean, less is enough: all eigenvalues to the right.":
            lambda h: true(h.c.eta_hurwitz < h.c.eta_pd),
        "From which η": meaning(),
        "Drag, or read": meaning(),
        "From 0.122 on": lambda h: [h.c.eta_hurwitz],
        "A(η) is positive definite from ... the paper's bound asks for ":
            lambda h: [h.c.eta_pd, h.c.bounds["paper"]],
    },
    {
        "What it costs": meaning(),
        "Among the stable penalties": meaning(),
        "The penalty changes ... discount γ/(1 + η) and rewards r/(1 + η).":
            lambda h: true(shorter(h), 1, 1),
        "A large η pulls all values to 0.":
            lambda h: true(abs(h.p.Phi @ h.fixed(1e3)).max() < 0.01 * h.zero, 0),
        "A small one is not always better.":
            lambda h: true(h.error(h.fixed(0.42)) > h.error(h.fixed(0.6))),
        "Here an eigenvalue passes through 0 ... the fixed point has a pole.":
            lambda h: true(abs(h.rates(h.c.poles[0])).min() < 1e-9, 0),
        "On both sides of it the error is larger than that of predicting 0 everywhere, ":
            lambda h: true(
                min(h.error(h.fixed(h.c.poles[0] + x)) for x in (-0.01, 0.01)) > h.zero,
                2, 0, h.zero,
            ),
        "Below it all values have the wrong sign.": lambda h: true(
            all((h.p.Phi @ h.fixed(x) * h.p.v_pi < 0).all() for x in (0, 0.2, h.c.poles[0] - 0.01))
        ),
        "Drag η towards": meaning(),
        "At which η": meaning(),
        "At 0.4143": lambda h: h.c.poles,
        "The least error, ... lies above it, at η = ... eta=auto takes that": lambda h: true(
            np.isclose(h.c.resolved(h.learners[0], eta="auto").values["eta"], h.c.best_eta)
            and h.c.best_eta > h.c.poles[0], *least_on_path(h),
        ),
    },
    {
        "What the others do": meaning(),
        "TDC does not diverge here.":
            lambda h: true(h.c.is_stable(h.learners[1]) and not h.grows(1)),
        "Where it ends": meaning(0),
        "TDC has ... goes to TD's own fixed point, where TD itself does not.": lambda h: true(
            np.allclose(h.c.fixed_point(h.learners[1]), h.fixed())
            and not h.c.td_stable and h.c.is_stable(h.learners[1])
            and h.settles(1, h.error(h.fixed()))
        ),
        "Emphatic TD": meaning(),
        "It is stable in the mean, but": lambda h: true(h.c.is_stable(h.learners[2])),
        "Their variance is infinite here": lambda h: true(not h.c.variance(h.learners[2]).finite),
        "Longer traces ... here TD with λ = 0.9 is stable.":
            lambda h: true(h.c.is_stable(h.learners[3]), setting(h.learners[3], "lam")),
        "Each cure": meaning(),
        "TDC ends at TD's fixed point.": lambda h: true(h.settles(1, h.error(h.fixed()))),
        "What is the error": meaning(),
        "12.27, although predicting 0 everywhere has error ... stable is not the same as good.":
            lambda h: [h.error(h.fixed()), 0, h.zero],
    },
    {
        "Choose for your own": meaning(),
        "TD is stable here.": lambda h: true(h.c.td_stable),
        "Can adding a penalty": meaning(),
        "More penalty is not always safer.":
            lambda h: true(h.c.td_stable and len(h.c.unstable_etas) == 1),
        "Here TD is stable in the mean, η = 0.2 is not, and η = 0.5 is again.": lambda h: true(
            penalised(h, 0.0) and h.rates(0.2)[0].real < 0 and h.grows(1) and penalised(h, 0.5),
            setting(h.learners[1], "eta"), setting(h.learners[2], "eta"),
        ),
        "So look at": meaning(),
        "Stable in the mean": meaning(),
        "TD's mean squared error stays bounded up to α = ... the runs here use ": lambda h: [
            largest_alpha(h, h.learners[0]), *{setting(x, "alpha") for x in h.learners}
        ],
        "Now open": meaning(),
        '"Copy as Python"': meaning(),
        "From which η": meaning(),
        "From 0.3337 on": lambda h: [h.c.eta_hurwitz],
        "The unstable penalties lie between ... and that.": lambda h: [h.c.unstable_etas[0][0]],
    },
]  # fmt: skip


@cache
def facts_of(place: int) -> StepFacts:
    return StepFacts(course()[place])


def sentences_of(step: dict[str, Any]) -> list[str]:
    """The sentences of a step: its title, what to predict, its text, its question and its end."""
    predict = step["predict"]["question"]
    parts = [step["title"], predict, *step["text"], step["question"], step["why"]]
    return [one for part in parts for one in re.split(r"(?<=[.?])\s+(?=[A-Z\"])", part)]


def numbers(sentence: str) -> list[float]:
    """The numbers of a sentence in order, also in letters."""
    words = "|".join(LETTERS)
    found = re.findall(rf"-?\d+(?:\.\d+)?(?:e-?\d+)?|\b(?:{words})\b", sentence.lower())
    return [LETTERS[text] if text in LETTERS else float(text) for text in found]


def test_no_step_is_missing_here() -> None:
    assert len(course()) == len(CHECKS) == len(ANSWERS)


def test_what_counts_as_a_number() -> None:
    assert numbers("Two of 1.5e-04, A(0) = -0.2 and half.") == [2, 1.5e-4, 0, -0.2, 0.5]


@pytest.mark.parametrize("place", range(len(CHECKS)))
def test_every_sentence_is_true(place: int) -> None:
    checks, sentences = CHECKS[place], sentences_of(facts_of(place).step)
    for words, sentence in zip(checks, sentences, strict=True):
        assert re.match(".*".join(map(re.escape, words.split(" ... "))), sentence), sentence
        # four digits are printed; a least error on a grid is known to its spacing
        wanted = list(checks[words](facts_of(place)))
        np.testing.assert_allclose(numbers(sentence), wanted, rtol=6e-4, err_msg=sentence)


ANSWERS: list[Check] = [
    lambda h: [h.error(h.fixed())],
    lambda h: [h.A[0, 0]],
    lambda h: [(h.rates().real < 0).sum()],
    lambda h: [h.c.eta_hurwitz],
    lambda h: h.c.poles,
    lambda h: [h.error(h.fixed())],
    lambda h: [h.c.eta_hurwitz],
]


@pytest.mark.parametrize("place", range(len(ANSWERS)))
def test_every_answer_is_that_of_the_theory(place: int) -> None:
    found = facts_of(place)
    np.testing.assert_allclose([found.step["answer"]], list(ANSWERS[place](found)), rtol=1e-9)


PREDICTIONS: list[Callable[[StepFacts], object]] = [  # whether the first choice is right
    lambda h: h.settles(0, h.error(h.fixed())),
    lambda h: not h.grows(0),
    lambda h: not h.grows(0),
    lambda h: penalised(h, 0.2),
    lambda h: np.argmin([h.error(h.fixed(h.c.eta_hurwitz + x)) for x in (1e-3, 0.05, 0.1)]) == 0,
    lambda h: h.error(h.fixed()) < h.zero,
    lambda h: h.c.td_stable and h.rates(0.2)[0].real < 0,
]


@pytest.mark.parametrize("place", range(len(PREDICTIONS)))
def test_the_right_prediction_is_what_the_runs_and_the_matrices_show(place: int) -> None:
    found = facts_of(place)
    assert found.step["predict"]["right"] == (0 if PREDICTIONS[place](found) else 1)


@pytest.mark.parametrize("place", range(len(CHECKS)))
def test_step_sizes_suit_what_the_step_says(place: int) -> None:
    """A learner that the page calls stable in the mean has a step size at which runs are, too."""
    h = facts_of(place)
    for i, learner in enumerate(h.learners):
        if h.c.is_stable(learner):
            assert setting(learner, "alpha") < largest_alpha(h, learner), learner
        else:
            assert h.grows(i), learner

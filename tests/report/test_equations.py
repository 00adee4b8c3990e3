"""Equations of the learners' texts become LaTeX, and words stay words."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from steadytd.learners import algorithm, names
from steadytd.report.equations import block, latex, prose
from steadytd.report.learner_pages import sections


@pytest.mark.parametrize(
    ("plain", "typeset"),
    [
        ("Phi' D (I - lam P_gamma)^-1", r"\Phi^{\top} D (I - \lambda P_{\gamma})^{-1}"),
        ("r + gamma' w.x' - w.x", r"r + \gamma' w^{\top} x' - w^{\top} x"),
        ("h^ = (z - y).h", r"\hat{h} = (z - y)^{\top} h"),
        ("(P_gamma')^k", r"(P_{\gamma}^{\top})^{k}"),
        ("P_gamma'^k", r"(P_{\gamma}^{\top})^{k}"),
        ("F_{t-1}^(j-1)", r"F_{t - 1}^{(j - 1)}"),
        ("N^(k+1)", r"N^{k + 1}"),
        ("sum_{k=0..n} lam^k", r"\sum_{k=0}^{n} \lambda^{k}"),
        ("sum_a' pi(a'|s')", r"\sum_{a'} \pi(a' \vert s')"),
        ("x_bar' + w0 + l1", r"\bar{x}' + w_0 + \ell_1"),
        ("gamma sqrt((1 - min d/f) / beta)", r"\gamma \sqrt{(1 - \min d / f) / \beta}"),
        ("C -= (C z)(v' C)", r"C \leftarrow C - (C z) (v^{\top} C)"),
        ("||b - A w||^2", r"\Vert b - A w \Vert^{2}"),
        ("eta_pd <= 1.9e-4", r"\eta_{\mathrm{pd}} \le 1.9 \cdot 10^{-4}"),
    ],
)
def test_a_formula(plain: str, typeset: str) -> None:
    assert latex(plain) == typeset


def test_a_block_is_aligned_with_fractions_and_remarks() -> None:
    assert block("w    += alpha / (1 + eta) z\nF     = i            (once)\n") == (
        "$$\n\\begin{aligned}\n"
        "w &\\leftarrow w + \\frac{\\alpha}{1 + \\eta} z \\\\\n"
        "F &= i && \\text{(once)}\n"
        "\\end{aligned}\n$$"
    )


@pytest.mark.parametrize(
    "words",
    [
        "A small step, a large one; off-policy (TD(0)), 2 of 3, theta2theta, arXiv 2502.08941.",
        "the ratio is 3 and ridges help; `w += alpha x` is code; Sutton et al. (2009), e.g. here.",
        "ETD's variance, others' too; see [td](td.md) and http://a.b/w=x; O(active features).",
    ],
)
def test_words_stay_words(words: str) -> None:
    assert prose(words) == words


def test_symbols_in_words_are_set() -> None:
    assert prose("TD(lam)'s A has eta > 0, A is fine, w's x. A direct way.") == (
        r"TD($\lambda$)'s $A$ has $\eta > 0$, $A$ is fine, $w$'s $x$. A direct way."
    )
    assert prose("with beta = ratio alpha, (A + ridge I) w = b") == (
        r"with $\beta = \mathrm{ratio} \, \alpha$, $(A + \mathrm{ridge} \, I) w = b$"
    )


def letters(line: str) -> Counter[str]:
    """The names in a line, plain or LaTeX, without signs for form."""
    form = r"\\(frac|hat|bar|top|leftarrow|text|mathrm|operatorname|sum|dots|vert|ell|sqrt)"
    line = re.sub(form, " ", line).replace("\\lambda", "lam")
    return Counter(re.findall(r"[A-Za-z]+", line))


@pytest.mark.parametrize("name", names())
def test_no_name_in_an_update_is_lost(name: str) -> None:
    """Line by line; an increment names what it changes once more."""
    plain = re.findall(r"```\n(.*?)```", sections(algorithm(name).doc)["Update"], re.DOTALL)
    assert plain
    for text in plain:
        typeset = block(text).splitlines()[2:-2]
        assert len(typeset) == len(text.splitlines())
        lines = text.replace("sum over k < n of", "k < n").replace("x_bar", "x").replace("l1", "1")
        for line, shown in zip(lines.splitlines(), typeset, strict=True):
            expected = letters(line)
            if found := re.match(r"(\w+)\s*[-+]=", line):
                expected[found[1]] += 1
            assert letters(shown) == expected
            assert all(shown.count(a) == shown.count(b) for a, b in ("{}", "()", "[]"))

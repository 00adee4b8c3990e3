"""What a user has to know about the estimators that value actions."""

from __future__ import annotations

from steadytd.base.finding import Finding
from steadytd.evaluation.judge.values import Judged
from steadytd.evaluation.values import Iterated

UNSEEN = 0.01  # share of the target's probability on actions that the log never shows


def about_actions(j: Judged) -> list[Finding]:
    """Findings about the values of actions, for one target."""
    if j.actions is None:
        return []
    parts = (_unseen, _left_out)
    return [f for part in parts if (f := part(j)) is not None] + _iterated(j)


def _unseen(j: Judged) -> Finding | None:
    assert j.actions is not None
    s = j.actions.support
    if s.share < UNSEEN:
        return None
    listed = ", ".join(map(str, s.unseen))
    many = f"action{'s' if len(s.unseen) > 1 else ''} {listed}"
    return Finding(
        "actions_unseen", j.name, "warning",
        f"the target takes {many} with probability {s.share:.3g} (mean over the logged states), "
        "and no row shows that: nothing in the log says what it leads to. Estimators that value "
        "actions count 0 for it.",
        "Evaluate a target that stays with the log's actions, or log some of these.",
        {"actions": list(s.unseen), "share": s.share},
    )  # fmt: skip


def _left_out(j: Judged) -> Finding | None:
    assert j.actions is not None
    s = j.actions.support
    if not s.left_out:
        return None
    return Finding(
        "next_probs_missing", j.name, "note",
        f"{s.left_out} of {s.rows + s.left_out} rows end a cut-off episode, and the target's "
        "probabilities in the state after them are not known: estimators that value actions leave "
        "these rows out.",
        "Add the column next_target_probs_<name>, or give the target as a function.",
        {"left_out": s.left_out, "rows": s.rows},
    )  # fmt: skip


def _iterated(j: Judged) -> list[Finding]:
    """Iterations that have not settled, with what the certificate of the sums says about them."""
    assert j.actions is not None
    return [
        _not_settled(j.name, name, a)
        for name, a in j.actions.iterated.items()
        if a.radius >= 1.0 or not a.settled
    ]


def _not_settled(target: str, name: str, a: Iterated) -> Finding:
    factor = f"{a.radius:.6g} in the long run, the spectral radius of G^-1 C of its sums"
    if a.radius >= 1.0:
        text = f"{name} is unstable: each regression multiplies errors by {factor}."
    else:
        text = f"{name} has not settled: each regression multiplies errors only by {factor}."
    return Finding(
        "not_settled", target, "note",
        f"{text} lstdq solves the same equations and finds {a.fixed_point:.4g}.",
        "Use lstdq, or richer features.",
        {"learner": name, "radius": a.radius, "fixed_point": a.fixed_point},
    )  # fmt: skip

"""What a user has to know of the learners that went through the log step by step."""

from __future__ import annotations

from steadytd.base.finding import Finding
from steadytd.evaluation.judge.values import Judged, Value

CLOSE = 0.005  # of its fixed point: as near as an online learner has to come


def about_online(j: Judged) -> list[Finding]:
    """Findings about the learners that were followed along the log."""
    followed = [v for v in j.values if v.kind == "online"]
    return [f for part in (_diverged, _no_interval, _not_converged) for f in part(j, followed)]


def _diverged(j: Judged, followed: list[Value]) -> list[Finding]:
    return [
        Finding(
            "diverged",
            j.name,
            "note",
            f"{v.learner} left the finite range within {v.diverged} steps.",
            "Use a smaller alpha, or a learner that is stable here.",
            {"learner": v.learner, "step": v.diverged},
        )
        for v in followed
        if v.diverged is not None
    ]


def _no_interval(j: Judged, followed: list[Value]) -> list[Finding]:
    return [
        Finding(
            "no_interval",
            j.name,
            "note",
            f"{v.learner} has no interval: its fixed point cannot be computed from the sums kept.",
            "Use lstd or lsetd for intervals.",
            {"learner": v.learner},
        )
        for v in followed
        if v.fixed_point is None and v.diverged is None
    ]


def _not_converged(j: Judged, followed: list[Value]) -> list[Finding]:
    found = []
    for v in followed:
        if v.fixed_point is None or v.diverged is not None:
            continue
        if abs(v.value - v.fixed_point) > max(v.interval.width / 2, CLOSE * abs(v.fixed_point)):
            why = "it is unstable here" if v.stable is False else "it has not arrived there"
            text = (
                f"{v.learner} ended at {v.value:.4g}, its fixed point on this log is "
                f"{v.fixed_point:.4g}: {why}. The interval belongs to the fixed point."
            )
            remedy = "Use the solved form (lstd, perturbed_lstd, lsetd)."
            numbers = {"learner": v.learner, "value": v.value, "fixed_point": v.fixed_point}
            found.append(Finding("not_converged", j.name, "note", text, remedy, numbers))
    return found

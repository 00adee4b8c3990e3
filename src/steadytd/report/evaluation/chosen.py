"""Which targets are shown one by one where there are too many to look at all of them."""

from __future__ import annotations

import math

from steadytd.evaluation.judge.decide import Decision
from steadytd.evaluation.result import Evaluation

NAMED = 30  # targets that have a line or a dot of their own


def telling(e: Evaluation, most: int = NAMED) -> list[str]:
    """All targets, in order; of more than `most` the best and then the most doubtful ones.

    The best: trusted ones first, then by the difference to the policy that made the log. The most
    doubtful: those that are not trusted first, then by how wide the difference's interval is.
    """
    if len(e.targets) <= most:
        return e.targets
    best = [d.target for d in sorted(e.decisions, key=_worse)][: most - most // 2]
    doubtful = [d.target for d in sorted(e.decisions, key=_surer) if d.target not in best]
    return best + doubtful[: most // 2]


def _worse(d: Decision) -> tuple[bool, float]:
    return not d.trusted, -d.difference if math.isfinite(d.difference) else math.inf


def _surer(d: Decision) -> tuple[bool, float]:
    width = d.hi - d.lo
    return d.trusted, -width if math.isfinite(width) else -math.inf


def chosen_words(e: Evaluation, most: int, what: str) -> str:
    """What is shown of how many; nothing where that is all."""
    if len(e.targets) <= most:
        return ""
    return (
        f"{what} of {most} of {len(e.targets):,} targets: the {most - most // 2} best (trusted "
        "ones first, then by their difference to the policy that made the log) and the "
        f"{most // 2} most doubtful (those that are not trusted first, then by the width of their "
        "interval)."
    )

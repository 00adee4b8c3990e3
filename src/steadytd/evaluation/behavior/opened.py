"""A log with the probabilities of the policy that made it: logged, computed, or estimated."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from steadytd.base.errors import InputError
from steadytd.evaluation.behavior.behavior import estimate_behavior, with_estimated_behavior
from steadytd.logs.columns import ColumnMap
from steadytd.logs.log import Log, open_log
from steadytd.logs.policies import Policy


def opened(
    source: Any,
    discount: float | None,
    targets: Sequence[str] | Mapping[str, Policy] | None,
    columns: ColumnMap | None,
    behavior: Any,
    batch_rows: int,
    seed: int,
) -> Log:
    """The log, with estimated behaviour where that is asked for, and only there."""
    estimating = is_estimate(behavior)
    known = None if estimating else behavior
    if isinstance(source, Log):
        for name, given in (("targets", targets), ("columns", columns), ("behavior", known)):
            if given is not None:
                raise InputError(f"{name} of an open log cannot be changed; give it to open_log.")
        log = source
    else:
        log = open_log(
            source, discount=discount, targets=targets, columns=columns, behavior=known,
            batch_rows=batch_rows,
        )  # fmt: skip
    if not estimating:
        require_behavior(log)
    else:
        classifier = None if behavior == "estimate" else behavior
        log = with_estimated_behavior(log, estimate_behavior(log, classifier, seed=seed))
    return log


def require_behavior(log: Log) -> None:
    """Complain if the behaviour policy's probabilities are not known."""
    if log.has_behavior:
        return
    close = difflib.get_close_matches("behavior_prob", log.source.schemas[0].names, n=1)
    hint = f" Is it '{close[0]}'?" if close else ""
    name = close[0] if close else "its_name"
    raise InputError(
        f"{log.files[0]}: there is no column 'behavior_prob' with the probability of the logged "
        f"action.{hint} Name it with columns={{'behavior_prob': '{name}'}} (on the command line "
        f'--map behavior_prob={name}), or estimate it from the log with behavior="estimate" '
        "(--estimate-behavior)."
    )


def check_hidden(nothing_hidden: object, behavior: object) -> None:
    """Complain of a statement about estimates where none were asked for."""
    if not isinstance(nothing_hidden, bool):
        raise InputError(f"nothing_hidden must be True or False, got {nothing_hidden!r}.")
    if nothing_hidden and not is_estimate(behavior):
        raise InputError(
            "nothing_hidden says that a policy whose probabilities are estimated looked at nothing "
            'but the logged observations; it needs behavior="estimate" (--estimate-behavior) or a '
            "classifier."
        )


def is_estimate(behavior: object) -> bool:
    """Whether probabilities of the behaviour policy are to be estimated."""
    return (isinstance(behavior, str) and behavior == "estimate") or hasattr(
        behavior, "predict_proba"
    )

"""Every check of an evaluation, in one table.

A check compares one number with a limit. Where the number is beyond it, the check's sentence and
remedy become a finding. A warning is a reason not to trust the answer; a note is not. Terminal,
page, JSON and `docs/evaluate.md` all read this table, so that a finding is worded once.

The numbers come as *facts*: a dictionary by name, of the log, of a target or of a learner. A check
whose number is missing, or NaN, says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Literal

from steadytd.base.finding import Finding, Level
from steadytd.evaluation.rule import NEGATIVE

Subject = Literal["log", "target", "learner"]
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One row of the table: the finding `code` if `statistic` is above (or below) `limit`.

    Sentence and remedy have at most 25 words together; `{name:format}` in them is one of the facts.
    """

    subject: Subject
    code: str
    level: Level
    statistic: str
    side: Literal["above", "below"]
    limit: float
    sentence: str
    remedy: str = ""

    def finding(self, facts: Facts, target: str) -> Finding | None:
        """What the check finds in these facts."""
        number = facts.get(self.statistic)
        if number is None or math.isnan(number):
            return None
        if not (number > self.limit if self.side == "above" else number < self.limit):
            return None
        text = self.sentence.format(**facts, limit=self.limit)
        used = [name for _, name, _, _ in Formatter().parse(self.sentence) if name]
        numbers = {name: facts[name] for name in dict.fromkeys([self.statistic, *used])
                   if name in facts}  # fmt: skip
        return Finding(self.code, target, self.level, text, self.remedy, numbers)


CHECKS = (
    # The most serious first. Of several rows with one code the first that applies is taken.
    Check(
        "log", "probabilities_off", "warning", "calibration_failures", "above", 0,
        "The logged probabilities are wrong: {calibration_worst}.",
        "Correct behavior_prob.",
    ),
    Check(
        "log", "behavior_estimated", "warning", "estimated_unstated", "above", 0,
        "The behaviour policy's probabilities are estimates, and their error is in no interval.",
        "Log behavior_prob, or count actions and state nothing_hidden.",
    ),
    Check(
        "log", "behavior_estimated", "note", "estimated", "above", 0,
        "Probabilities are estimated by counting actions: right only if the policy saw nothing "
        "but the observations, as stated.",
    ),
    Check(
        "log", "few_episodes", "warning", "units", "below", 20,
        "The log has only {size}; intervals need at least {least}.",
        "Collect more; hundreds are better.",
    ),
    Check(
        "log", "rows_left_out", "warning", "left_out_share", "above", 0.01,
        "{left_out_share:.1%} of the rows are left out: they end episodes without termination and "
        "without a next observation.",
        "Add next_obs there.",
    ),
    Check(
        "log", "rows_left_out", "note", "left_out_share", "above", 0,
        "{left_out:,} rows are left out: they end episodes without termination and without a next "
        "observation.",
        "Add next_obs there.",
    ),
    Check(
        "target", "no_support", "warning", "violations", "above", 0,
        "In {violations:,} rows the target's probability is above 0 and the behaviour policy's "
        "is 0.",
        "Correct the probabilities.",
    ),
    Check(
        "target", "ratios_off", "warning", "ratio_deviation", "above", 0,
        "The mean ratio is {rho_mean:.3f} and should be 1: probabilities are wrong, or the log "
        "lacks actions of the target.",
        "Check both probabilities.",
    ),
    Check(
        "target", "actions_unseen", "warning", "unseen_share", "above", 0.01,
        "The target takes actions {unseen_actions} with probability {unseen_share:.2g}; the log "
        "never does.",
        "Log these actions, or evaluate a target without them.",
    ),
    Check(
        "target", "no_end", "warning", "endless", "above", 0,
        "No episode ends and the discount is 1: the sum of rewards has no limit.",
        "Give a discount below 1.",
    ),
    Check(
        "target", "no_value", "warning", "unknown", "above", 0,
        "The equations cannot be solved without a fifth of the log.",
        "Use fewer features, or collect more data.",
    ),
    Check(
        "target", "no_variation", "warning", "constant_scores", "above", 0,
        "All units have the same score, so the sampling error cannot be estimated.",
        "Log data in which rewards or ratios vary.",
    ),
    Check(
        "target", "low_overlap", "warning", "supported", "below", 1,
        "Too little of the log is like the target: {effective:.3g} effective units, mean weight "
        "{mean_weight:.3g} instead of 1.",
        "Log a policy closer to it.",
    ),
    Check(
        "target", "bias_unchecked", "warning", "unchecked", "above", 0,
        "Nothing checks the bias of the features: no second description of the state, and no "
        "higher lam.",
        "Use other features.",
    ),
    Check(
        "target", "beyond_log", "warning", "negative", "above", NEGATIVE,
        "{negative:.0%} of the estimated visits are negative: the target goes where the log "
        "hardly was.",
        "Log a policy closer to it.",
    ),
    Check(
        "target", "stretches_alike", "warning", "correlation", "above", 0.2,
        "Neighbouring stretches of the log are correlated ({correlation:.2f}): it is too short for "
        "its memory.",
        "Collect a longer log.",
    ),
    Check(
        "target", "cut_off", "warning", "cut_share", "above", 0.5,
        "Episodes are cut off with {cut_share:.0%} of their discounted length to come; only "
        "features fill that in.",
        "Log longer episodes.",
    ),
    Check(
        "target", "value_range", "warning", "outside", "above", 0,
        "The value {value:.4g} and its interval are impossible: rewards allow {lowest:.4g} to "
        "{highest:.4g}.",
        "Use other features, and check the ratios.",
    ),
    Check(
        "target", "rare_outcomes", "note", "rare_probability", "above", 0,
        "An outcome with probability below {rare_probability:.2g} per episode may be missing from "
        "the log.",
        "State reward_range to include it.",
    ),
    Check(
        "target", "features_poor", "note", "bias_share", "above", 0.5,
        "Other features, or another lam, move the value by {bias:.3g}: most of the interval's half "
        "width.",
        "Use richer features.",
    ),
    Check(
        "target", "unlike_target", "note", "ess_step_share", "below", 0.05,
        "{rows:,} logged rows are worth {ess_step:,.0f} of the target's own.",
        "Log a policy closer to the target.",
    ),
    Check(
        "target", "td_unstable", "note", "td_unstable", "above", 0,
        "Plain TD is {td_word} on this log; every penalty above {eta_pd:.3g} makes it stable.",
        "Train with lstd or tdc instead.",
    ),
    Check(
        "target", "bias_dominates", "note", "penalty_moved", "above", 0,
        "The penalty eta = {penalty:.3g} moves the value from {unpenalised:.4g} to "
        "{penalised:.4g}, beyond lstd's interval.",
        "Use lstd or tdc.",
    ),
    Check(
        "target", "learners_disagree", "note", "disagreement", "above", 3.5,
        "{first} and {second} differ by {apart:.3g}, which is {disagreement:.1f} standard errors.",
        "Rely on drl, whose interval includes bias.",
    ),
    Check(
        "target", "sensitivity", "note", "Lambda", "above", 1.001,
        "Target and logged policy change places only if ratios are wrong by a factor of "
        "{Lambda:.3f} or more.",
    ),
    Check(
        "target", "next_probs_missing", "note", "next_probs_missing", "above", 0,
        "{next_probs_missing:,} cut-off rows lack the target's next probabilities; action values "
        "leave them out.",
        "Add next_target_probs_<name>.",
    ),
    Check(
        "learner", "diverged", "note", "diverged", "above", -1,
        "{learner} left the finite range within {diverged:,} steps.",
        "Use a smaller alpha, or a stable learner.",
    ),
    Check(
        "learner", "no_interval", "note", "no_interval", "above", 0,
        "{learner} has no interval: its fixed point is not known.",
        "Use lstd or lsetd for intervals.",
    ),
    Check(
        "learner", "not_converged", "note", "distance", "above", 1,
        "{learner} ended at {value:.4g}; its fixed point on this log is {fixed_point:.4g}.",
        "Use the solved form (lstd, perturbed_lstd, lsetd).",
    ),
    Check(
        "learner", "not_settled", "note", "unsettled_radius", "above", 0,
        "{learner} has not settled: each iteration multiplies its error by {unsettled_radius:.4g}.",
        "Use lstdq, which solves the same equations.",
    ),
    Check(
        "log", "actions_missing", "note", "missing_actions", "above", 0,
        "Actions {missing_names} occur less often than their probabilities imply: impossible in "
        "some states, or logged wrongly.",
        "Log behavior_probs to tell.",
    ),
    Check(
        "log", "truncated_returns", "note", "discount_left", "above", 0.05,
        "{truncated:,} of {episodes:,} episodes are cut off; pdis, snpdis and quantiles count only "
        "what was logged.",
    ),
    Check(
        "log", "continuing_log", "note", "continuing", "above", 0,
        "Values are means over all logged states; intervals treat {independent} as "
        "independent.",
    ),
)  # fmt: skip

CODES = tuple(dict.fromkeys(check.code for check in CHECKS))


def findings(subject: Subject, facts: Facts, target: str = "") -> list[Finding]:
    """What all checks of a subject find, the most serious first; at most one finding per code."""
    found: dict[str, Finding] = {}
    for check in CHECKS:
        if check.subject == subject and check.code not in found:
            finding = check.finding(facts, target)
            if finding is not None:
                found[check.code] = finding
    return list(found.values())


def serious_first(found: Iterable[Finding]) -> list[Finding]:
    """Findings in the order of the table, warnings before notes."""
    return sorted(found, key=lambda f: (f.level != "warning", CODES.index(f.code)))

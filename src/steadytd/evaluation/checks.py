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
from steadytd.base.numbers import count, number, percent
from steadytd.evaluation.rule import EFFECTIVE_UNITS, NEGATIVE

Subject = Literal["log", "target", "learner"]
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Check:
    """One row of the table: the finding `code` if `statistic` is above (or below) `limit`.

    Sentence and remedy have at most 25 words together. In them `{name}` is one of the facts, and
    `{name:3}` a number with three digits, `{name:count}` and `{name:percent}` what they say.
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
        text, remedy = (_Numbers().format(one, **facts) for one in (self.sentence, self.remedy))
        used = [name for _, name, _, _ in Formatter().parse(self.sentence) if name]
        numbers = {name: facts[name] for name in dict.fromkeys([self.statistic, *used])
                   if name in facts}  # fmt: skip
        return Finding(self.code, target, self.level, text, remedy, numbers)


class _Numbers(Formatter):
    """Numbers in sentences, written as everywhere else."""

    def format_field(self, value: Any, spec: str) -> str:
        if spec.isdigit():
            return number(value, int(spec))
        if spec == "percent":
            return percent(value)
        return count(value) if spec == "count" else str(value)


CHECKS = (
    # The most serious first. Of several rows with one code the first that applies is taken.
    Check(
        "log", "probabilities_off", "warning", "calibration_failures", "above", 0,
        "The logged probabilities are wrong: {calibration_worst}.",
        "Correct behavior_prob.",
    ),
    Check(
        "log", "behavior_estimated", "warning", "estimated_unstated", "above", 0,
        "The behaviour policy's probabilities are estimates, and no interval includes their error.",
        "Log behavior_prob, or count actions and state nothing_hidden.",
    ),
    Check(
        "log", "behavior_estimated", "note", "estimated", "above", 0,
        "The behaviour policy is estimated from action counts. That is valid only if it used "
        "nothing but the logged observations, as stated.",
    ),
    Check(
        "log", "few_episodes", "warning", "units", "below", 20,
        "The log has only {size}; intervals need at least {least}.",
        "Collect more; hundreds are better.",
    ),
    Check(
        "log", "few_units", "warning", "effective_units", "below", EFFECTIVE_UNITS,
        "{unit_count:count} units ({unit_name}) count like {effective_units:2} of equal size; "
        "intervals need at least 60.",
        "Collect data of more units.",
    ),
    Check(
        "log", "units_visible", "warning", "someone", "above", 0,
        "Episodes with the same {unit_column} are alike in returns or effects: they are not "
        "independent.",
        "Give this column as unit (--unit).",
    ),
    Check(
        "log", "units_visible", "note", "alike", "above", 0,
        "Episodes with the same {unit_column} are alike in returns or effects.",
        "If it says who was logged, give it as unit (--unit).",
    ),
    Check(
        "log", "drift", "warning", "drift", "above", 0,
        "Along the log {drifting} change: {early:3} in its first fifth, {late:3} in its last.",
        "Evaluate recent episodes; shuffle if the order is not time.",
    ),
    Check(
        "log", "copies", "warning", "copied", "above", 0,
        "{copies:count} of {pairs:count} pairs of episodes that begin alike are exact copies; "
        "chance allows about {copies_expected:2}.",
        "Drop duplicated episodes.",
    ),
    Check(
        "log", "time_limit", "warning", "time_limit", "above", 0,
        "{limit_episodes:count} episodes terminate at step {limit_steps}, the last: a time limit.",
        "Flag truncation, or state reward_range and horizon={limit_steps}.",
    ),
    Check(
        "log", "unfinished", "warning", "unfinished", "above", 0,
        "The last twentieth of episodes has {last_steps:3} steps, others {other_steps:3}: "
        "unfinished ones may be missing.",
        "Leave out the last episodes.",
    ),
    Check(
        "log", "rows_left_out", "warning", "left_out_share", "above", 0.01,
        "{left_out_share:percent} of the rows are left out: each ends an episode that neither "
        "terminates nor has a next observation.",
        "Add next_obs there.",
    ),
    Check(
        "log", "rows_left_out", "note", "left_out_share", "above", 0,
        "{left_out:count} rows are left out: each ends an episode that neither terminates nor has "
        "a next observation.",
        "Add next_obs there.",
    ),
    Check(
        "target", "ratios_off", "warning", "ratio_deviation", "above", 0,
        "The mean ratio is {rho_mean:4} and should be 1: probabilities are wrong, or the log "
        "lacks actions of the target.",
        "Check both probabilities.",
    ),
    Check(
        "target", "actions_unseen", "warning", "unseen_share", "above", 0.01,
        "The target takes actions {unseen_actions} with probability {unseen_share:2}; the log "
        "never does.",
        "Log these actions, or evaluate a target without them.",
    ),
    Check(
        "target", "no_end", "warning", "endless", "above", 0,
        "No episode ends and the discount is 1: the sum of rewards has no limit.",
        "Give a discount below 1, or average_reward.",
    ),
    Check(
        "target", "no_value", "warning", "unknown", "above", 0,
        "The equations become singular when a fifth of the log is left out.",
        "Use fewer features, or collect more data.",
    ),
    Check(
        "target", "no_variation", "warning", "constant_scores", "above", 0,
        "All units have the same score, so the sampling error cannot be estimated.",
        "Log data in which rewards or ratios vary.",
    ),
    Check(
        "target", "low_overlap", "warning", "supported", "below", 1,
        "The log has too little overlap with the target: {effective:2} effective units; at least "
        "60 are needed.",
        "Log a policy closer to it.",
    ),
    Check(
        "target", "weights_off", "warning", "weights_off", "above", 0,
        "The mean weight of an episode is {mean_weight:3}; it should be 1 within 2.5 standard "
        "errors.",
        "Collect more data, or use other features.",
    ),
    Check(
        "target", "bias_unchecked", "warning", "unchecked", "above", 0,
        "The bias of the features cannot be checked: there is no second feature map and no "
        "higher lam.",
        "Use other features.",
    ),
    Check(
        "target", "beyond_log", "warning", "negative", "above", NEGATIVE,
        "{negative:percent} of the estimated visits are negative: the target visits states that "
        "are rare in the log.",
        "Log a policy closer to it.",
    ),
    Check(
        "target", "stretches_alike", "warning", "correlation", "above", 0.2,
        "Adjacent blocks of the log are correlated ({correlation:2}): the log is too short to "
        "treat them as independent.",
        "Collect a longer log.",
    ),
    Check(
        "target", "cut_off", "warning", "cut_share", "above", 0.5,
        "Episodes are truncated with {cut_share:percent} of their discounted length remaining; "
        "only the features account for that part.",
        "Log longer episodes.",
    ),
    Check(
        "target", "value_range", "warning", "outside", "above", 0,
        "The value {value:4} and its interval lie outside the range that the rewards allow, "
        "{lowest:4} to {highest:4}.",
        "Use other features, and check the ratios.",
    ),
    Check(
        "target", "rare_outcomes", "note", "rare_probability", "above", 0,
        "An outcome with probability below {rare_probability:2} per {each} may be missing from "
        "the log.",
        "State reward_range to include it.",
    ),
    Check(
        "target", "features_poor", "note", "bias_share", "above", 0.5,
        "Other features, or another lam, move the value by {bias:3}, which is most of the "
        "interval's half-width.",
        "Use richer features.",
    ),
    Check(
        "target", "unlike_target", "note", "ess_step_share", "below", 0.05,
        "{rows:count} logged rows carry the information of about {ess_step:count} rows from the "
        "target itself.",
        "Log a policy closer to the target.",
    ),
    Check(
        "target", "td_unstable", "note", "td_unstable", "above", 0,
        "Plain TD is {td_word} on this log; every penalty above {eta_pd:3} makes it stable.",
        "Train with lstd or tdc instead.",
    ),
    Check(
        "target", "bias_dominates", "note", "penalty_moved", "above", 0,
        "The penalty eta = {penalty:3} moves the value from {unpenalised:4} to {penalised:4}, "
        "beyond lstd's interval.",
        "Use lstd or tdc.",
    ),
    Check(
        "target", "learners_disagree", "note", "disagreement", "above", 3.5,
        "{first} and {second} differ by {apart:3}, which is {disagreement:2} standard errors.",
        "Rely on drl, whose interval includes bias.",
    ),
    Check(
        "target", "sensitivity", "note", "Lambda", "above", 1.001,
        "The order of target and logged policy would change only if ratios were wrong by a factor "
        "of {Lambda:4} or more.",
    ),
    Check(
        "target", "next_probs_missing", "note", "next_probs_missing", "above", 0,
        "{next_probs_missing:count} truncated rows lack the target's next probabilities; action "
        "values leave them out.",
        "Add next_target_probs_<name>.",
    ),
    Check(
        "learner", "diverged", "note", "diverged", "above", -1,
        "{learner} overflowed within {diverged:count} steps.",
        "Use a smaller alpha, or a stable learner.",
    ),
    Check(
        "learner", "no_interval", "note", "no_interval", "above", 0,
        "{learner} has no interval: its fixed point is not known.",
        "Use lstd or lsetd for intervals.",
    ),
    Check(
        "learner", "not_converged", "note", "distance", "above", 1,
        "{learner} ended at {value:4}; its fixed point on this log is {fixed_point:4}.",
        "Use the solved form (lstd, perturbed_lstd, lsetd).",
    ),
    Check(
        "learner", "not_settled", "note", "unsettled_radius", "above", 0,
        "{learner} has not converged: each iteration multiplies its error by {unsettled_radius:4}.",
        "Use lstdq, which solves the same equations.",
    ),
    Check(
        "log", "actions_missing", "note", "missing_actions", "above", 0,
        "Actions {missing_names} occur less often than their probabilities imply: they are "
        "impossible in some states, or the probabilities are wrong.",
        "Log behavior_probs to find out.",
    ),
    Check(
        "log", "truncated_returns", "note", "discount_left", "above", 0.05,
        "{truncated:count} of {episodes:count} episodes are truncated; pdis, snpdis and quantiles "
        "count only what was logged.",
    ),
    Check(
        "log", "fixed_end", "note", "fixed_end", "above", 0,
        "All episodes terminate at step {limit_steps}{step_unseen}: values count the rewards of "
        "these steps.",
        "If they were cut off there, flag truncation.",
    ),
    Check(
        "log", "ids_missing", "note", "ids_missing", "above", 0,
        "{missing:count} of {ids:count} consecutive episode numbers are missing: episodes may have "
        "been left out.",
        "Check why.",
    ),
    Check(
        "log", "continuing_log", "note", "continuing", "above", 0,
        "Values are means over all logged states; intervals treat {independent} as "
        "independent.",
    ),
    Check(
        "log", "average_reward", "note", "average", "above", 0,
        "Values are rewards per step in the long run; intervals treat {independent} as "
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

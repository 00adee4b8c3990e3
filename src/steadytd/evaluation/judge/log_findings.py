"""What a user has to know before trusting a value: findings about the log as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steadytd.base.finding import Finding, Level
from steadytd.base.wording import count
from steadytd.evaluation.evidence import Evidence
from steadytd.evaluation.judge.stated import Stated

FEW_EPISODES, FEW_ROWS = 20, 1000  # rows count where there are no episodes
MUCH_LEFT = 0.05  # discount left where episodes are cut, on average


@dataclass(frozen=True)
class LogFacts:
    """What the findings need to know of the log as a whole."""

    rows: int
    episodes: int
    units: int
    truncated: int
    discount_left: float  # mean over truncated episodes
    left_out: int
    continuing: bool
    divided: bool  # units begin within episodes, since there are too few whole ones
    behavior_estimated: bool
    behavior_numbers: dict[str, Any]
    unit_rows: float = float("nan")  # rows per unit, on average
    rewards: tuple[float, float] = (float("-inf"), float("inf"))  # the least and the largest logged
    largest_discount: float = 1.0
    longest: int = 0  # steps of the longest episode
    stated: Stated | None = None  # what is known of rewards, in the log or not
    nothing_hidden: bool = False  # stated: the policy looked at the logged observations only

    @staticmethod
    def of(log: Evidence, behavior: dict[str, Any] | None, stated: Stated | None) -> LogFacts:
        """From the passes; `behavior` has numbers of the estimated policy, None: it was logged."""
        ratios = log.first.ratios
        truncated, left = ratios.cut.tolist()
        least, most, discount, longest = ratios.extent.tolist()
        return LogFacts(
            rows=ratios.n_rows,
            episodes=ratios.n_episodes,
            units=log.n_units,
            truncated=int(truncated),
            discount_left=float(left / truncated) if truncated else 0.0,
            left_out=log.first.left_out,
            continuing=log.equations.where == "states",
            divided=log.stretches,
            behavior_estimated=behavior is not None,
            behavior_numbers=behavior or {},
            unit_rows=ratios.n_rows / log.n_units,
            rewards=(least, most),
            largest_discount=discount,
            longest=int(longest),
            stated=stated,
        )

    @property
    def allowed(self) -> tuple[float, float]:
        """Between these every value lies if rewards stay within those logged, or stated.

        Rewards of one sign, discounted, add up to no less than one of them. All together are at
        most 1 / (1 - discount) times the largest: without end where the discount is 1.
        """
        low, high = self.rewards if self.stated is None else self.stated[:2]
        steps = 1.0 / max(1.0 - self.largest_discount, 1e-300)
        return (low * steps if low < 0.0 else low), (high * steps if high > 0.0 else high)


def _estimated(f: LogFacts) -> Finding:
    """What ratios rest on where probabilities are estimates.

    A note where actions were counted at each observation and nothing else is said to matter: such
    answers were found to be right. A classifier may be calibrated, and wrong at every observation.
    """
    numbers = f.behavior_numbers
    known, counted = numbers.get("rows"), bool(numbers.get("counted"))
    fine = bool(numbers.get("calibrated"))
    rows = "the log" if known is None else f"{count(known, 'row')} of the log"
    text = (
        f"the behaviour policy's probabilities were estimated from {rows}. Every ratio rests on "
        "that estimate, and intervals do not cover its error. "
    )
    remedy = "Log behavior_prob when you collect data; look at the calibration here."
    level: Level = "warning"
    stated = "it is stated that the policy knew no more than the observations tell"
    if not f.nothing_hidden:
        text += (
            "If the policy knew more than the observations tell, the estimate is wrong, and no log "
            "shows that."
        )
        if counted and fine:
            remedy += " If it knew no more, say so (nothing_hidden=True, --nothing-hidden)."
        elif not counted:
            remedy += (
                " Where observations come again (about 30 rows of each) actions are counted, and "
                "it can be stated that the policy knew no more (nothing_hidden)."
            )
    elif not counted:
        text += f"{stated.capitalize()}, but what a classifier makes of them may still be wrong."
        remedy += " Where observations come again (about 30 rows of each), actions are counted."
    elif not fine:
        text += f"{stated.capitalize()}, but actions were not taken as often as the estimate says."
    else:
        text += (
            f"Actions were counted at each observation, and {stated}: if that is false, so may be "
            "the answer."
        )
        level = "note"
    return Finding("behavior_estimated", "", level, text, remedy, numbers)


def about_log(f: LogFacts) -> list[Finding]:
    """Findings that concern every target."""
    found = []
    if f.behavior_estimated:
        found.append(_estimated(f))
    if f.continuing:
        why = "the log is one episode" if f.episodes <= 1 else "as asked for"
        apart = (
            f" Intervals treat {f.units} stretches of about {count(round(f.unit_rows), 'row')} as "
            "independent."
            if f.divided else ""
        )  # fmt: skip
        found.append(
            Finding(
                "continuing_log",
                "",
                "note",
                f"{why}: values are means over all logged states.{apart}",
                "pdis and snpdis value first states, so they say nothing here.",
            )
        )
    if f.rows < FEW_ROWS if f.continuing else f.episodes < FEW_EPISODES:
        found.append(
            Finding(
                "few_episodes",
                "",
                "warning",
                f"the log has {count(f.rows, 'row')} and {count(f.episodes, 'episode')} in "
                f"{count(f.units, 'unit')}: too few for an interval that can be trusted.",
                f"Collect at least {FEW_ROWS} rows; better many thousands."
                if f.continuing
                else f"Collect at least {FEW_EPISODES} episodes; better hundreds.",
                {"rows": f.rows, "episodes": f.episodes, "units": f.units},
            )
        )
    if f.truncated and f.discount_left > MUCH_LEFT and not f.continuing:
        found.append(
            Finding(
                "truncated_returns",
                "",
                "note",
                f"{f.truncated} of {f.episodes} episodes are cut off with {f.discount_left:.0%} of "
                "their weight still to come. pdis, snpdis and quantiles of the return know only "
                "what was logged; the solved learners and drl add the estimated value of the state "
                "at the cut.",
                "Do not compare pdis, snpdis and quantiles with the others.",
                {"truncated": f.truncated, "discount_left": f.discount_left},
            )
        )
    if f.left_out:
        share = f.left_out / max(f.rows + f.left_out, 1)
        found.append(
            Finding(
                "rows_left_out",
                "",
                "warning" if share > 0.01 else "note",
                f"left out: {count(f.left_out, 'row')} ({share:.2%}), each at the end of an "
                "episode that did not terminate; the next observation is not known.",
                "Give next_obs there (a column that may be empty in all other rows).",
                {"left_out": f.left_out, "share": share},
            )
        )
    return found

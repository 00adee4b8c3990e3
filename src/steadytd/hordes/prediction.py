"""A prediction: a learner, and where its cumulant, its ratios and its discount come from.

The value that it learns is E_pi[c_1 + g_1 c_2 + g_1 g_2 c_3 + ...], for the cumulant c (any number
that each step brings), the discount g of each step and the target policy pi: a general value
function (Sutton et al. 2011, "Horde").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steadytd.base.errors import InputError
from steadytd.base.numbers import whole
from steadytd.engine.facts import number
from steadytd.engine.law import Law
from steadytd.engine.learner import Learner
from steadytd.engine.settings import plain
from steadytd.learners import learner as make_learner

BEHAVIOR = "behavior"
MOST_COLUMNS = 10_000_000


@dataclass(frozen=True)
class HordePrediction:
    """What one prediction is about; made by `prediction`.

    `discount` is the same at every step, or None where the number comes from column
    `discount_column` of the discounts given with each step.
    """

    learner: Learner
    cumulant: int
    policy: int | None
    discount: float | None
    discount_column: int | None

    def __str__(self) -> str:
        policy = "the behavior policy" if self.policy is None else f"policy {self.policy}"
        column = f"from column {self.discount_column}"
        discount = column if self.discount is None else plain(self.discount)
        return f"{self.learner} about cumulant {self.cumulant} under {policy}, discount {discount}"

    @property
    def settings(self) -> dict[str, Any]:
        """What `prediction` was given, for a file."""
        return {
            "learner": str(self.learner), "cumulant": self.cumulant,
            "policy": BEHAVIOR if self.policy is None else self.policy,
            "discount": self.discount, "discount_column": self.discount_column,
        }  # fmt: skip


def prediction(
    learner: str | Law | Learner,
    *,
    cumulant: int,
    policy: int | str,
    discount: float | None = None,
    discount_column: int | None = None,
) -> HordePrediction:
    """A prediction for `horde`.

    `cumulant` and `policy` are columns of the cumulants and of the ratios that every step brings;
    `policy="behavior"` is about the policy that acts, whose ratio is 1. Give `discount`, a number
    from 0 to 1 that is the same at every step, or `discount_column`, a column of the discounts.

    >>> str(prediction("td:alpha=0.1", cumulant=0, policy="behavior", discount=0.9))
    'td:alpha=0.1 about cumulant 0 under the behavior policy, discount 0.9'
    """
    made = make_learner(learner)
    made.require_numbers("a live stream")
    if (discount is None) == (discount_column is None):
        raise InputError(
            "a prediction needs its discount: give discount=... (a number from 0 to 1, the same at "
            "every step) or discount_column=... (a column of the discounts of each step); "
            f"got discount={discount!r}, discount_column={discount_column!r}."
        )
    if made.law.average_reward and discount != 1.0:
        raise InputError(
            f"{made.name} learns the average of its cumulant, without discount; give discount=1."
        )
    column = whole("cumulant (a column of the cumulants)", cumulant, 0, MOST_COLUMNS)
    by = (
        None
        if discount_column is None
        else whole("discount_column", discount_column, 0, MOST_COLUMNS)
    )
    constant = None if discount is None else number("discount", discount, 0.0, 1.0)
    return HordePrediction(made, column, _policy(policy, made), constant, by)


def _policy(policy: int | str, learner: Learner) -> int | None:
    """The column of a policy's ratios, or None for the policy that acts."""
    if isinstance(policy, str):
        if policy != BEHAVIOR:
            raise InputError(
                f"policy must be a column of the ratios (0, 1, ...) or '{BEHAVIOR}', the policy "
                f"that acts; got '{policy}'."
            )
        if learner.law.needs_policies:
            raise InputError(
                f"{learner.name} needs pi and mu, the probabilities of the action taken; give the "
                f"column of its policy instead of '{BEHAVIOR}'."
            )
        return None
    return whole(f"policy (a column of the ratios, or '{BEHAVIOR}')", policy, 0, MOST_COLUMNS)

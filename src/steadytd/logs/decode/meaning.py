"""What the columns of a log mean, and which of them are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steadytd.base.errors import InputError
from steadytd.logs.columns import Columns

Policy = Callable[..., Any]  # see `docs/logs.md`: of observations alone, or with actions


@dataclass(frozen=True)
class Meaning:
    """How the columns of a log become transitions."""

    columns: Columns
    width: int
    discount: float | None
    targets: tuple[str, ...]
    policies: Mapping[str, Policy] = field(default_factory=dict)  # targets that are functions
    behavior: Policy | None = None
    numeric_actions: bool = True
    dtype: str = "float64"  # of the observations, in all files
    densities: bool = False  # actions are continuous: probabilities may be above 1
    actions: int = 0  # how many there are; 0: no policy is known as a whole
    whole: tuple[str, ...] = ()  # the targets that are known as a whole
    behavior_whole: bool = False

    @property
    def policies_known(self) -> int:
        """How many policies are known as a whole: targets first, then the behaviour policy."""
        return len(self.whole) + self.behavior_whole

    def need_actions(self, file: str, why: str) -> None:
        """Fail if the log has no actions that are numbers."""
        if not self.numeric_actions:
            name = self.columns.action
            got = (
                f"column '{name}' does not hold numbers" if name else "there is no column 'action'"
            )
            raise InputError(
                f"{file}: {why}, but {got}; number the actions 0, 1, 2, ..., or name another "
                "column in the column map (action=its_name)."
            )

    def names(self, fields: frozenset[str]) -> list[str]:
        """The columns to read for these optional fields of a batch."""
        c = self.columns
        unwanted: set[str | None] = {c.action} - ({c.action} if self.acts(fields) else set())
        if "target_prob" not in fields:
            unwanted.update(c.targets.values())
        if "behavior_prob" not in fields or self.behavior is not None:
            unwanted.add(c.behavior)
        if "probs" not in fields:
            needed = {name for label in self.picked(fields) for name in c.whole[label]}
            needed.update(c.behavior_whole if self.picks_behavior(fields) else ())
            unwanted.update(set(c.distributions()) - needed)
        return [name for name in c.names() if name not in unwanted]

    def acts(self, fields: frozenset[str]) -> bool:
        """Whether actions are read: asked for, or to find the probabilities of logged ones."""
        return (
            "action" in fields
            or ("probs" in fields and self.actions > 0)
            or self.calls(fields)
            or bool(self.picked(fields))
            or self.picks_behavior(fields)
        )

    def picked(self, fields: frozenset[str]) -> list[str]:
        """The targets whose probability of the logged action is taken from the whole ones."""
        known = self.columns.targets.items()
        return [name for name, column in known if column is None and "target_prob" in fields]

    def picks_behavior(self, fields: frozenset[str]) -> bool:
        """Whether the behaviour's probability of the logged action is taken from the whole ones."""
        other = self.behavior is not None or self.columns.behavior is not None
        return self.behavior_whole and not other and "behavior_prob" in fields

    def calls(self, fields: frozenset[str]) -> bool:
        """Whether a function is called."""
        behaves = self.behavior is not None and "behavior_prob" in fields
        return behaves or (bool(self.policies) and bool({"target_prob", "probs"} & fields))

"""Which column of a log means what: names, aliases and the user's column map."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from steadytd.base.errors import InputError, unknown

TARGET = "target_prob_"
WHOLE, NEXT_WHOLE = "target_probs_", "next_target_probs_"  # one number per action
BEHAVIOR_WHOLE = "behavior_probs"
BEHAVIOR = ("behavior_prob", "pscore", "action_prob")
BEHAVIOR_LOG = ("behavior_logp", "action_logp")
PLAIN = ("episode_id", "t", "action", "reward", "terminated", "truncated", "discount")
MAPPABLE = (*PLAIN, "obs", "next_obs", *BEHAVIOR, *BEHAVIOR_LOG, BEHAVIOR_WHOLE)
BY_TARGET = (TARGET, WHOLE, NEXT_WHOLE)

ColumnMap = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class PolicyColumns:
    """The columns with a policy's probabilities: one of lists, or one per action, where whole."""

    logged: str | None = None  # of the logged action
    is_log: bool = False  # `logged` holds logarithms
    whole: tuple[str, ...] = ()  # of all actions
    next_whole: tuple[str, ...] = ()  # of all actions, in the state after the row

    def names(self) -> list[str]:
        """All of them."""
        return [*([] if self.logged is None else [self.logged]), *self.whole, *self.next_whole]


@dataclass(frozen=True)
class Columns:
    """The names, in the file, of the columns that a log is read from; None where there is none."""

    episode_id: str
    t: str
    obs: tuple[str, ...]
    reward: str
    terminated: str
    truncated: str | None = None
    action: str | None = None
    next_obs: tuple[str, ...] = ()
    discount: str | None = None
    behavior: PolicyColumns = PolicyColumns()
    targets: dict[str, PolicyColumns] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Every column that is read, once."""
        policies = [name for policy in self.policies() for name in policy.names()]
        action = [] if self.action is None else [self.action]
        return list(dict.fromkeys([*self.always_read(), *policies, *action]))

    def always_read(self) -> list[str]:
        """All columns but the action and those of policies, which are read where needed."""
        single = (*self.whole_numbers(), self.reward, *self.flags(), self.discount)
        return [name for name in (*single, *self.obs, *self.next_obs) if name is not None]

    def whole_numbers(self) -> tuple[str, str]:
        """The columns of whole numbers."""
        return self.episode_id, self.t

    def flags(self) -> list[str]:
        """The columns of true and false."""
        return [name for name in (self.terminated, self.truncated) if name is not None]

    def numbers(self) -> list[str]:
        """The columns with one number per row."""
        logged = (policy.logged for policy in self.policies())
        return [name for name in (self.reward, self.discount, *logged) if name is not None]

    def wide(self) -> list[tuple[str, ...]]:
        """The columns with several numbers per row, those that belong together in one tuple."""
        whole = [names for one in self.policies() for names in (one.whole, one.next_whole)]
        return [names for names in (self.obs, self.next_obs, *whole) if names]

    def may_be_null(self) -> list[tuple[str, ...]]:
        """Those of `wide` that need not be given in every row."""
        after = [policy.next_whole for policy in self.policies()]
        return [self.next_obs, self.behavior.whole, *after]

    def policies(self) -> list[PolicyColumns]:
        """Those of the targets, then those of the behaviour policy."""
        return [*self.targets.values(), self.behavior]


def several(name: str) -> bool:
    """Whether the schema's name may stand for several columns, one per number."""
    return name in ("obs", "next_obs", BEHAVIOR_WHOLE) or name.startswith((WHOLE, NEXT_WHOLE))


def resolve(
    file: str,
    present: Sequence[str],
    column_map: ColumnMap | None,
    targets: Sequence[str] | None,
    lists: Collection[str] = (),
) -> Columns:
    """Find the log's columns among those present in `file`; `targets=None` takes every target.

    `lists` are the columns that hold lists: a number at the end of their names is part of the name.
    """
    if column_map is not None and not isinstance(column_map, Mapping):
        raise InputError(
            f"columns must be a dictionary such as {{'reward': 'its_name'}}, got {column_map!r}."
        )
    finder = _Finder(file, present, dict(column_map or {}), set(lists))
    found = Columns(
        episode_id=finder.need("episode_id"),
        t=finder.need("t"),
        obs=finder.wide("obs") or (finder.need("obs"),),
        reward=finder.need("reward"),
        terminated=finder.need("terminated"),
        truncated=finder.maybe("truncated"),
        action=finder.maybe("action"),
        next_obs=finder.wide("next_obs"),
        discount=finder.maybe("discount"),
        behavior=finder.behavior(),
        targets=finder.targets(targets),
    )
    finder.refuse_misspelled(found)
    return found


class _Finder:
    """Looks up the schema's names in one file, through the column map."""

    def __init__(
        self, file: str, names: Sequence[str], column_map: dict[str, str | Sequence[str]],
        lists: Collection[str],
    ) -> None:  # fmt: skip
        self.file, self.map, self.lists = file, column_map, lists
        self.present = Counter(names)  # in the file's order
        for key, value in column_map.items():
            if key not in MAPPABLE and not str(key).startswith(BY_TARGET):
                by_target = [prefix + "<name>" for prefix in BY_TARGET]
                raise unknown("name in the column map", key, (*MAPPABLE, *by_target))
            many = (value,) if isinstance(value, str) or not isinstance(value, Sequence) else value
            if not all(isinstance(name, str) for name in many):
                raise InputError(
                    f"the column map must give names of columns for '{key}', got {value!r}."
                )
            if len(many) != 1 and not several(key):
                raise InputError(f"the column map gives {len(many)} columns for '{key}'; name one.")
            for name in many:
                if name and name not in self.present and f"{name}_0" not in self.present:
                    raise self.missing(name, f"the column map says {key}={name}, but ")
        twice = [name for name, times in self.present.items() if times > 1]
        if twice:
            raise InputError(f"{file}: two columns are named '{twice[0]}'; rename one of them.")

    def missing(self, name: str, why: str = "") -> InputError:
        hint = str(unknown("column", name, self.present)).removeprefix("unknown")
        return InputError(
            f"{self.file}: {why}there is no{hint} If it has another name, "
            f"say so in the column map: columns={{'{name}': 'its name'}}, or --map {name}=its_name."
        )

    def maybe(self, name: str) -> str | None:
        mapped = self.map.get(name, name)
        column = mapped if isinstance(mapped, str) else next(iter(mapped), "")
        return column if column in self.present else None

    def need(self, name: str) -> str:
        column = self.maybe(name)
        if column is None:
            raise self.missing(name)
        return column

    @cached_property
    def stems(self) -> set[str]:
        """The names of numbered columns without their numbers: many targets ask for theirs."""
        return {re.sub(r"_\d+$", "", name) for name in self.present}

    def wide(self, name: str) -> tuple[str, ...]:
        """One column of lists (or numbers), or the numbered columns name_0, name_1, ..., if any."""
        mapped = self.map.get(name, name)
        if not isinstance(mapped, str):
            return tuple(mapped)
        if mapped in self.present:
            return (mapped,)
        if not mapped or mapped not in self.stems:
            return ()
        pattern = re.compile(re.escape(mapped) + r"_(\d+)")
        numbered = {int(m[1]): m[0] for m in map(pattern.fullmatch, self.present) if m}
        lacking = [i for i in range(max(numbered) + 1) if i not in numbered]
        if lacking:
            raise InputError(
                f"{self.file}: column '{mapped}_{lacking[0]}' is missing, though there is "
                f"'{numbered[max(numbered)]}'; number the columns 0, 1, 2, ... without gaps."
            )
        return tuple(numbered[i] for i in range(len(numbered)))

    def refuse_misspelled(self, found: Columns) -> None:
        """A column that is nearly an optional one would silently not be used."""
        optional: dict[str, object] = {
            "truncated": found.truncated, "action": found.action, "discount": found.discount,
            "next_obs": found.next_obs, BEHAVIOR[0]: found.behavior.logged,
            BEHAVIOR_LOG[0]: found.behavior.logged, BEHAVIOR_WHOLE: found.behavior.whole,
        }  # fmt: skip
        names, known = list(optional), {*found.names(), *MAPPABLE}
        whole = {name: target for name, target in found.targets.items() if target.whole}
        nearly = {f"next_{TARGET}{name}": NEXT_WHOLE + name for name in whole}
        optional |= {NEXT_WHOLE + name: target.next_whole for name, target in whole.items()}
        for column in (one for one in self.present if one not in known):
            close = difflib.get_close_matches(column, names, n=1, cutoff=0.88)
            name = nearly.get(column) or next(iter(close), "")
            if name and not optional[name] and name not in self.map:
                raise InputError(
                    f"{self.file}: there is a column '{column}' but none named '{name}'; did you "
                    f"mean it? If so rename it or map it: columns={{'{name}': '{column}'}}, or "
                    f"--map {name}={column}; if not, map '{name}' to '' (nothing)."
                )

    def behavior(self) -> PolicyColumns:
        """The behaviour policy's columns; one from the column map goes before any alias."""
        whole = self.wide(BEHAVIOR_WHOLE)
        aliases = (*BEHAVIOR, *BEHAVIOR_LOG)
        for name in sorted(aliases, key=lambda alias: alias not in self.map):
            column = self.maybe(name)
            if column is not None:
                return PolicyColumns(column, name in BEHAVIOR_LOG, whole)
        return PolicyColumns(whole=whole)

    def targets(self, wanted: Sequence[str] | None) -> dict[str, PolicyColumns]:
        """The columns of each target: of the logged action, of all actions, or both."""
        known = self._known_targets()
        if wanted is None and not known:
            raise InputError(
                f"{self.file}: there is no target policy; add a column '{TARGET}<name>' with the "
                f"target's probability of the logged action, or '{WHOLE}<name>' with those of all "
                "actions, or give targets={'name': function}."
            )
        for name in wanted or ():
            if name not in known:
                hint = str(unknown("target", name, known)) if known else "the log has no targets."
                raise InputError(f"{self.file}: there is no column '{TARGET}{name}' ({hint[:-1]}).")
        chosen = known if wanted is None else wanted
        if any(not name.strip() for name in chosen):
            raise InputError(
                f"{self.file}: a target needs a name, got a column '{TARGET}' or '{WHOLE}' "
                f"without one; call it '{TARGET}new', for instance."
            )
        return {name: self._target(name) for name in chosen}

    def _target(self, name: str) -> PolicyColumns:
        logged, whole = self.maybe(TARGET + name), self.wide(WHOLE + name)
        next_whole = self.wide(NEXT_WHOLE + name)
        if logged is None and not whole:
            raise self.missing(TARGET + name)
        if next_whole and not whole:
            raise InputError(
                f"{self.file}: there is '{NEXT_WHOLE}{name}' but no '{WHOLE}{name}'; give the "
                "probabilities of all actions in both."
            )
        return PolicyColumns(logged, whole=whole, next_whole=next_whole)

    def _known_targets(self) -> list[str]:
        """The targets of all columns and of the column map, in their order."""
        found = {}
        for key in (*self.present, *self.map):
            if key.startswith(TARGET):
                found[key.removeprefix(TARGET)] = True
            elif key.startswith(WHOLE):
                name = key.removeprefix(WHOLE)
                numbered = key in self.present and key not in self.lists
                found[re.sub(r"_\d+$", "", name) if numbered else name] = True
        return list(found)

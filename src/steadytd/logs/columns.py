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
    behavior: str | None = None
    behavior_is_log: bool = False
    targets: dict[str, str | None] = field(default_factory=dict)  # None: only the whole one
    whole: dict[str, tuple[str, ...]] = field(default_factory=dict)  # all actions, by target
    next_whole: dict[str, tuple[str, ...]] = field(default_factory=dict)
    behavior_whole: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Every column that is read, once."""
        single = (self.episode_id, self.t, self.reward, self.terminated, self.truncated)
        further = (self.action, self.discount, self.behavior)
        wide = (*self.obs, *self.next_obs, *self.distributions())
        every = (*single, *further, *wide, *self.targets.values())
        return list(dict.fromkeys(name for name in every if name is not None))

    def distributions(self) -> list[str]:
        """The columns with probabilities of all actions."""
        every = (*self.whole.values(), *self.next_whole.values(), self.behavior_whole)
        return [name for names in every for name in names]


def several(name: str) -> bool:
    """Whether the schema's name may stand for several columns, one per number."""
    return name in ("obs", "next_obs", BEHAVIOR_WHOLE) or name.startswith((WHOLE, NEXT_WHOLE))


def resolve(
    file: str,
    present: Sequence[str],
    given: ColumnMap | None,
    targets: Sequence[str] | None,
    lists: Collection[str] = (),
) -> Columns:
    """Find the log's columns among those present in `file`; `targets=None` takes every target.

    `lists` are the columns that hold lists: they are not numbered ones of others.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(
            f"columns must be a dictionary such as {{'reward': 'its_name'}}, got {given!r}."
        )
    finder = _Finder(file, present, dict(given or {}), set(lists))
    behavior, is_log = finder.behavior()
    found = Columns(
        episode_id=finder.need("episode_id"),
        t=finder.need("t"),
        obs=finder.wide("obs", required=True),
        reward=finder.need("reward"),
        terminated=finder.need("terminated"),
        truncated=finder.maybe("truncated"),
        action=finder.maybe("action"),
        next_obs=finder.wide("next_obs", required=False),
        discount=finder.maybe("discount"),
        behavior=behavior,
        behavior_is_log=is_log,
        targets=(chosen := finder.targets(targets)),
        whole=finder.whole(WHOLE, chosen),
        next_whole=finder.whole(NEXT_WHOLE, chosen),
        behavior_whole=finder.wide(BEHAVIOR_WHOLE, required=False),
    )
    finder.misspelled(found)
    return found


class _Finder:
    def __init__(
        self, file: str, names: Sequence[str], given: dict[str, str | Sequence[str]],
        lists: Collection[str],
    ) -> None:  # fmt: skip
        self.file, self.given, self.lists = file, given, lists
        self.present = present = Counter(names)  # in the file's order
        for key, value in given.items():
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
                if name and name not in present and f"{name}_0" not in present:
                    raise self.missing(name, f"the column map says {key}={name}, but ")
        twice = [name for name, times in present.items() if times > 1]
        if twice:
            raise InputError(f"{file}: two columns are named '{twice[0]}'; rename one of them.")

    def missing(self, name: str, why: str = "") -> InputError:
        hint = str(unknown("column", name, self.present)).removeprefix("unknown")
        return InputError(
            f"{self.file}: {why}there is no{hint} If it has another name, "
            f"say so in the column map: columns={{'{name}': 'its name'}}, or --map {name}=its_name."
        )

    def maybe(self, name: str) -> str | None:
        mapped = self.given.get(name, name)
        column = mapped if isinstance(mapped, str) else mapped[0]
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

    def wide(self, name: str, *, required: bool) -> tuple[str, ...]:
        """One column of lists (or numbers), or the numbered columns name_0, name_1, ..."""
        mapped = self.given.get(name, name)
        if not isinstance(mapped, str):
            return tuple(mapped)
        if not mapped and not required:
            return ()
        if mapped in self.present:
            return (mapped,)
        if not required and mapped not in self.stems:
            return ()
        pattern = re.compile(re.escape(mapped) + r"_(\d+)")
        numbered = {int(m[1]): m[0] for m in map(pattern.fullmatch, self.present) if m}
        if not numbered:
            if required:
                raise self.missing(name)
            return ()
        lacking = [i for i in range(max(numbered) + 1) if i not in numbered]
        if lacking:
            raise InputError(
                f"{self.file}: column '{mapped}_{lacking[0]}' is missing, though there is "
                f"'{numbered[max(numbered)]}'; number the columns 0, 1, 2, ... without gaps."
            )
        return tuple(numbered[i] for i in range(len(numbered)))

    def misspelled(self, found: Columns) -> None:
        """A column that is nearly an optional one would silently not be used: refuse it."""
        optional: dict[str, object] = {
            "truncated": found.truncated, "action": found.action, "discount": found.discount,
            "next_obs": found.next_obs or None, BEHAVIOR[0]: found.behavior,
            BEHAVIOR_LOG[0]: found.behavior, BEHAVIOR_WHOLE: found.behavior_whole or None,
        }  # fmt: skip
        names, known = list(optional), {*found.names(), *MAPPABLE}
        nearly = {f"next_{TARGET}{name}": NEXT_WHOLE + name for name in found.whole}
        optional |= {NEXT_WHOLE + name: found.next_whole.get(name) for name in found.whole}
        for column in (one for one in self.present if one not in known):
            close = difflib.get_close_matches(column, names, n=1, cutoff=0.88)
            name = nearly.get(column) or next(iter(close), "")
            if name and optional[name] is None and name not in self.given:
                raise InputError(
                    f"{self.file}: there is a column '{column}' but none named '{name}'; did you "
                    f"mean it? If so rename it or map it: columns={{'{name}': '{column}'}}, or "
                    f"--map {name}={column}; if not, map '{name}' to '' (nothing)."
                )

    def behavior(self) -> tuple[str | None, bool]:
        """The behaviour policy's column; one from the column map goes before any alias."""
        aliases = (*BEHAVIOR, *BEHAVIOR_LOG)
        for name in sorted(aliases, key=lambda alias: alias not in self.given):
            column = self.maybe(name)
            if column is not None:
                return column, name in BEHAVIOR_LOG
        return None, False

    def targets(self, wanted: Sequence[str] | None) -> dict[str, str | None]:
        """The columns of the logged action's probability; None where all actions' are given."""
        known = self._known()
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
        found = {name: self.maybe(TARGET + name) for name in (known if wanted is None else wanted)}
        if any(not name.strip() for name in found):
            raise InputError(
                f"{self.file}: a target needs a name, got a column '{TARGET}' or '{WHOLE}' "
                f"without one; call it '{TARGET}new', for instance."
            )
        for name, column in found.items():
            if column is None and not self.wide(WHOLE + name, required=False):
                raise self.missing(TARGET + name)
        return found

    def _known(self) -> list[str]:
        """The targets of all columns and of the column map, in their order."""
        found = {}
        for key in (*self.present, *self.given):
            if key.startswith(TARGET):
                found[key.removeprefix(TARGET)] = True
            elif key.startswith(WHOLE):
                name = key.removeprefix(WHOLE)
                numbered = key in self.present and key not in self.lists
                found[re.sub(r"_\d+$", "", name) if numbered else name] = True
        return list(found)

    def whole(self, prefix: str, targets: Collection[str]) -> dict[str, tuple[str, ...]]:
        """The columns with the probabilities of all actions, of the targets that have them."""
        found = {name: self.wide(prefix + name, required=False) for name in targets}
        return {name: columns for name, columns in found.items() if columns}

"""Which column of a log means what: the table of the schema, and how its names are found in a file.

A name of the schema is found under itself, under the name that the column map gives it, or, where
it has several numbers, in the numbered columns `name_0`, `name_1`, ...
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from steadytd.base.errors import Faults, InputError, listed, unknown
from steadytd.logs.values import is_list

ColumnMap = Mapping[str, str | Sequence[str]]


Kind = Literal[
    "whole number", "flag", "number", "discount", "kept", "probability", "logged probability",
    "log-probability", "vector", "distribution", "action", "set", "unit", "time",
    "seen",  # of an observation, of any type
]  # fmt: skip


@dataclass(frozen=True)
class Meaning:
    """What a column of the schema holds."""

    kind: Kind
    required: bool = False
    nullable: bool = False  # no row needs a value


TARGET, WHOLE, NEXT_WHOLE = "target_prob_", "target_probs_", "next_target_probs_"
BEHAVIOR, BEHAVIOR_LOG = (
    (
        "behavior_prob", "pscore", "action_prob", "propensity_score", "propensity", "logging_prob",
        "action_probability",
    ),
    ("behavior_logp", "action_logp"),
)  # fmt: skip
BEHAVIOR_WHOLE = "behavior_probs"
SCHEMA = {
    "episode_id": Meaning("whole number", required=True),
    "t": Meaning("whole number", required=True),
    "obs": Meaning("vector", required=True),
    "reward": Meaning("number", required=True),
    "terminated": Meaning("flag", required=True),
    "truncated": Meaning("flag"),
    "action": Meaning("action"),
    "next_obs": Meaning("vector", nullable=True),
    "discount": Meaning("discount"),
    "timestamp": Meaning("time"),
    "allowed_actions": Meaning("set"),
    "keep_prob": Meaning("kept"),
    BEHAVIOR_WHOLE: Meaning("distribution", nullable=True),
    **dict.fromkeys(BEHAVIOR, Meaning("logged probability")),
    **dict.fromkeys(BEHAVIOR_LOG, Meaning("log-probability")),
}
ALIASES: dict[str, tuple[str, ...]] = {  # beside those of the behaviour policy
    "episode_id": ("episode", "session_id", "session", "trajectory_id", "trajectory"),
    "t": ("step", "timestep", "time_step"),
    "timestamp": ("ts", "time", "datetime", "event_time", "created_at"),
    "obs": ("observation", "observations", "context", "state"),
    "reward": ("rewards", "r"),
    "terminated": ("terminal", "terminals", "done"),
    "truncated": ("timeout", "timeouts"),
    "action": ("arm", "treatment"),
    "allowed_actions": ("candidates", "candidate_actions", "available_actions", "action_set"),
    "keep_prob": ("keep_probability", "sampling_prob", "inclusion_prob"),
}
BY_TARGET = {  # the name begins with this, and ends with that of a target
    TARGET: Meaning("probability"),
    WHOLE: Meaning("distribution"),
    NEXT_WHOLE: Meaning("distribution", nullable=True),
}
SEVERAL = ("vector", "distribution")  # kinds that may stand in several columns, one per number


@dataclass(frozen=True)
class Column:
    """A column of the schema as a log has it; as text, its name in the file."""

    name: str  # in the schema
    parts: tuple[str, ...]  # in the file: one, or one for each of several numbers
    meaning: Meaning

    def __str__(self) -> str:
        return self.parts[0]


Columns = dict[str, Column]  # by their names in the schema


def file_names(columns: Columns) -> list[str]:
    """The names, in the file, of all columns."""
    return list(dict.fromkeys(part for column in columns.values() for part in column.parts))


def meaning_of(name: str) -> Meaning | None:
    """What a name of the schema means, if it is one."""
    prefix = next((prefix for prefix in BY_TARGET if name.startswith(prefix)), "")
    return SCHEMA.get(name) or BY_TARGET.get(prefix)


def several(name: str) -> bool:
    """Whether the schema's name may stand for several columns, one per number."""
    meaning = meaning_of(name)
    return meaning is not None and meaning.kind in SEVERAL


def checked_map(file: str, present: Sequence[str], given: object, faults: Faults) -> ColumnMap:
    """The column map; entries that cannot be used are faults, and name nothing."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(
            f"columns must be a dictionary such as {{'reward': 'its_name'}}, got {given!r}."
        )
    fine: dict[str, Any] = {}
    for key, value in given.items():
        fine[str(key)] = ""
        with faults.caught():
            _check_entry(file, present, str(key), value)
            fine[str(key)] = value
    return fine


def _check_entry(file: str, present: Sequence[str], key: str, value: Any) -> None:
    if meaning_of(key) is None:
        by_target = [prefix + "<name>" for prefix in BY_TARGET]
        raise unknown("name in the column map", key, (*SCHEMA, *by_target))
    many = (value,) if isinstance(value, str) or not isinstance(value, Sequence) else value
    if not all(isinstance(name, str) for name in many):
        raise InputError(f"the column map must give names of columns for '{key}', got {value!r}.")
    if len(many) != 1 and not several(key):
        raise InputError(f"the column map gives {len(many)} columns for '{key}'; name one.")
    for name in many:
        if name and name not in present and f"{name}_0" not in present:
            hint = str(unknown("column", name, present)).removeprefix("unknown")
            raise InputError(f"{file}: the column map says {key}={name}, but there is no{hint}")


def find_columns(finder: Finder, targets: Sequence[str] | None, faults: Faults) -> Columns:
    """The columns of the schema that there are in a file; `targets=None` takes every target."""
    found: list[Column | None] = []
    for name in SCHEMA:
        if name not in (*BEHAVIOR, *BEHAVIOR_LOG):
            with faults.caught():
                found.append(finder.find(name))
    found.append(finder.behavior())
    if targets is None and not finder.targets:
        faults.add(
            f"there is no target policy; add a column '{TARGET}<name>' with the target's "
            f"probability of the logged action, or '{WHOLE}<name>' with those of all actions, or "
            "give targets={'name': function}"
        )
    for name in finder.targets if targets is None else targets:
        with faults.caught():
            found += finder.target(name)
    return {column.name: column for column in found if column is not None}


class Finder:
    """Looks up the schema's names in one file, through the column map."""

    def __init__(self, file: str, schema: Any, column_map: ColumnMap) -> None:
        self.file, self.schema, self.map = file, schema, column_map
        self.present = Counter(schema.names)  # in the file's order
        twice = [f"'{name}'" for name, times in self.present.items() if times > 1]
        if twice:
            raise InputError(f"{file}: several columns are named {listed(twice)}; rename them.")

    def find(self, name: str) -> Column | None:
        """The column, or None where there is none."""
        meaning = meaning_of(name)
        assert meaning is not None
        mapped = self.map.get(name, name)
        if not isinstance(mapped, str):
            parts = tuple(name for name in mapped if name)
        else:
            others = ALIASES.get(name, ()) if name not in self.map else ()
            found = (self._parts(one, meaning) for one in (mapped, *others))
            parts = next(filter(None, found), ())
        return Column(name, parts, meaning) if parts else None

    def _parts(self, name: str, meaning: Meaning) -> tuple[str, ...]:
        if name in self.present:
            return (name,)
        return self._numbered(name) if meaning.kind in SEVERAL else ()

    @cached_property
    def stems(self) -> set[str]:
        """The names of numbered columns without their numbers, found once for many targets."""
        return {re.sub(r"_\d+$", "", name) for name in self.present}

    def _numbered(self, stem: str) -> tuple[str, ...]:
        """The columns stem_0, stem_1, ..., if there are any."""
        if not stem or stem not in self.stems:
            return ()
        pattern = re.compile(re.escape(stem) + r"_(\d+)")
        numbered = {int(m[1]): m[0] for m in map(pattern.fullmatch, self.present) if m}
        lacking = [i for i in range(max(numbered) + 1) if i not in numbered]
        if lacking:
            raise InputError(
                f"{self.file}: column '{stem}_{lacking[0]}' is missing, though there is "
                f"'{numbered[max(numbered)]}'; number the columns 0, 1, 2, ... without gaps."
            )
        return tuple(numbered[i] for i in range(len(numbered)))

    def behavior(self) -> Column | None:
        """The behaviour policy's column; one from the column map goes before any alias."""
        aliases = sorted((*BEHAVIOR, *BEHAVIOR_LOG), key=lambda alias: alias not in self.map)
        found = (self.find(name) for name in aliases)
        column = next((column for column in found if column is not None), None)
        if column is None:
            return None
        first = BEHAVIOR_LOG[0] if column.name in BEHAVIOR_LOG else BEHAVIOR[0]
        return Column(first, column.parts, column.meaning)

    def target(self, name: str) -> list[Column | None]:
        """The columns of a target: of the logged action, of all actions, and of the next ones."""
        if name not in self.targets:
            known = self.targets
            hint = str(unknown("target", name, known)) if known else "the log has no targets."
            raise InputError(f"{self.file}: there is no column '{TARGET}{name}' ({hint[:-1]}).")
        if not name.strip():
            raise InputError(
                f"{self.file}: a target needs a name, got a column '{TARGET}' or '{WHOLE}' "
                f"without one; call it '{TARGET}new', for instance."
            )
        logged, whole, after = (self.find(prefix + name) for prefix in BY_TARGET)
        if after is not None and whole is None:
            raise InputError(
                f"{self.file}: there is '{NEXT_WHOLE}{name}' but no '{WHOLE}{name}'; give the "
                "probabilities of all actions in both."
            )
        return [logged, whole, after]

    @cached_property
    def targets(self) -> list[str]:
        """The targets of all columns and of the column map, in their order.

        A number at the end of a column of lists is part of the target's name.
        """
        found = {}
        for key in (*self.present, *self.map):
            if key.startswith(TARGET):
                found[key.removeprefix(TARGET)] = True
            elif key.startswith(WHOLE):
                name = key.removeprefix(WHOLE)
                numbered = key in self.present and not is_list(self.schema.field(key).type)
                found[re.sub(r"_\d+$", "", name) if numbered else name] = True
        return list(found)

    def refuse_misspelled(self, columns: Columns, lacking: Sequence[str], faults: Faults) -> None:
        """A column that is nearly an optional one would silently not be used.

        That those of `lacking` are missing is said elsewhere.
        """
        logged = {BEHAVIOR[0], BEHAVIOR_LOG[0]}
        optional = {*(name for name, m in SCHEMA.items() if not m.required)} - {"timestamp"}
        optional -= {*BEHAVIOR[1:], *BEHAVIOR_LOG[1:]}
        given = {*columns, *self.map, *lacking, *(logged if logged & columns.keys() else ())}
        nearly = {
            f"next_{TARGET}{name.removeprefix(WHOLE)}": f"next_{name}"
            for name in columns
            if name.startswith(WHOLE)
        }
        known = {*file_names(columns), *SCHEMA}
        for column in (one for one in self.present if one not in known):
            close = difflib.get_close_matches(column, sorted(optional), n=1, cutoff=0.88)
            name = nearly.get(column) or next(iter(close), "")
            if name and name not in given:
                faults.add(
                    f"column '{column}' looks like '{name}', which is missing. If it is, rename it "
                    f"or map it: columns={{'{name}': '{column}'}}, or --map {name}={column}. If "
                    f"not, map '{name}' to '' (nothing)."
                )

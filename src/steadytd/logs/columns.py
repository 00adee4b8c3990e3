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

from steadytd.base.errors import InputError, unknown
from steadytd.logs.values import is_list

ColumnMap = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Meaning:
    """What a column of the schema holds."""

    kind: Literal["whole number", "flag", "number", "vector", "action", "unit", "time"]
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
    "discount": Meaning("number"),
    "timestamp": Meaning("time"),
    "allowed_actions": Meaning("vector"),
    "keep_prob": Meaning("number"),
    BEHAVIOR_WHOLE: Meaning("vector", nullable=True),
    **dict.fromkeys((*BEHAVIOR, *BEHAVIOR_LOG), Meaning("number")),
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
    TARGET: Meaning("number"),
    WHOLE: Meaning("vector"),
    NEXT_WHOLE: Meaning("vector", nullable=True),
}


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
    return meaning is not None and meaning.kind == "vector"


def find_columns(
    file: str, schema: Any, column_map: ColumnMap | None, targets: Sequence[str] | None
) -> Columns:
    """The log's columns in the Arrow schema of a file; `targets=None` takes every target."""
    finder = Finder(file, schema, dict(column_map or {}))
    elsewhere = (*BEHAVIOR, *BEHAVIOR_LOG, "timestamp")  # of a timestamp the column t is made
    plain = [finder.find(name) for name in SCHEMA if name not in elsewhere]
    there = {column.name for column in plain if column is not None}
    for name, meaning in SCHEMA.items():
        if meaning.required and name not in there:
            raise finder.missing(name)
    found = [*plain, finder.behavior(), *finder.targets(targets)]
    columns = {column.name: column for column in found if column is not None}
    finder.refuse_misspelled(columns)
    return columns


class Finder:
    """Looks up the schema's names in one file, through the column map."""

    def __init__(self, file: str, schema: Any, column_map: dict[str, str | Sequence[str]]) -> None:
        self.file, self.schema, self.map = file, schema, column_map
        self.present = Counter(schema.names)  # in the file's order
        for key, value in column_map.items():
            if meaning_of(str(key)) is None:
                by_target = [prefix + "<name>" for prefix in BY_TARGET]
                raise unknown("name in the column map", key, (*SCHEMA, *by_target))
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
        """The error for a column that is not there."""
        hint = str(unknown("column", name, self.present)).removeprefix("unknown")
        return InputError(
            f"{self.file}: {why}there is no{hint} If it has another name, "
            f"say so in the column map: columns={{'{name}': 'its name'}}, or --map {name}=its_name."
        )

    def find(self, name: str) -> Column | None:
        """The column, or None where an optional one is missing."""
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
        return self._numbered(name) if meaning.kind == "vector" else ()

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

    def targets(self, wanted: Sequence[str] | None) -> list[Column | None]:
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
        found: list[Column | None] = []
        for name in chosen:
            logged, whole, after = (self.find(prefix + name) for prefix in BY_TARGET)
            if logged is None and whole is None:
                raise self.missing(TARGET + name)
            if after is not None and whole is None:
                raise InputError(
                    f"{self.file}: there is '{NEXT_WHOLE}{name}' but no '{WHOLE}{name}'; give the "
                    "probabilities of all actions in both."
                )
            found += [logged, whole, after]
        return found

    def _known_targets(self) -> list[str]:
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

    def refuse_misspelled(self, columns: Columns) -> None:
        """A column that is nearly an optional one would silently not be used."""
        logged = {BEHAVIOR[0], BEHAVIOR_LOG[0]}
        optional = {*(name for name, m in SCHEMA.items() if not m.required)} - {"timestamp"}
        optional -= {*BEHAVIOR[1:], *BEHAVIOR_LOG[1:]}
        given = {*columns, *self.map, *(logged if logged & columns.keys() else ())}
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
                raise InputError(
                    f"{self.file}: column '{column}' looks like '{name}', which is missing. If it "
                    f"is, rename it or map it: columns={{'{name}': '{column}'}}, or --map "
                    f"{name}={column}. If not, map '{name}' to '' (nothing)."
                )

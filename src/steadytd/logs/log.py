"""Logs of transitions: opened once, checked while read, in batches of bounded size."""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError, unknown, visible
from steadytd.base.numbers import count, whole
from steadytd.base.random import OBSERVATIONS, Reservoir
from steadytd.logs import values
from steadytd.logs.batch import LogBatch, decode
from steadytd.logs.check import EXTRA, Wanted, check_type
from steadytd.logs.columns import SCHEMA, ColumnMap
from steadytd.logs.order import Cursor, cuts
from steadytd.logs.policies import Policy
from steadytd.logs.schema import LogSchema, understand
from steadytd.logs.sources import open_source
from steadytd.logs.sources.source import Chunk, LogSource
from steadytd.logs.units import distinct, named_column

OPTIONAL = frozenset({"action", "behavior_prob", "target_prob", "probs"})
AHEAD = 2  # batches that are made before they are needed
SPREAD = 32  # row groups from which a sample is drawn
FULL = 262_144  # a log of at most this many rows is read whole for a sample
SAMPLE_BATCH = 65_536

T = TypeVar("T")

__all__ = ["Log", "LogBatch", "open_log"]


@dataclass(repr=False)
class Log:
    """A log, or a part of one: what it holds, and how to go through it. Nothing is kept open.

    `left_out` is the number of rows of the last complete pass that could not be learned from
    (no next observation is known and the episode has not terminated), None before the first one.
    With `hashing`, `contents` is a hash of all that the last complete pass has read.
    """

    source: LogSource
    schema: LogSchema
    batch_rows: int
    notes: tuple[str, ...] = ()
    begin: int = 0
    end: int | None = None
    start: Cursor = field(default_factory=Cursor)
    left_out: int | None = None
    behavior_estimated: bool = False
    hashing: bool = False
    contents: str | None = None
    unit_values: Any = None  # an Arrow array: the distinct values of the column of units
    levels: Mapping[str, Any] = field(default_factory=dict)  # the same of further columns
    learned_folds: int = 0  # its target is made of policies learned on so many folds of units

    def __repr__(self) -> str:
        rows = "rows not counted" if self.rows is None else f"{self.rows:,} rows"
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        targets = ", ".join(self.targets) or "none"
        size = f"{rows}, observations of {count(self.n_obs, 'number')}"
        return visible(f"<log {self.files[0]}{more}: {size}, targets: {targets}>")

    @property
    def targets(self) -> list[str]:
        """Names of the target policies, in the order of `LogBatch.target_prob`."""
        return [policy.target for policy in self.schema.targets if policy.target is not None]

    @property
    def meaning(self) -> Any:
        """The former name of `schema`."""
        warnings.warn("Log.meaning is now called Log.schema", DeprecationWarning, stacklevel=2)
        return self.schema

    @property
    def n_obs(self) -> int:
        """How many numbers an observation has."""
        return self.schema.width

    @property
    def rows(self) -> int | None:
        """Number of rows, None where it is not known before reading (CSV)."""
        total = self.source.rows if self.end is None else self.end
        return None if total is None else total - self.begin

    @property
    def unit(self) -> str | None:
        """The column that says which unit a row belongs to; None: every episode is a unit."""
        column = self.schema.columns.get("unit")
        return None if column is None else str(column)

    @property
    def files(self) -> list[str]:
        """The files' names."""
        return list(self.source.files)

    @property
    def has_behavior(self) -> bool:
        """Whether the behaviour policy's probabilities are known."""
        return self.schema.behavior.known

    @property
    def whole(self) -> list[str]:
        """The targets whose probabilities of all actions are known, as in `LogBatch.probs`."""
        return [policy.target for policy in self.schema.whole if policy.target is not None]

    @property
    def n_actions(self) -> int:
        """How many actions there are; 0 if no policy is known as a whole."""
        return self.schema.n_actions

    def batches(self, columns: Collection[str] | None = None) -> Generator[LogBatch, None, None]:
        """Go through the log in order.

        `columns` names the optional fields to fill among `action`, `behavior_prob`, `target_prob`
        and `probs` (default: all); columns of the others are not read.
        """
        yield from ahead(self._decoded(self._fields(columns)))

    def _chunks(self, fields: frozenset[str]) -> Iterator[Chunk]:
        names = self.schema.names(fields)
        return self.source.read(names, self.begin, self.end, self.batch_rows)

    def _hashed(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """The same chunks; `contents` is their hash once all have gone by."""
        self.contents = None
        found = hashlib.sha256()
        for chunk in chunks:
            add_contents(found, chunk.batch)
            yield chunk
        self.contents = found.hexdigest()

    def _decoded(self, fields: frozenset[str]) -> Generator[LogBatch, None, None]:
        chunks = self._chunks(fields)
        cursor, rows, left_out = self.start, 0, 0
        for chunk, following in pairwise(
            chain(self._hashed(chunks) if self.hashing else chunks, [None])
        ):
            assert chunk is not None
            batch, cursor, skipped = decode(
                chunk, following, self.schema, fields, cursor, self.unit_values, self.levels
            )
            rows += chunk.batch.num_rows
            left_out += skipped
            if len(batch):
                yield batch
        self.left_out = left_out
        if self.begin == 0 and self.end is None and left_out == rows:
            raise InputError(
                f"{self.files[0]}: no row can be learned from: no episode has two rows, a "
                "next_obs or a termination; log whole episodes, or add the column next_obs."
            )

    def _fields(self, columns: Collection[str] | None) -> frozenset[str]:
        for name in columns or ():
            if name not in LogBatch.__dataclass_fields__:
                raise unknown("field of a batch", name, LogBatch.__dataclass_fields__)
        fields = OPTIONAL if columns is None else OPTIONAL.intersection(columns)
        if columns is not None and "action" in fields:
            self.schema.require_actions(self.files[0], "actions are asked for")
        return fields if self.schema.numeric_actions else fields - {"action"}

    def sample(self, n: int, seed: int = 0) -> NDArray[Any]:
        """At most `n` observations in the log's order, without replacement.

        A small log, or one of few row groups, is read whole and every row has the same chance. Of a
        large one the beginnings of up to 32 row groups are read, evenly spread over the log.
        """
        if n < 1:
            raise InputError(f"a sample needs at least one row, got {n}.")
        found, column = Reservoir(n, seed, OBSERVATIONS), self.schema.columns["obs"]
        for begin, end in self._sampled_rows(n):
            for chunk in self.source.read(column.parts, begin, end, SAMPLE_BATCH):
                obs = values.matrix(chunk, column.parts, self.n_obs)
                values.require_finite(chunk, column, obs)
                found.add(obs)
        return found.rows()[0]

    def _sampled_rows(self, n: int) -> list[tuple[int, int | None]]:
        """The stretches of rows from which a sample is drawn."""
        rows = self.rows
        if rows is None or rows <= max(FULL, 2 * n):
            return [(self.begin, self.end)]
        edges = np.cumsum([0, *self.source.units()]).clip(self.begin, self.begin + rows)
        inside = [(int(low), int(high)) for low, high in pairwise(edges) if low < high]
        if len(inside) < SPREAD // 4:
            return [(self.begin, self.end)]
        places = np.unique(np.linspace(0, len(inside) - 1, SPREAD).round().astype(int))
        share = -(-4 * n // len(places))
        chosen = [inside[place] for place in places]
        return [(low, min(high, low + share)) for low, high in chosen]

    def parts(self, k: int) -> list[Log]:
        """At most `k` logs that together are this one, each beginning and ending with an episode.

        Reads the columns `episode_id` and `t` once. An episode that crosses the border of two row
        groups belongs to the part in which it begins.
        """
        edges = cuts(self.source, self.schema.columns, self.begin, self.end, self.start, k)
        ends: list[int | None] = [begin for begin, _ in edges[1:]]
        return [
            replace(self, begin=begin, end=end, start=cursor, left_out=None, contents=None)
            for (begin, cursor), end in zip(edges, [*ends, self.end], strict=True)
        ]

    def where(self, row: int) -> str:
        """File and row in the file of a row of the log, for messages."""
        for chunk in self.source.read(self.schema.columns["episode_id"].parts, row, row + 1, 1):
            return f"{chunk.file}, row {chunk.row}"
        raise InputError(f"the log has no row {row}.")

    def with_rewards(self, rewards: Iterable[Mapping[str, float]]) -> Log:
        """The log whose batches have the columns of these rewards, as numbers in `extra`."""
        import pyarrow as pa

        meaning, found = SCHEMA["reward"], {}
        for name in dict.fromkeys(name for weights in rewards for name in weights):
            found[name] = named_column(self.source, name, "rewards", meaning)
            for file, schema in zip(self.source.files, self.source.schemas, strict=True):
                check_type(file, schema, found[name])
        more = {EXTRA + name: column for name, column in found.items()}
        schema = replace(self.schema, columns={**self.schema.columns, **more})
        source = self.source.with_types(dict.fromkeys(found, pa.float64()))
        return replace(self, source=source, schema=schema, left_out=None)

    def reads(self) -> dict[str, object]:
        """All that decides the batches but for the contents, functions included."""
        units = None if self.unit_values is None else self.unit_values.to_pylist()
        levels = {name: values.to_pylist() for name, values in self.levels.items()}
        fields = ("schema", "begin", "end", "start", "batch_rows")
        own = {name: getattr(self, name) for name in fields}
        return {"units": units, "levels": levels, **own}

    def read_contents(self, columns: Collection[str] | None = None) -> str:
        """A hash of what `batches(columns)` reads, without making batches of it."""
        for _ in self._hashed(self._chunks(self._fields(columns))):
            pass
        assert self.contents is not None
        return self.contents


def open_log(
    source: Any,
    *,
    discount: float | None = None,
    targets: Sequence[str] | Mapping[str, Policy] | None = None,
    columns: ColumnMap | None = None,
    behavior: Policy | None = None,
    unit: str | None = None,
    extra: Mapping[str, Literal["number", "level"]] | None = None,
    obs: Sequence[str] | None = None,
    rewards: Mapping[str, Any] | None = None,
    needs: Sequence[str] = (),
    batch_rows: int = 65_536,
) -> Log:
    """Open a log: a path, glob, directory or list of paths, a data frame or a Minari data set.

    Or a function without arguments that opens a reader of Arrow batches, or a pyarrow dataset.
    `obs` names columns of any kind that are the observation. `rewards` are those of `evaluate`; the
    log has the first of them. `discount` may be left out where the log has a column of that name.
    `targets` are names of `target_prob_<name>` or `target_probs_<name>` columns (default: all), or
    a dictionary of names of columns, fitted models (with `predict_proba` and `classes_`) and
    functions: `obs -> probabilities [n, actions]`, or `(obs, action [n]) -> probability [n]`, where
    `obs` are numbers [n, k], or the columns named by `obs`; `behavior` is such a function for the
    policy that made the log, in place of a column. `columns` maps the names of the schema to the
    log's own; `needs` are optional ones, or columns of the log, that must be there, too. Faults
    that the first rows show are said all at once. What was assumed is in `Log.notes`. `unit` is a
    column that says which episodes belong together (one user's, one patient's), in whatever order;
    its values are read once. `extra` are further columns to carry in the batches: numbers, or
    levels (texts, categories), which are numbered.
    """
    rows = whole("batch_rows", batch_rows, 1)
    wanted = Wanted(discount, targets, columns, behavior, unit, extra or {}, obs, rewards, needs)
    opened, schema = understand(open_source(source), wanted)
    own, notes = schema.columns.get("discount"), list(schema.notes)
    if discount is not None and own is not None:
        notes.append(f"the log's column '{own}' is used; the discount {discount:g} is not.")
    values = None if unit is None else distinct(opened, schema.columns["unit"])
    levels = {
        name: distinct(opened, column)
        for name, column in schema.extra.items()
        if column.meaning.kind == "unit"
    }
    return Log(opened, schema, rows, tuple(notes), unit_values=values, levels=levels)


def ahead(items: Iterator[T], depth: int = AHEAD) -> Generator[T, None, None]:
    """The same items in the same order, made in another thread, at most `depth` in advance.

    An exception appears where the item would have. The thread ends when the iterator is closed or
    no longer used.
    """
    reader = ThreadPoolExecutor(1, thread_name_prefix="steadytd-log")
    thread = reader.submit(threading.current_thread).result()
    waiting: deque[Future[Any]] = deque()
    end = object()
    try:
        while True:
            while len(waiting) < depth:
                waiting.append(reader.submit(lambda: next(items, end)))
            item = waiting.popleft().result()
            if item is end:
                return
            yield item
    finally:
        for future in waiting:
            future.cancel()
        if isinstance(items, Generator):
            reader.submit(items.close)  # a thread that it reads from in turn ends with it
        # garbage may be collected in the reading thread itself, which cannot wait for itself
        reader.shutdown(wait=threading.current_thread() is not thread)


def add_contents(digest: Any, batch: Any) -> None:
    """Add an Arrow batch to a hash: names, types, and the bytes of all values.

    What a log holds is known by it, whatever its files are called. The slots of missing values,
    whose bytes mean nothing, are left out; where they are counts.
    """
    import pyarrow as pa

    digest.update(str(batch.schema.remove_metadata()).encode())
    full = [i for i, column in enumerate(batch.columns) if not column.null_count]
    parts = [batch.select(full)]
    for column in batch.columns:
        if column.null_count:
            for part in (column.is_valid(), column.drop_null()):
                parts.append(pa.record_batch([part], names=["part"]))
    for part in parts:
        if "dictionary<" not in str(part.schema):
            digest.update(part.serialize())
        else:  # a stream holds the words that stand behind the numbers
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, part.schema) as writer:
                writer.write_batch(part)
            digest.update(sink.getvalue())

"""Logs from Minari data sets: episodes with one observation more than there are actions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytd.base.errors import InputError
from steadytd.logs.sources.source import Chunk, LogSource


def minari_source(data: Any) -> MinariSource:
    """A local data set: its id, its directory, or the opened `MinariDataset`."""
    if not isinstance(data, str | Path):
        return MinariSource.of(data)
    try:
        minari = importlib.import_module("minari")
    except ImportError as error:
        raise InputError(
            "Minari data sets need the package minari: pip install 'steadytd[minari]'."
        ) from error
    try:
        if Path(data).is_dir():
            inner = Path(data) / "data"
            return MinariSource.of(minari.MinariDataset(inner if inner.is_dir() else Path(data)))
        return MinariSource.of(minari.load_dataset(str(data)))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the Minari data set '{data}' cannot be opened ({error}); `minari list local` shows "
            "those on this machine, `minari download` fetches others."
        ) from error


@dataclass(frozen=True)
class MinariSource(LogSource):
    """A data set, read episode by episode.

    The columns are `episode_id`, `t`, `obs`, `next_obs`, `action`, `reward`, `terminated`,
    `truncated`, and one for each entry of the infos that has a number, or a list of numbers, for
    every step. Where an entry is one longer than there are actions, its first is from the reset and
    is left out.
    """

    data: Any
    files: tuple[str, ...]
    lengths: tuple[int, ...]
    schemas: tuple[Any, ...]

    @classmethod
    def of(cls, data: Any) -> MinariSource:
        """Look at the episodes' lengths, and at the first episode for the columns."""
        indices = [int(i) for i in data.episode_indices]
        if not indices:
            raise InputError(f"the Minari data set '{data.id}' holds no episodes.")
        metadata = data.storage.get_episode_metadata(indices)
        lengths = tuple(int(entry["total_steps"]) for entry in metadata)
        label = f"minari:{data.id}"
        first = _table(next(iter(data.iterate_episodes(indices[:1]))), 0, label)
        return cls(data, (label,), lengths, (first.schema,))

    def units(self) -> list[int]:
        """The episodes."""
        return list(self.lengths)

    def scan(
        self, names: Sequence[str], begin: int, end: int | None, batch_rows: int
    ) -> Iterator[Chunk]:
        """Whole episodes, several together up to the size of a batch."""
        import pyarrow as pa

        label = self.files[0]
        starts = np.cumsum([0, *self.lengths])
        last = starts[-1] if end is None else end
        chosen = np.flatnonzero((starts[:-1] < last) & (starts[1:] > begin)).tolist()
        if not chosen:
            return
        indices = [int(self.data.episode_indices[i]) for i in chosen]
        waiting, row = [], int(starts[chosen[0]])
        for i, episode in zip(chosen, self.data.iterate_episodes(indices), strict=True):
            table = _table(episode, i, label)
            lacking = [name for name in names if name not in table.column_names]
            if lacking:
                raise InputError(
                    f"{label}: episode {i} has no '{lacking[0]}' in its infos, the first has."
                )
            waiting.append(table.select(list(names)))
            if sum(part.num_rows for part in waiting) >= batch_rows or i == chosen[-1]:
                try:
                    joined = pa.concat_tables(waiting, promote_options="permissive")
                except Exception as error:
                    raise InputError(f"{label}: episodes differ in their types: {error}") from error
                for batch in joined.combine_chunks().to_batches():
                    yield Chunk(label, row, batch, row)
                    row += batch.num_rows
                waiting = []


def _table(episode: Any, number: int, label: str) -> Any:
    """One episode in the schema of a log."""
    import pyarrow as pa

    n = len(episode.rewards)
    observations = _plain(episode.observations, "observations", label)
    if len(observations) != n + 1:
        raise InputError(
            f"{label}: episode {number} has {len(observations)} observations for {n} steps, not "
            f"{n + 1}."
        )
    columns = {
        "episode_id": np.full(n, number),
        "t": np.arange(n),
        "obs": _column(observations[:-1], flat=True),
        "next_obs": _column(observations[1:], flat=True),
        "action": _column(_plain(episode.actions, "actions", label), flat=False),
        "reward": np.asarray(episode.rewards, dtype=np.float64),
        "terminated": np.asarray(episode.terminations, dtype=np.bool_),
        "truncated": np.asarray(episode.truncations, dtype=np.bool_),
    }
    for key, entry in (episode.infos or {}).items():
        array = np.asarray(entry) if not isinstance(entry, dict) else np.empty(0)
        array = array.reshape(len(array), -1)
        if len(array) in (n, n + 1) and array.shape[-1] and array.dtype.kind in "fiub":
            columns.setdefault(key, _column(array[len(array) - n :], flat=False))
    return pa.table(columns)


def _plain(values: Any, what: str, label: str) -> NDArray[Any]:
    array = np.empty(0) if isinstance(values, dict | tuple) else np.asarray(values)
    if array.ndim == 0 or array.dtype.kind not in "fiub" or isinstance(values, dict | tuple):
        raise InputError(
            f"{label}: {what} must be arrays of numbers, got {type(values).__name__}; "
            "flatten the space before recording, or export the data set to Parquet."
        )
    return array


def _column(values: NDArray[Any], *, flat: bool) -> Any:
    """Numbers as they are, rows of numbers as fixed-size lists; `flat` keeps lists of one."""
    import pyarrow as pa

    wide = values.reshape(len(values), -1)
    if values.ndim == 1 or (wide.shape[1] == 1 and not flat):
        return wide[:, 0]
    return pa.FixedSizeListArray.from_arrays(pa.array(wide.reshape(-1)), wide.shape[1])

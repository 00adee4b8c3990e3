"""The results of a study on disk: a directory with one Parquet file per block.

    study.toml           the study as it was run, to the letter
    provenance.json      versions and the scheme of the seeds
    grid/*.parquet       the blocks of the grid
    confirm/*.parquet    the best configurations, rerun on fresh seeds

A file has one row per run: `problem`, `run` (the learner as text), `seed`, `diverged` (the step,
or null), and for every measure m `auc_m` (the mean over the run, see `Task.mean`), `final_m` and
`curve_m` (32-bit numbers; infinite once diverged). It appears whole or not at all, carries its
block's fingerprint and checksums of its pages, and holds no time stamp: the same block is the same
file, byte for byte. Files with other names are never read.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadytd.base.errors import InputError
from steadytd.base.files import write_whole
from steadytd.studies.blocks import FRESH, Numbers, StudyBlock, code

if TYPE_CHECKING:
    import pyarrow as pa

STAGES = ("grid", "confirm")
TEMPORARY = ".*-*.parquet"  # what a killed run leaves behind
KEY = b"steadytd.block"


def table(block: StudyBlock, numbers: Numbers, measures: tuple[str, ...]) -> pa.Table:
    """A block's rows."""
    import numpy as np
    import pyarrow as pa

    runs, seeds, _, points = numbers.errors.shape
    rows = runs * seeds
    gone = numbers.diverged.reshape(rows)
    columns: dict[str, Any] = {
        "problem": pa.array([block.label] * rows),
        "run": pa.array([str(x) for x in block.learners for _ in block.seeds]),
        "seed": pa.array(np.tile(np.array(block.seeds, dtype=np.int64), runs)),
        "diverged": pa.array(gone, mask=gone < 0),
    }
    for i, measure in enumerate(measures):
        curve = numbers.errors[:, :, i].reshape(rows, points)
        columns[f"final_{measure}"] = pa.array(np.ascontiguousarray(curve[:, -1]))
        columns[f"auc_{measure}"] = pa.array(numbers.means[:, :, i].reshape(rows))
        with np.errstate(over="ignore"):  # a 32-bit number beyond the range is infinite
            flat = pa.array(curve.astype(np.float32).reshape(-1))
        columns[f"curve_{measure}"] = pa.FixedSizeListArray.from_arrays(flat, points)
    made = pa.table(columns)
    return made.replace_schema_metadata({KEY: block.fingerprint.encode()})


def to_bytes(rows: pa.Table) -> bytes:
    """A block's file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        compression="zstd",
        use_dictionary=["problem", "run"],
        column_encoding={
            name: "BYTE_STREAM_SPLIT" for name in rows.column_names if name.startswith("auc_")
        },
        write_page_checksum=True,
    )
    return bytes(sink.getvalue())


def save(directory: Path, block: StudyBlock, content: bytes) -> None:
    """Write a block's file, whole or not at all."""
    with plain_disk_errors(directory):
        write_whole(directory / block.stage / block.file, content)


@contextmanager
def plain_disk_errors(directory: Path) -> Iterator[None]:
    """Say in one sentence that the disk is full, or why else a file cannot be written."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "the disk is full" if full else str(error.strerror or error)
        raise InputError(
            f"cannot write to '{directory}': {why}. Every block finished so far is kept; make "
            "room and run the same command again, it goes on from there."
        ) from error


def load(path: Path, block: StudyBlock) -> pa.Table:
    """A block's rows, checked: `InputError` if the file is not exactly that block's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path, page_checksum_verification=True, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"'{path}' is damaged ({reason})") from None
    metadata = rows.schema.metadata or {}
    if metadata.get(KEY) != block.fingerprint.encode():
        raise InputError(f"'{path}' is not a result of this study")
    if rows.num_rows != len(block.learners) * len(block.seeds):
        raise InputError(f"'{path}' has {rows.num_rows} rows instead of those of its block")
    return rows


def standing(directory: Path, blocks: list[StudyBlock]) -> tuple[list[StudyBlock], list[str]]:
    """Which blocks are finished, and remarks on files that are damaged or do not belong."""
    finished, remarks = [], []
    for block in blocks:
        path = directory / block.stage / block.file
        if path.exists():
            try:
                load(path, block)
            except InputError as error:
                remarks.append(f"{error}; it is computed again.")
            else:
                finished.append(block)
    expected = {block.file for block in blocks}
    for stage in sorted({block.stage for block in blocks}):
        for path in sorted((directory / stage).glob("*")):
            if path.name not in expected and not path.name.startswith("."):
                remarks.append(f"'{path}' is not part of this study; it is left alone, not read.")
    return finished, remarks


def sweep(directory: Path) -> None:
    """Remove half-written files that a killed run left behind."""
    for stage in STAGES:
        for path in (directory / stage).glob(TEMPORARY):
            path.unlink(missing_ok=True)


def provenance() -> dict[str, Any]:
    """What the numbers were made with, and how seeds become streams."""
    import platform
    from importlib.metadata import version

    packages = ("steadytd", "numpy", "numba", "llvmlite", "pyarrow")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        **{name: version(name) for name in packages},
        "code": code(),
        "seeds": "a run's seed is the key of its SplitMix64 stream and, in a family, draws its "
        f"instance (docs/streams.md); the grid's seeds begin at 0, the fresh ones at {FRESH}",
    }


def write_provenance(directory: Path) -> None:
    """Write `provenance.json`."""
    text = json.dumps(provenance(), indent=2) + "\n"
    with plain_disk_errors(directory):
        write_whole(directory / "provenance.json", text)

"""The results of a study on disk: a directory with one Parquet file per block.

    study.toml           the study as it was run, to the letter
    provenance.json      versions and the scheme of the seeds
    grid/*.parquet       the blocks of the grid
    confirm/*.parquet    the best configurations, rerun on fresh seeds

A file has one row per run: `problem`, `run` (the learner as text), `seed`, `diverged` (the step,
or null), and for every measure m `auc_m` (the mean over the run, see `Task.mean`), `final_m` and
`curve_m` (32-bit numbers; infinite once diverged). It appears whole or not at all, holds its
block's fingerprint and a hash of its rows in the metadata, and no time stamp: the same block is the
same file, byte for byte. Files with other names are never read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadytd.base.errors import InputError
from steadytd.base.files import disk_error, write_whole
from steadytd.studies.blocks import FRESH, Numbers, StudyBlock, code

if TYPE_CHECKING:
    import pyarrow as pa

STAGES = ("grid", "confirm")
TEMPORARY = re.compile(  # what a killed run leaves behind
    r"\.(study-\w{8}\.toml|provenance-\w{8}\.json|.+-\w{8}\.parquet)"
)
BLOCK = re.compile(r".+-\d{4,}-[0-9a-f]{12}\.parquet")
FINGERPRINT, ROWS = b"steadytd.block", b"steadytd.rows"  # keys of the metadata


def table(block: StudyBlock, numbers: Numbers, measures: tuple[str, ...]) -> pa.Table:
    """A block's rows."""
    import numpy as np
    import pyarrow as pa

    runs, seeds, _, points = numbers.errors.shape
    rows = runs * seeds
    diverged = numbers.diverged.reshape(rows)
    columns: dict[str, Any] = {
        "problem": pa.array([block.label] * rows),
        "run": pa.array([str(x) for x in block.learners for _ in block.seeds]),
        "seed": pa.array(np.tile(np.array(block.seeds, dtype=np.int64), runs)),
        "diverged": pa.array(diverged, mask=diverged < 0),
    }
    for i, measure in enumerate(measures):
        curve = numbers.errors[:, :, i].reshape(rows, points)
        columns[f"final_{measure}"] = pa.array(np.ascontiguousarray(curve[:, -1]))
        columns[f"auc_{measure}"] = pa.array(numbers.means[:, :, i].reshape(rows))
        with np.errstate(over="ignore"):  # a 32-bit number beyond the range is infinite
            flat = pa.array(curve.astype(np.float32).reshape(-1))
        columns[f"curve_{measure}"] = pa.FixedSizeListArray.from_arrays(flat, points)
    made = pa.table(columns)
    metadata = {FINGERPRINT: block.fingerprint.encode(), ROWS: _hash(made)}
    return made.replace_schema_metadata(metadata)


def to_bytes(rows: pa.Table) -> bytes:
    """A block's file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    encoding = {name: "BYTE_STREAM_SPLIT" for name in rows.column_names if name.startswith("auc_")}
    pq.write_table(
        rows, sink, compression="zstd", use_dictionary=["problem", "run"],
        column_encoding=encoding, write_page_checksum=True,
    )  # fmt: skip
    return bytes(sink.getvalue())


def _hash(rows: pa.Table) -> bytes:
    """A hash of all names, types and values; a null is hashed as -1, whatever lies under it."""
    import pyarrow.compute as pc

    place = rows.column_names.index("diverged")
    full = rows.set_column(place, "diverged", pc.fill_null(rows["diverged"], -1))
    [batch] = full.replace_schema_metadata(None).combine_chunks().to_batches()
    types = {one.name: str(getattr(one.type, "value_type", one.type)) for one in batch.schema}
    found = hashlib.sha256(str(types).encode())
    found.update(batch.serialize())
    return found.hexdigest().encode()


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
        remark = "Every finished block is saved, and the same command continues from there. "
        raise disk_error(error, directory, remark) from error


def load(path: Path, block: StudyBlock) -> pa.Table:
    """A block's rows: `InputError` if the file is damaged, or not exactly that block's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        content = path.read_bytes()
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        if file.metadata.row_group(0).num_columns != file.metadata.num_columns:
            raise ValueError("a row group lacks columns")  # Arrow would crash
        # in this thread: one of Arrow's may let go of `content` when Python has already ended, and
        # the process is then aborted
        rows = file.read(use_threads=False)
        metadata = rows.schema.metadata or {}
        damaged = metadata.get(ROWS) != _hash(rows)
    except Exception as error:  # damage raises errors of many kinds
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"'{path}' is damaged ({reason})") from None
    if metadata.get(FINGERPRINT) != block.fingerprint.encode():
        raise InputError(f"'{path}' is not a result of this study")
    if damaged:
        raise InputError(f"'{path}' is damaged (its rows are not those that were written)")
    if rows.num_rows != len(block.learners) * len(block.seeds):
        raise InputError(f"'{path}' has {rows.num_rows} rows instead of those of its block")
    return rows


def finished_blocks(
    directory: Path, blocks: list[StudyBlock]
) -> tuple[list[StudyBlock], list[str]]:
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


def left_behind(path: Path) -> bool:
    """Whether a file is half-written, by a run that was killed."""
    return TEMPORARY.fullmatch(path.name) is not None


def sweep(directory: Path, finished: bool = False) -> None:
    """Remove half-written files; with `finished`, the results too."""
    for place in (directory, *(directory / stage for stage in STAGES)):
        for path in list(place.iterdir()):
            done = place != directory and BLOCK.fullmatch(path.name)
            if left_behind(path) or (finished and done):
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
    write_whole(directory / "provenance.json", json.dumps(provenance(), indent=2) + "\n")

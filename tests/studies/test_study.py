"""Running a study: the same numbers however it is run, stopped, damaged and resumed."""

from __future__ import annotations

import errno
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import steadytd as st
from steadytd.base.files import write_whole
from steadytd.studies import dataset
from steadytd.studies.blocks import FRESH, compute, confirm_blocks, grid_blocks
from steadytd.studies.engines import remote_block, sent
from steadytd.studies.results import StudyResults
from steadytd.studies.spec import parse_spec
from steadytd.studies.study import Study
from tests.support.commands import call

TEXT = """
steps = 300
seeds = 5
every = 50
errors = ["value", "projected_bellman"]

[[problems]]
name = "three_state"

[[problems]]
name = "collision"
steps = 200

[[learners]]
name = "td"
alpha = { log2 = [-4, 3] }

[[learners]]
name = "tdc"
alpha = { log2 = [-6, -4] }
ratio = [0.5, 2]
lam = [0, 0.9]
"""

Tree = dict[str, bytes]


def make(text: str = TEXT) -> Study:
    return Study(parse_spec(text, "small"))


def tree(directory: Path) -> Tree:
    """Every result file with its content."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*.parquet"))
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("study") / "undisturbed"
    make().run(out=directory, threads=1)
    return directory


@pytest.fixture
def partial(tmp_path: Path, undisturbed: Path) -> Path:
    """A copy of the undisturbed results."""
    import shutil

    return Path(shutil.copytree(undisturbed, tmp_path / "copy"))


def test_blocks_cover_every_run_and_seed_once() -> None:
    spec = make().spec
    pairs = [
        (block.task, str(learner), seed)
        for block in grid_blocks(spec)
        for learner in block.learners
        for seed in block.seeds
    ]
    wanted = {
        (i, str(learner), seed)
        for i, task in enumerate(spec.tasks)
        for learner in task.learners
        for seed in range(5)
    }
    assert len(pairs) == len(wanted)
    assert set(pairs) == wanted
    assert len({block.file for block in grid_blocks(spec)}) == len(grid_blocks(spec))


def test_large_blocks_are_split_by_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make().spec
    before = {b.fingerprint for b in grid_blocks(spec)}
    monkeypatch.setattr(sys.modules["steadytd.studies.blocks"], "WORK", 10_000.0)
    blocks = grid_blocks(spec)
    assert len(blocks) > len(before)
    for i, task in enumerate(spec.tasks):
        for learner in task.learners:
            seeds = [s for b in blocks if b.task == i and learner in b.learners for s in b.seeds]
            assert seeds == [0, 1, 2, 3, 4]


CHANGES: list[tuple[str, str]] = [
    ("steps = 300", "steps = 301"),
    ("every = 50", "every = 60"),
    ('"value", "projected_bellman"', '"value"'),
    ("seeds = 5", "seeds = 6"),
    ("[-4, 3]", "[-5, 3]"),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_fingerprint_changes_with_what_decides_the_numbers(old: str, new: str) -> None:
    def td(text: str) -> str:
        blocks = grid_blocks(parse_spec(text, "s"))
        return next(b.fingerprint for b in blocks if b.learners[0].name == "td")

    assert td(TEXT) == td(TEXT.replace("[0.5, 2]", "[0.5, 4]"))
    assert td(TEXT) != td(TEXT.replace(old, new))


def test_numbers_are_those_of_run(undisturbed: Path) -> None:
    results = StudyResults(undisturbed)
    assert results.complete
    rows = results.rows()
    for label in ("three_state", "collision"):
        task = next(t for t in results.spec.tasks if t.label == label)
        points = task.points
        learners = ["td:alpha=0.25", "tdc:alpha=0.03125,ratio=2,lam=0.9"]
        run = st.run(label, learners, steps=task.steps, seeds=5, points=len(points))
        assert run.steps.tolist() == points.tolist()
        for i, learner in enumerate(learners):
            mine = rows.filter((pl.col("problem") == label) & (pl.col("run") == learner))
            assert mine["seed"].to_list() == [0, 1, 2, 3, 4]
            errors = run.errors[i]
            np.testing.assert_array_equal(mine["auc_value"].to_numpy(), errors.mean(axis=1))
            np.testing.assert_array_equal(mine["final_value"].to_numpy(), errors[:, -1])
            seeds, curves = results.curves(label, learner)
            assert seeds == [0, 1, 2, 3, 4]
            np.testing.assert_array_equal(curves, errors.astype(np.float32))


def test_summary_and_best(undisturbed: Path) -> None:
    results = StudyResults(undisturbed)
    rows = results.rows()
    assert results.summary.height == results.spec.runs
    for row in results.summary.iter_rows(named=True):
        mine = rows.filter((pl.col("problem") == row["problem"]) & (pl.col("run") == row["run"]))
        assert row["auc_value"] == pytest.approx(mine["auc_value"].to_numpy().mean())
        spread = mine["auc_value"].to_numpy().std(ddof=1) / np.sqrt(5)
        assert row["auc_value_stderr"] == pytest.approx(spread, rel=1e-9)
        assert row["algorithm"] == row["run"].partition(":")[0]
    for i, learner in results.best:
        mine = results.summary.filter(
            (pl.col("problem") == results.spec.tasks[i].label)
            & (pl.col("algorithm") == learner.name)
        )
        chosen = mine.filter(pl.col("run") == str(learner))["auc_value"][0]
        assert chosen == np.nanmin(mine["auc_value"].to_numpy())
    assert len(results.best) == 4


def test_the_best_are_run_again_on_fresh_seeds(undisturbed: Path) -> None:
    results = StudyResults(undisturbed)
    rows = results.rows("confirm")
    assert set(rows["seed"]) == set(range(FRESH, FRESH + 5))
    best = {(results.spec.tasks[i].label, str(learner)) for i, learner in results.best}
    assert {(p, r) for p, r in rows.select("problem", "run").iter_rows()} == best
    assert results.confirmation is not None
    assert results.confirmation.height == len(best)


def test_divergence_is_marked(tmp_path: Path) -> None:
    text = TEXT.replace("[-4, 3]", "[-4, 9]").replace("300", "3000")
    results = make(text).run(out=tmp_path / "out")
    rows = results.rows().filter(pl.col("run") == "td:alpha=512")
    three_state = rows.filter(pl.col("problem") == "three_state")
    assert three_state["diverged"].null_count() == 0
    assert three_state["diverged"].is_between(1, 3000).all()
    assert three_state["final_value"].is_infinite().all()
    assert not results.rows()["final_value"].is_nan().any()
    shares = results.summary.filter(pl.col("run") == "td:alpha=512")["diverged_share"]
    assert shares.max() == 1.0
    assert "td:alpha=512" not in {str(learner) for _, learner in results.best}


def test_two_threads_give_the_same_files(tmp_path: Path, undisturbed: Path) -> None:
    make().run(out=tmp_path / "two", threads=2)
    assert tree(tmp_path / "two") == tree(undisturbed)


def test_finished_blocks_are_not_run_again(
    partial: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def counting(spec: object, block: object, *others: object) -> object:
        ran.append(block.file)  # type: ignore[attr-defined]
        return compute(spec, block, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(sys.modules["steadytd.studies.engines"], "compute", counting)
    said: list[str] = []
    make().run(out=partial, say=said.append)
    assert ran == []
    assert any("blocks of the grid are finished" in text for text in said)
    missing = sorted((partial / "grid").glob("*.parquet"))[1]
    missing.unlink()
    make().run(out=partial)
    assert ran == [missing.name]
    assert tree(partial) == tree(undisturbed)


def half_written(out: Path) -> list[Path]:
    return [path for path in out.rglob("*") if dataset.left_behind(path)]


def test_interrupted_and_resumed(tmp_path: Path, undisturbed: Path) -> None:
    out = tmp_path / "out"

    def interrupt(done: int, total: int) -> None:
        if len(list(out.rglob("*.parquet"))) >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make().run(out=out, threads=1, progress=interrupt)
    assert 3 <= len(tree(out)) < len(tree(undisturbed))
    make().run(out=out)
    assert tree(out) == tree(undisturbed)


def test_progress_never_goes_back(tmp_path: Path) -> None:
    shares: list[float] = []
    make().run(out=tmp_path / "out", threads=1, progress=lambda n, of: shares.append(n / of))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    """Change one bit such that, but for the checksums, other numbers would be read in silence."""
    content = path.read_bytes()
    good = pq.read_table(pa.BufferReader(content))
    for place in range(4, len(content)):
        bad = bytearray(content)
        bad[place] ^= 0x04
        try:
            read = pq.read_table(pa.BufferReader(bytes(bad)))
        except (OSError, pa.ArrowException):
            continue
        if read.num_rows == good.num_rows and not read.equals(good):
            path.write_bytes(bytes(bad))
            return
    raise AssertionError("no such bit")


def foreign(path: Path) -> None:
    pl.DataFrame({"run": ["x"], "seed": [1]}).write_parquet(path)


def swap(path: Path) -> None:
    """The file of another block, of the same size, under this name."""
    rows = pq.read_metadata(path).num_rows
    others = [p for p in sorted(path.parent.glob("*.parquet")) if p != path]
    same = next(p for p in others if pq.read_metadata(p).num_rows == rows)
    path.write_bytes(same.read_bytes())


@pytest.mark.parametrize("damage", [cut, empty, flip, foreign, swap])
def test_damaged_files_are_reported_and_computed_again(
    partial: Path, undisturbed: Path, damage: Callable[[Path], None]
) -> None:
    victim = sorted((partial / "grid").glob("*.parquet"))[2]
    damage(victim)
    assert tree(partial) != tree(undisturbed)
    with pytest.raises(st.InputError, match="run `steadytd study` again"):
        StudyResults(partial).rows(columns=["run", "curve_value", "auc_value"])
    said: list[str] = []
    make().run(out=partial, say=said.append)
    assert any(victim.name in text and "computed again" in text for text in said)
    assert tree(partial) == tree(undisturbed)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted there")
def test_a_block_is_read_without_threads_of_arrow(undisturbed: Path) -> None:
    """One that lets go of Python's bytes while Python ends has the process aborted."""
    code = (
        "import os, sys, pathlib, pyarrow.parquet\n"
        "from steadytd.studies.results import StudyResults\n"
        "results = StudyResults(pathlib.Path(sys.argv[1]))\n"
        "block, before = results.blocks[0], len(os.listdir('/proc/self/task'))\n"
        "rows = results._load(block)\n"
        "print(rows.num_rows > 0, len(os.listdir('/proc/self/task')) - before)"
    )
    command = [sys.executable, "-c", code, str(undisturbed)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "0"]


def test_foreign_files_are_reported_and_never_read(partial: Path, undisturbed: Path) -> None:
    other = partial / "grid" / "three_state-td-0000-000000000000.parquet"
    other.write_bytes(next(iter(tree(undisturbed).values())))
    said: list[str] = []
    results = make().run(out=partial, say=said.append)
    assert any(other.name in text and "not read" in text for text in said)
    assert results.rows().equals(StudyResults(undisturbed).rows())


def test_a_full_disk_keeps_what_is_finished(
    tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def full(path: Path, content: bytes) -> Path:
        if path.suffix == ".parquet" and len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.extend([path] if path.suffix == ".parquet" else [])
        return write_whole(path, content)

    monkeypatch.setattr(dataset, "write_whole", full)
    with pytest.raises(st.InputError, match=r"the disk is full.*finished block is saved"):
        make().run(out=tmp_path / "out")
    assert len(tree(tmp_path / "out")) == 3
    monkeypatch.undo()
    make().run(out=tmp_path / "out")
    assert tree(tmp_path / "out") == tree(undisturbed)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = 5", "seeds = 6", "seeds was 5 and is 6"),
        ("every = 50", "every = 40", "every on three_state was 50 and is 40"),
        ("[0.5, 2]", "[0.5, 4]", "6 configurations were added and 6 dropped, for instance tdc:"),
        ('"value", "projected_bellman"', '"value"', "errors was value, projected_bellman and is"),
        ('name = "collision"\nsteps = 200', 'name = "baird"', "problem collision was dropped"),
    ],
)
def test_a_changed_study_is_noticed(
    partial: Path, undisturbed: Path, old: str, new: str, message: str
) -> None:
    assert old in TEXT
    with pytest.raises(st.InputError, match=rf"has changed.*{message}.*--out.*--fresh"):
        make(TEXT.replace(old, new)).run(out=partial)
    assert tree(partial) == tree(undisturbed)


def test_a_kept_study_that_is_not_utf_8(partial: Path) -> None:
    (partial / "study.toml").write_bytes(TEXT.encode() + b"# caf\xe9")
    words = r"cannot read the study file '.*study.toml': .*byte 0xe9.* use --fresh"
    with pytest.raises(st.InputError, match=words):
        make().run(out=partial)
    assert make().run(out=partial, fresh=True).complete


def test_comments_do_not_change_a_study_and_fresh_begins_anew(partial: Path) -> None:
    make("# a remark\ntitle = 'x'\n" + TEXT).run(out=partial)
    make(TEXT.replace("seeds = 5", "seeds = 2")).run(out=partial, fresh=True)
    assert set(StudyResults(partial).rows()["seed"]) == {0, 1}


def test_one_run_at_a_time_in_a_directory(partial: Path) -> None:
    from filelock import FileLock

    at_work = pytest.raises(st.InputError, match="another process is running a study")
    with FileLock(partial / ".lock"), at_work:
        make().run(out=partial)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_directory_with_other_files_is_left_alone(tmp_path: Path, fresh: bool) -> None:
    """No lock is left in it, and what looks like results is not removed."""
    (tmp_path / "grid").mkdir()
    for name in ("letter.txt", "grid/mine.parquet"):
        (tmp_path / name).write_text("dear")
        with pytest.raises(st.InputError, match="holds other files"):
            make().run(out=tmp_path, fresh=fresh)
    (tmp_path / "letter.txt").unlink()
    with pytest.raises(st.InputError, match="holds other files"):
        make().run(out=tmp_path, fresh=fresh)
    found = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*"))
    assert found == ["grid", "grid/mine.parquet"]


def test_fresh_removes_results_only(partial: Path) -> None:
    (partial / "grid" / "mine.parquet").write_text("dear")
    make(TEXT.replace("seeds = 5", "seeds = 1")).run(out=partial, fresh=True)
    assert (partial / "grid" / "mine.parquet").read_text() == "dear"
    assert set(StudyResults(partial).rows()["seed"]) == {0}


def test_another_study_is_refused_without_a_lock(partial: Path) -> None:
    (partial / ".lock").unlink()
    with pytest.raises(st.InputError, match="has changed"):
        make(TEXT.replace("seeds = 5", "seeds = 6")).run(out=partial)
    assert not (partial / ".lock").exists()


@pytest.mark.parametrize(
    "left", ["provenance.json", ".provenance-ab12cd_x.json", ".study-12345678.toml"]
)
def test_killed_before_the_study_is_written(tmp_path: Path, undisturbed: Path, left: str) -> None:
    """Between the first files and study.toml: the same command goes on."""
    out = tmp_path / "out"
    for stage in dataset.STAGES:
        (out / stage).mkdir(parents=True)
    (out / ".lock").touch()
    (out / left).write_text("{")
    make().run(out=out)
    assert tree(out) == tree(undisturbed) and not half_written(out)
    assert json.loads((out / "provenance.json").read_text())["steadytd"] == st.__version__


def test_provenance(undisturbed: Path) -> None:
    found = json.loads((undisturbed / "provenance.json").read_text())
    assert found["steadytd"] == st.__version__
    assert {"numba", "numpy", "python", "code", "seeds"} <= found.keys()
    assert (undisturbed / "study.toml").read_text() == TEXT


def test_dask_gives_the_same_files(tmp_path: Path, undisturbed: Path) -> None:
    """Its workers are threads here."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    )
    client = Client(cluster)
    try:
        make().run(out=tmp_path / "dask", engine="dask", address=client)
    finally:
        client.close()
        cluster.close()
    assert tree(tmp_path / "dask") == tree(undisturbed)


def test_a_cluster_of_ones_own_listens_here_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask takes port 8787 of all addresses if nothing is said, and complains where it is taken."""

    def refuse(**given: object) -> None:
        raise st.InputError(str(given["dashboard_address"]))

    monkeypatch.setattr("distributed.LocalCluster", refuse)
    with pytest.raises(st.InputError, match=r"^127\.0\.0\.1:0$"):
        make().run(out=tmp_path / "dask", engine="dask")


@pytest.mark.slow
def test_dask_gives_the_same_files_even_if_a_worker_dies(tmp_path: Path, undisturbed: Path) -> None:
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")
    client = Client(cluster)
    killed: list[int] = []

    def kill_once(done: int, total: int) -> None:
        if not killed:
            killed.append(next(iter(cluster.workers.values())).process.pid)
            os.kill(killed[0], signal.SIGKILL)

    try:
        make().run(out=tmp_path / "dask", engine="dask", address=client, progress=kill_once)
    finally:
        client.close()
        cluster.close()
    assert killed
    assert tree(tmp_path / "dask") == tree(undisturbed)


def test_an_unreachable_scheduler_and_bad_engines(tmp_path: Path) -> None:
    with pytest.raises(st.InputError, match="did you mean 'dask'"):
        make().run(out=tmp_path / "a", engine="dusk")  # type: ignore[arg-type]
    with pytest.raises(st.InputError, match="give engine='dask' too"):
        make().run(out=tmp_path / "a", address="tcp://127.0.0.1:1")
    with pytest.raises(st.InputError, match="cannot reach a Dask scheduler at 'nonsense"):
        make().run(out=tmp_path / "a", engine="dask", address="nonsense:address")
    assert not (tmp_path / "a").exists()


def test_without_dask_the_directory_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(st.InputError, match="needs Dask; install it with: pip install"):
        make().run(out=tmp_path / "a", engine="dask")
    assert not list(tmp_path.iterdir())


def test_a_worker_with_other_code_is_refused() -> None:
    with pytest.raises(st.InputError, match="install the same versions everywhere"):
        remote_block(sent(make().spec), "0" * 64)


def test_remote_blocks_of_both_stages(undisturbed: Path) -> None:
    results = StudyResults(undisturbed)
    last = confirm_blocks(results.spec, results.best)[-1]
    best = tuple((last.task, str(x)) for x in last.learners)
    for block, again in ((grid_blocks(results.spec)[0], ()), (last, best)):
        content = remote_block(sent(make().spec), block.fingerprint, again)
        assert content == (undisturbed / block.stage / block.file).read_bytes()


def test_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    arguments = ("study", str(file), "--out", str(tmp_path / "out"))
    assert call(monkeypatch, *arguments, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["stage"] for row in rows] == ["confirm"] * 4
    assert rows[0]["auc"] <= rows[1]["auc"]
    assert {row["run"].partition(":")[0]: row["configurations"] for row in rows} == {
        "td": 8,
        "tdc": 12,
    }
    assert call(monkeypatch, *arguments) == 0
    assert "Best configuration of each learner" in capsys.readouterr().out
    file.write_text(TEXT.replace("seeds = 5", "seeds = 6"))
    assert call(monkeypatch, *arguments) == 2
    assert "has changed" in capsys.readouterr().err


PUBLISHED = {  # AUC, final error and their standard errors over the authors' 50 feature maps
    "td:alpha=0.03125": (0.326, 0.020, 0.319, 0.023),
    "etd:alpha=0.00390625": (0.125, 0.006, 0.119, 0.006),
    "tdc:alpha=0.0009765625,ratio=16": (0.570, 0.010, 0.478, 0.019),
    "tdrc:alpha=0.03125": (0.327, 0.020, 0.316, 0.022),
    "pgtd2:alpha=0.0078125,ratio=16": (0.257, 0.012, 0.281, 0.029),
}


@pytest.mark.slow
def test_collision_agrees_with_the_published_figures() -> None:
    """Within two standard errors of the published means, our maps being another 50 at random."""
    result = st.run("collision", list(PUBLISHED), steps=20_000, seeds=50, points=201)
    for row in result.summary.iter_rows(named=True):
        auc, auc_stderr, final, final_stderr = PUBLISHED[row["learner"]]
        assert abs(row["auc"] - auc) < 2 * auc_stderr, row
        assert abs(row["final"] - final) < 2 * final_stderr, row


RANKED = [  # the best of each algorithm in the published grid, as studies/collision.toml finds them
    ["etd:alpha=0.00390625,lam=0.3", "etd_beta:alpha=0.00390625,beta=0.8,lam=0.3"],
    [
        "pgtd2:alpha=0.0625,ratio=1,lam=0.3",
        "gtd2:alpha=0.03125,ratio=4,lam=0.3",
        "tdrc:alpha=0.03125,ratio=4,lam=0.3",
        "tdc:alpha=0.03125,ratio=4,lam=0.3",
        "td:alpha=0.03125,lam=0.3",
        "htd:alpha=0.03125,ratio=1,lam=0.3",
    ],
    [
        "abtd:alpha=0.03125,zeta=0.3",
        "tree_backup:alpha=0.03125,lam=0.3",
        "vtrace:alpha=0.03125,lam=0.3",
    ],
]


def test_collision_has_the_published_ranking() -> None:
    """Emphatic first, then gradient-TD and TD, then those that cut their traces; on 50 new maps.

    The groups' means differ by more than three paired standard errors. Inside that, single learners
    may change places: at lam = 0.3 abtd is not distinguishable from td.
    """
    every = [text for group in RANKED for text in group]
    seeds = range(FRESH, FRESH + 50)
    result = st.run("collision", every, steps=20_000, seeds=seeds, points=201)
    auc = dict(zip(every, result.errors.mean(axis=2), strict=True))
    means = [np.mean([auc[text] for text in group], axis=0) for group in RANKED]
    for better, worse in itertools.pairwise(means):
        difference = worse - better
        assert difference.mean() > 3 * difference.std(ddof=1) / np.sqrt(len(difference))

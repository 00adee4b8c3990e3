"""Stopped at any moment: nothing is half there, and the same command goes on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest

from steadytd.studies import dataset
from steadytd.studies.spec import parse_spec
from steadytd.studies.study import Study
from tests.support.hostile import Killed, stopping_disk
from tests.support.log_helpers import write_problem_log
from tests.support.logged_worlds import episodic

STUDY = """
problem = "three_state"
steps = 10
seeds = 1
confirm = { seeds = 0 }
[[learners]]
name = "td"
alpha = [0.1, 0.2]
[[learners]]
name = "td"
alpha = [0.1, 0.2]
average = 1
"""
LONG = STUDY.replace("steps = 10", "steps = 400_000").replace("seeds = 1", "seeds = 6")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def tree(directory: Path) -> dict[str, bytes]:
    """All that a study leaves behind; its lock is empty, and stays."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def test_a_study_killed_at_every_change_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is under its own name is whole; resumed, all is as if nothing had happened."""
    study, out = Study(parse_spec(STUDY, "small")), tmp_path / "out"
    study.run(out=tmp_path / "undisturbed", threads=1)
    wanted = tree(tmp_path / "undisturbed")
    assert len(wanted) == 4
    at = 0
    while True:
        at += 1
        shutil.rmtree(out, ignore_errors=True)
        with stopping_disk(monkeypatch, at, dead=True) as count:
            with suppress(Killed):
                study.run(out=out, threads=1)
            asked = count()
        left = tree(out) if out.exists() else {}
        whole = {name: text for name, text in left.items() if not dataset.left_behind(Path(name))}
        assert whole.items() <= wanted.items(), at
        study.run(out=out, threads=1)
        assert tree(out) == wanted, at
        if asked < at:
            break
    assert at > 15


PROGRAM = """
import signal
from steadytd import __main__ as program
signal.signal(signal.SIGINT, program._stop)  # what it does first, before it can be seen from here
print("begun", flush=True)
program.main()
"""


def steadytd(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip


INTERRUPTIONS = [4, pytest.param(120, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", INTERRUPTIONS)
def test_ctrl_c_at_any_moment(count: int, tmp_path: Path) -> None:
    """From the first import to the last word: exit code 130 (or it was done), no traceback."""
    draw, out = Random(14), tmp_path / "out"
    for _ in range(count):
        process = steadytd("certify", "three_state", "--out", str(out))
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(draw.choice((0.0, 0.05, 0.2 * draw.random(), 3.0 * draw.random())))
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=100)[1]
        assert "Traceback" not in said and "Exception" not in said, said
        assert process.returncode in (0, 130), said
        assert "interrupted" in said or process.returncode == 0
        names = {path.name for path in tmp_path.iterdir()}
        assert names == ({"out"} if out.exists() else set())
        if out.exists():
            assert len(list(out.iterdir())) == 10
            shutil.rmtree(out)


def ended(script: str) -> subprocess.CompletedProcess[str]:
    """A script that was run to its end."""
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=ENVIRONMENT,
        timeout=100, check=False,
    )  # fmt: skip


LASTING = """
import sys, threading
from steadytd import __main__ as program
from steadytd.cli import main as cli

def interrupted():
    threading.Thread(target=threading.Event().wait).start()
    print("said", end="")
    sys.exit(130)

cli.main = interrupted
program.main()
"""


def test_an_interrupted_command_waits_for_no_thread() -> None:
    """One that is compiled or drawn in may take a minute; this one never ends."""
    process = ended(LASTING)
    assert (process.returncode, process.stdout, process.stderr) == (130, "said", "")


LOADING = """
import signal, sys
from steadytd import __main__ as program
from steadytd.cli import main as cli

def loads(standalone_mode):  # as libraries with the C interface of NumPy do
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as error:
        sys.excepthook(type(error), error, error.__traceback__)
    raise ImportError("numpy.core.multiarray failed to import")

cli.app = loads
program.main()
"""


def test_an_interruption_that_became_an_import_error() -> None:
    process = ended(LOADING)
    assert process.stderr == "interrupted; every file written so far is complete.\n"
    assert process.returncode == 130


OTHERS = {
    "evaluate": "evaluate PLACE/log.parquet --learner lstd --out PLACE/out/e",
    "report": "report PLACE/out",
    "run": "run three_state td:alpha=0.1 --steps 1000000 --out PLACE/out/r",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_ctrl_c_in_other_commands(name: str, tmp_path: Path) -> None:
    """The command's files are all there, or none is; what was there before is as it was."""
    out = tmp_path / "out"
    write_problem_log(tmp_path / "log.parquet", episodic(4, 0.3, np.eye(4)), episodes=40, length=30)
    Study(parse_spec(STUDY, "s")).run(out=out)
    before, words = tree(out), OTHERS[name].replace("PLACE", str(tmp_path)).split()
    first = steadytd(*words)
    said = first.communicate(timeout=300)[1]
    assert first.returncode == 0, said
    whole = set(tree(out)) - set(before)
    draw, done = Random(14), 0
    for _ in range(25):
        for file in whole:
            (out / file).unlink(missing_ok=True)
        process = steadytd(*words)
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(draw.choice((0.05, 0.5, 6.0)) * draw.random())
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=300)[1]
        assert "Traceback" not in said and "Exception" not in said, said
        assert process.returncode in (0, 130, -signal.SIGINT), said  # the last: as Python ended
        found = tree(out)
        assert set(found) - set(before) in (set(), whole), said
        assert {file: text for file, text in found.items() if file in before} == before
        done += process.returncode == 0
    assert done < 25


@pytest.mark.slow
def test_real_kills(tmp_path: Path) -> None:
    """Thirty kills of a study by the operating system, each resumed by the next."""
    file, out = tmp_path / "s.toml", tmp_path / "out"
    file.write_text(LONG)
    Study(parse_spec(LONG, "s")).run(out=tmp_path / "undisturbed")
    draw = Random(14)
    for _ in range(30):
        process = steadytd("study", str(file), "--out", str(out))
        time.sleep(2.5 * draw.random())
        process.kill()
        assert "Traceback" not in process.communicate()[1]
    last = steadytd("study", str(file), "--out", str(out))
    said = last.communicate(timeout=300)[1]
    assert last.returncode == 0, said
    assert tree(out) == tree(tmp_path / "undisturbed")

"""Does anything grow? `python benchmarks/soak.py [--minutes 15] [--quick] [--leak 0] [--json]`.

Round after round: a study runs in this process, another is killed in a process of its own and gone
on with here, a log is evaluated, and in every fourth round two pages are written. Every round must
give the same bytes as the first. Noted are the most memory that this process held after a piece of
work (`memory_MB`), and what it holds after the round when allocators were asked to give back what
is free (`in_use_MB`: how much they hold in store goes up and down by 20 MB); open files and
threads; and files left where none should be.

Before the first round many pages and pictures are made, since two things warm up slowly: what pages
are made with takes some MB in a few jumps over the first 60 pages, and the drawing library (the
JavaScript engine inside of it) over the first 150 pictures, whatever is drawn. The first half of
the rounds warms up, too. Over the second half a line is fitted to the memory in use, with the
uncertainty of its slope. It passes if the slope is below 0.1 MB per round at 95 % confidence, and
if open files, threads and left files are on average no more in the last quarter than in the one
before. The exit code is 1 otherwise, also where the rounds are too few to tell. `--leak 0.2` keeps
so many MB more each round: this must fail. `--quick` is one round without warming up, to see that
it runs; it tells nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import t as student

import steadytd as st
from steadytd.report.certificate.figures import path_chart
from steadytd.report.certificate.page import certificate_page, write_certificate
from steadytd.report.evaluation.page import evaluation_page, write_evaluation
from steadytd.report.figures import described, drawn
from steadytd.studies.spec import parse_spec
from steadytd.studies.study import Study

STUDY = """
problem = "three_state"
steps = 400_000
seeds = 4
[[learners]]
name = "td"
alpha = { log2 = [-8, -1] }
[[learners]]
name = "perturbed_td"
alpha = { log2 = [-8, -1] }
eta = [0.5, 1]
[[learners]]
name = "etd"
alpha = { log2 = [-12, -5] }
[[learners]]
name = "tdc"
alpha = { log2 = [-8, -1] }
ratio = [0.5, 1]
"""
PAGE = 4  # rounds between pages: drawing takes longer than all the rest
LEAK = 0.1  # MB per round: a slope that may be steeper is a leak
CERTAIN = 0.95  # how surely the slope is below it
COUNTS = ("open_files", "threads", "left_files")
PAGES, PICTURES = 80, 200  # after so many, memory in use stays as it is
HALF = 0.5  # by so much the mean of a count may differ by chance


@dataclass(frozen=True)
class Note:
    """What was seen after a round."""

    minutes: float
    round: int
    kills: int  # that hit a study at work
    memory_MB: float
    in_use_MB: float
    open_files: int
    threads: int
    left_files: int


class Slope(NamedTuple):
    """MB per round over the second half, and the upper end of its interval."""

    found: float
    most: float


def log_columns(rows: int = 20_000) -> dict[str, object]:
    """A random walk of two actions, cut into episodes of 20 steps."""
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, rows)
    obs = rng.standard_normal((rows, 3))
    return {
        "episode_id": np.arange(rows) // 20, "t": np.arange(rows) % 20, "obs": list(obs),
        "action": action, "reward": obs[:, 0] + action, "terminated": np.arange(rows) % 20 == 19,
        "behavior_prob": np.full(rows, 0.5), "target_prob_new": np.where(action == 1, 0.8, 0.2),
    }  # fmt: skip


def blocks(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*.parquet"))
    }


def killed(file: Path, out: Path, after: float) -> bool:
    """Run the study in a process of its own and kill it at work; whether it had not ended."""
    command = [sys.executable, "-m", "steadytd", "study", str(file), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (out / "study.toml").exists():
        time.sleep(0.01)
    time.sleep(after)
    process.kill()
    return process.wait() != 0


def give_back() -> None:
    """Collect what nobody uses, and ask the allocators to give back what is free."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # of the GNU library only
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def held_MB() -> float:
    """The memory that this process holds, without pages of files.

    Those are the libraries' code, which the kernel may take away and bring back; no leak is there.
    """
    resident, of_files = map(int, Path("/proc/self/statm").read_text().split()[1:3])
    return (resident - of_files) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Soak:
    """The work of the rounds, in a directory of its own."""

    def __init__(self, place: Path, seed: int, leak: float, quick: bool) -> None:
        self.place, self.draw, self.kills, self.rounds = place, Random(seed), 0, 0
        self.most = self.in_use = held_MB()
        self.study = Study(parse_spec(STUDY, "soak"))
        self.file = place / "soak.toml"
        self.file.write_text(STUDY)
        self.log = st.write_log(place / "log.parquet", log_columns())
        self.study.run(out=place / "first")
        self.wanted = blocks(place / "first")
        self.value = self.evaluated(None)
        if not quick:
            self.warm_up()
        self.kept = set(place.iterdir())
        self.leak, self.lost = int(1e6 * leak), list[bytes]()

    def warm_up(self) -> None:
        """Make pages and pictures until allocators and the drawing library have what they keep."""
        found, certificate = self.evaluation(), st.certify("baird")
        for _ in range(PAGES):
            evaluation_page(found)
            certificate_page(certificate)
        text = json.dumps(described(path_chart(certificate)))
        for _ in range(PICTURES):
            drawn(text)

    def evaluation(self) -> st.Evaluation:
        return st.evaluate(self.log, discount=0.9, features="poly:2", learners=["lstd", "drl"])

    def evaluated(self, page: Path | None) -> object:
        found = self.evaluation()
        self.look()
        if page is not None:
            write_evaluation(found, page)
            write_certificate(st.certify("baird"), page)
            self.look()
        return found.values.to_dicts()

    def look(self) -> None:
        """Note the memory after a piece of work, and what is in use when the rest is given back."""
        self.most = max(self.most, held_MB())
        give_back()
        self.in_use = held_MB()

    def round(self) -> None:
        """One round; an AssertionError if its bytes are not those of the first."""
        self.rounds += 1
        self.most = 0.0
        whole, resumed, page = (self.place / name for name in ("whole", "resumed", "page"))
        self.study.run(out=whole)
        self.look()
        self.kills += killed(self.file, resumed, self.draw.random())
        self.study.run(out=resumed)
        self.look()
        assert blocks(whole) == blocks(resumed) == self.wanted, "a study has other bytes"
        draw = self.rounds % PAGE == 0
        assert self.evaluated(page if draw else None) == self.value, "an evaluation differs"
        self.lost.append(b"\1" * self.leak)
        for directory in (whole, resumed, page):
            shutil.rmtree(directory, ignore_errors=True)
        self.look()

    def note(self, begin: float) -> Note:
        return Note(
            minutes=round((time.monotonic() - begin) / 60, 2),
            round=self.rounds,
            kills=self.kills,
            memory_MB=round(self.most, 1),
            in_use_MB=round(self.in_use, 1),
            open_files=len(os.listdir("/proc/self/fd")),  # noqa: PTH208
            threads=threading.active_count(),
            left_files=len(set(self.place.iterdir()) - self.kept),
        )


def slope(memory: list[float]) -> Slope:
    """The line through the means of four rounds each, since every fourth draws pages.

    Its standard error is that of least squares, made larger where neighbours are alike.
    """
    rest = memory[len(memory) // 2 :]
    means = np.array(rest[len(rest) % PAGE :]).reshape(-1, PAGE).mean(axis=1)
    n = len(means)
    if n < 4:
        return Slope(float("nan"), float("inf"))
    at = PAGE * (np.arange(n) - (n - 1) / 2.0)
    found = float(at @ means / (at @ at))
    off = means - means.mean() - found * at
    alike = float(np.clip(off[1:] @ off[:-1] / max(off @ off, 1e-12), 0.0, 0.8))
    error = np.sqrt(off @ off / (n - 2) / (at @ at) * (1.0 + alike) / (1.0 - alike))
    return Slope(found, found + float(student.ppf(CERTAIN, n - 2) * error))


def faults(notes: list[Note]) -> list[str]:
    """What speaks against a pass, in sentences."""
    said = []
    found = slope([note.in_use_MB for note in notes])
    if not found.most < float("inf"):
        return ["the rounds are too few to tell whether memory grows"]
    if found.most >= LEAK:
        said.append(f"memory may grow by {found.most:.2f} MB per round, {LEAK} or more")
    quarter = max(1, len(notes) // 4)
    for name in COUNTS:
        counts = [float(getattr(note, name)) for note in notes]
        before, last = np.mean(counts[-2 * quarter : -quarter]), np.mean(counts[-quarter:])
        if last > before + HALF:
            said.append(f"{name} grew from {before:.1f} to {last:.1f}")
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=0, help="when the studies are killed")
    parser.add_argument("--leak", type=float, default=0.0, help="MB to keep more each round")
    parser.add_argument("--quick", action="store_true", help="one round, to see that it runs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    begin = time.monotonic()
    notes: list[Note] = []
    with tempfile.TemporaryDirectory() as name:
        soak = Soak(Path(name), options.seed, options.leak, options.quick)
        minutes = 0.0 if options.quick else options.minutes
        while not notes or time.monotonic() - begin < 60 * minutes:
            soak.round()
            notes.append(soak.note(begin))
            if not options.json and (len(notes) < 4 or len(notes) % 5 == 0):
                columns = asdict(notes[-1])
                if len(notes) == 1:
                    print("  ".join(f"{key:>10}" for key in columns))
                print("  ".join(f"{value:>10}" for value in columns.values()), flush=True)
    found, said = slope([n.in_use_MB for n in notes]), faults(notes)
    if options.json:
        document = {"rounds": [asdict(note) for note in notes], "slope": found._asdict()}
        print(json.dumps({**document, "faults": said}, indent=2))
    else:
        if found.most < float("inf"):
            print(f"memory in use over the second half: {found.found:+.3f} MB per round, at most "
                  f"{found.most:+.3f} ({CERTAIN:.0%} confidence)")  # fmt: skip
        print("\n".join(said) or "nothing grew")
    sys.exit(int(bool(said) and not options.quick))


if __name__ == "__main__":
    main()

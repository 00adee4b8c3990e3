"""Does anything grow? `python benchmarks/soak.py [--minutes 5] [--seed 0] [--json]`.

Round after round: a study runs in this process, another is killed in a process of its own and gone
on with here, a log is evaluated and its page written, a certificate is made. Every round must
give the same bytes as the first. After each round the memory, open files and threads of this
process are noted, and files left where none should be. The first fifth of the rounds warms up;
compared are the means of the rest's first and last thirds. The exit code is 1 if something grew.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import numpy as np

import steadytd as st
from steadytd.report.certificate.page import write_certificate
from steadytd.report.evaluation.page import write_evaluation
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
MAY_GROW = {"memory_MB": 16.0, "open_files": 1.0, "threads": 1.0, "left_files": 0.0}


@dataclass(frozen=True)
class Note:
    """What was seen after a round."""

    minutes: float
    round: int
    kills: int  # that hit a study at work
    memory_MB: float
    open_files: int
    threads: int
    left_files: int


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


class Soak:
    """The work of the rounds, in a directory of its own."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place, self.draw, self.kills, self.rounds = place, Random(seed), 0, 0
        self.study = Study(parse_spec(STUDY, "soak"))
        self.file = place / "soak.toml"
        self.file.write_text(STUDY)
        self.log = st.write_log(place / "log.parquet", log_columns())
        self.study.run(out=place / "first")
        self.wanted = blocks(place / "first")
        self.value = self.evaluated(None)
        self.kept = set(place.iterdir())

    def evaluated(self, page: Path | None) -> object:
        found = st.evaluate(self.log, discount=0.9, features="poly:2", learners=["lstd", "drl"])
        if page is not None:
            write_evaluation(found, page)
            write_certificate(st.certify("baird"), page)
        return found.values.to_dicts()

    def round(self) -> None:
        """One round; an AssertionError if its bytes are not those of the first."""
        self.rounds += 1
        whole, resumed, page = (self.place / name for name in ("whole", "resumed", "page"))
        self.study.run(out=whole)
        self.kills += killed(self.file, resumed, self.draw.random())
        self.study.run(out=resumed)
        assert blocks(whole) == blocks(resumed) == self.wanted, "a study has other bytes"
        draw = self.rounds % PAGE == 0
        assert self.evaluated(page if draw else None) == self.value, "an evaluation differs"
        for directory in (whole, resumed, page):
            shutil.rmtree(directory, ignore_errors=True)

    def note(self, begin: float) -> Note:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return Note(
            minutes=round((time.monotonic() - begin) / 60, 2),
            round=self.rounds,
            kills=self.kills,
            memory_MB=round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1),
            open_files=len(os.listdir("/proc/self/fd")),  # noqa: PTH208
            threads=threading.active_count(),
            left_files=len(set(self.place.iterdir()) - self.kept),
        )


def growth(notes: list[Note]) -> dict[str, float]:
    """By how much the last third of the rounds exceeds the first, without the warming up."""
    rest = notes[len(notes) // 5 :]
    third = max(1, len(rest) // 3)

    def mean(some: list[Note], key: str) -> float:
        return float(np.mean([getattr(note, key) for note in some]))

    return {key: round(mean(rest[-third:], key) - mean(rest[:third], key), 2) for key in MAY_GROW}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0, help="when the studies are killed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    begin = time.monotonic()
    notes: list[Note] = []
    with tempfile.TemporaryDirectory() as name:
        soak = Soak(Path(name), options.seed)
        while time.monotonic() - begin < 60 * options.minutes:
            soak.round()
            notes.append(soak.note(begin))
            if not options.json and (len(notes) < 4 or len(notes) % 5 == 0):
                shown = asdict(notes[-1])
                if len(notes) == 1:
                    print("  ".join(f"{key:>10}" for key in shown))
                print("  ".join(f"{value:>10}" for value in shown.values()), flush=True)
    grown = growth(notes)
    if options.json:
        print(json.dumps({"rounds": [asdict(note) for note in notes], "growth": grown}, indent=2))
    else:
        print("growth: " + ", ".join(f"{key} {value:+g}" for key, value in grown.items()))
    sys.exit(int(any(grown[key] > most for key, most in MAY_GROW.items())))


if __name__ == "__main__":
    main()

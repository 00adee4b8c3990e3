"""What a learner costs `st.run` before it steps: `python benchmarks/learners.py [--json]`.

Runs of one step on Baird's star with 10, 1,000 and 100,000 learners, compiled beforehand, on one
thread. `call_ms` is the processor time of the whole call; `per_learner_us` what each learner beyond
the first adds to it; then the same of `summary`, of the look-up in `weights`, and of making the
learners, from a name with numbers and from texts. The best of a few repetitions counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import steadytd as st

SIZES = (10, 1_000, 100_000)


def seconds(work: Callable[[], object], n: int) -> float:
    """The least processor time of several goes, more of them where they are short."""
    times = []
    for _ in range(max(5, 2000 // n)):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def step_sizes(n: int) -> list[float]:
    return [1e-4 * (1.0 + i / n) for i in range(n)]


def measured(n: int) -> dict[str, object]:
    problem = st.problem("baird")
    texts = [f"perturbed_td:alpha={alpha},eta=1" for alpha in step_sizes(n)]
    learners = [st.learner(text) for text in texts]

    def call(some: list[st.Learner]) -> st.Result:
        return st.run(problem, some, steps=1, points=2, threads=1)

    last = call(learners)  # compiles
    one, many = seconds(lambda: call(learners[:1]), 10), seconds(lambda: call(learners), n)
    summary = seconds(lambda: replace(last).summary, n)  # anew, not the one that is kept
    found = seconds(lambda: [last.weights(learner) for learner in learners], n)
    made = seconds(
        lambda: [st.learner("perturbed_td", alpha=alpha, eta=1.0) for alpha in step_sizes(n)], n
    )
    read = seconds(lambda: [st.learner(text) for text in texts], n)
    each = {
        "per_learner_us": (many - one) / (n - 1),
        "summary_us": summary / n,
        "weights_us": found / n,
        "from_numbers_us": made / n,
        "from_text_us": read / n,
    }
    return {
        "learners": n,
        "call_ms": round(1e3 * many, 2),
        **{k: round(1e6 * v, 1) for k, v in each.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measured(n) for n in SIZES]
    if options.json:
        json.dump(rows, sys.stdout, indent=2)
        return
    for row in rows:
        print(", ".join(f"{key} {value:,}" for key, value in row.items()))


if __name__ == "__main__":
    main()

"""How fast the lab answers, measured in headless Chromium.

Nanoseconds per step of learners on Baird's counterexample in the page's worker (drawing the stream
included), and how long it takes from a change of eta to new curves of 100,000 steps of four
learners. `make test-browser` installs what this needs.

    python benchmarks/lab.py [--repeats 5] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script sees its own folder only

from steadytd.lab.page import lab_page

NEEDS = "this benchmark needs Playwright and Chromium; `make test-browser` installs both"
try:
    from tests.browser.chromium import NAMES, opened
except ModuleNotFoundError:
    raise SystemExit(NEEDS) from None
if not any(map(shutil.which, NAMES)):
    raise SystemExit(NEEDS)

LEARNERS = {"perturbed_td:alpha=0.0001,eta=1": 15.0, "tdc:alpha=0.0001": 40.0}
STEPS = 10_000_000
ANSWER = 100.0  # milliseconds
FOUR = "td:alpha=0.001;perturbed_td:alpha=0.001,eta=0.6;tdc:alpha=0.001;etd:alpha=0.001"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="how often each is measured")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quick", action="store_true", help="few steps, to see that it runs")
    asked = parser.parse_args()
    if asked.quick:
        asked.repeats = 1
    count = 10_000 if asked.quick else STEPS
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lab.html"
        file.write_text(lab_page(), encoding="utf-8")
        rows = [
            *(steps(file, text, aim, count, asked.repeats) for text, aim in LEARNERS.items()),
            answer(file, asked.repeats),
        ]
    if asked.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    table = Table("what", "best", "median", "aim")
    for row in rows:
        table.add_row(*(str(row[key]) for key in ("what", "best", "median", "aim")))
    Console().print(table)


def steps(file: Path, learner: str, aim: float, count: int, repeats: int) -> dict[str, object]:
    """Nanoseconds per step of one learner, one seed."""
    found = []
    with opened(f"{file.as_uri()}#p=baird&l={learner}&n={count}&k=1") as page:
        for _ in range(repeats):
            begun = page.evaluate("(changed(), performance.now())")
            page.locator("body[data-done='1']").wait_for(timeout=120_000)
            found.append((page.evaluate("performance.now()") - begun) / count * 1e6)
    return _row(f"{learner}, ns per step", found, aim)


def answer(file: Path, repeats: int) -> dict[str, object]:
    """Milliseconds from a change of eta to the first curves of four learners."""
    found = []
    with opened(f"{file.as_uri()}#p=three_state&l={FOUR}&n=100000&k=1") as page:
        for i in range(repeats + 1):
            page.locator("body[data-done='1']").wait_for(timeout=60_000)
            page.evaluate(f"(state.learners[1].params.eta = {0.6 + 0.1 * i}, changed())")
            page.locator("body[data-done='1']").wait_for(timeout=60_000)
            found.append(float(page.evaluate("document.body.dataset.first")))
    return _row("100,000 steps x 4 learners, ms to the first curves", found[1:], ANSWER)


def _row(what: str, found: list[float], aim: float) -> dict[str, object]:
    best, median = round(min(found), 1), round(statistics.median(found), 1)
    return {"what": what, "best": best, "median": median, "aim": aim}


if __name__ == "__main__":
    main()

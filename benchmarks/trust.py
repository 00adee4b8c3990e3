"""How often trusted intervals hold the truth, on logs of worlds whose values are known.

Seven worlds (`tests/logged_worlds.py`), many logs of 400 episodes each from seeds that no rule was
chosen on, all default learners. A recommendation is right if its interval holds the true value.

    python benchmarks/trust.py [--logs 100] [--first 5000] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script sees its own folder only

from tests.support.logged_worlds import WORLDS, World, discount_of


def main() -> None:
    """Evaluate all logs and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--logs", type=int, default=100, help="logs of each world")
    parser.add_argument("--first", type=int, default=5000, help="the first log's seed")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args()
    console = Console(stderr=asked.json)
    seeds = range(asked.first, asked.first + asked.logs)
    rows = [
        counts(name, make(), seeds)
        for name, make in track(WORLDS.items(), description="worlds", console=console)
    ]
    total = {key: sum(row[key] for row in rows) for key in rows[0] if key != "world"}
    rows.append({"world": "all", **total})
    if asked.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
        return
    table = Table("world", "logs", "trusted", "of those right", "right or warned", "lstd right")
    for row in rows:
        table.add_row(*map(str, row.values()))
    console.print(table)


def counts(name: str, world: World, seeds: range) -> dict[str, Any]:
    """How many recommendations are trusted, right if trusted, and right or with a warning."""
    import steadytd as st

    trusted = right = fine = lstd = 0
    for seed in seeds:
        e = st.evaluate(world.log(seed), discount=discount_of(name), features=world.features)
        r = e.recommended["pi"]
        holds = r.lo <= world.truth <= r.hi
        trusted += r.trusted
        right += r.trusted and holds
        fine += holds or not r.trusted
        row = e.values.filter(learner="lstd").to_dicts()[0]
        lstd += row["lo"] <= world.truth <= row["hi"]
    return {
        "world": name, "logs": len(seeds), "trusted": trusted, "right": right,
        "right_or_warned": fine, "lstd": lstd,
    }  # fmt: skip


if __name__ == "__main__":
    main()

"""`steadytd monitor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from steadytd.cli.console import Json, out, print_json
from steadytd.cli.evaluate import Map, Target, Unit, mapped, ranged


def monitor(
    state: Annotated[Path, typer.Argument(help="The monitor's file; the first call makes it.")],
    logs: Annotated[list[str], typer.Argument(help="The new batch: Parquet or CSV files.")],
    reward_range: Annotated[
        str | None,
        typer.Option(
            "--reward-range",
            metavar="LO,HI",
            help="Least and largest reward of a step; needed at the first call.",
        ),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="The most steps of an episode; 1 unless given.")
    ] = None,
    discount: Annotated[
        float | None, typer.Option(help="Discount in [0, 1]; 1 unless given.")
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(help="Confidence level of all decisions together; 0.95 unless given."),
    ] = None,
    unit: Unit = None,
    unit_episodes: Annotated[
        int | None, typer.Option(help="With --unit: the most episodes of a unit that count.")
    ] = None,
    unit_batches: Annotated[
        int | None,
        typer.Option(help="Number of batches, from its first one, in which a unit counts."),
    ] = None,
    target: Target = None,
    columns: Map = None,
    as_json: Json = False,
) -> None:
    """Is a new policy better, decided while data arrive? Look as often as you like.

    Later calls read range, horizon, discount, level and units from the file.

    Examples:
      steadytd monitor shop.json monday.parquet --reward-range 0,1

      steadytd monitor shop.json tuesday.parquet

      steadytd monitor ward.json week1.csv --reward-range -1,1 --horizon 5 --discount 0.95 --json

      steadytd monitor users.json day.csv --reward-range 0,1 --unit user --unit-episodes 5
    """
    from steadytd.base.errors import Faults, InputError, visible
    from steadytd.evaluation.monitor import load_monitor
    from steadytd.evaluation.monitor import monitor as begin

    options: dict[str, Any] = {
        "reward_range": ranged(reward_range), "horizon": horizon, "discount": discount,
        "level": level, "unit": unit, "unit_episodes": unit_episodes, "unit_batches": unit_batches,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    if state.exists():
        m = load_monitor(state)
        for name, value in given.items():
            if value != getattr(m, name):
                raise InputError(
                    f"'{state}' began with {name} = {getattr(m, name)}, got {value}; leave the "
                    "option out, or begin another file."
                )
    elif "reward_range" not in given:
        raise InputError(
            f"'{state}' does not exist yet: to begin a monitor, give --reward-range LO,HI."
        )
    else:
        m = begin(**given)
    faults = Faults(logs[0])
    own = mapped(columns, faults)
    faults.check()
    m.add(logs[0] if len(logs) == 1 else logs, targets=target, columns=own)
    m.save(state)
    if as_json:
        print_json(m.to_dict())
        return
    for text in [*m.sentences, m.assumed]:
        out.print(visible(text), markup=False, highlight=False)

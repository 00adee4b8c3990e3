"""`steadytd list` and `steadytd show`."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from steadytd.base.errors import InputError, unknown
from steadytd.base.numbers import number
from steadytd.cli.console import (
    Full,
    Json,
    is_log,
    out,
    print_json,
    print_parts,
    print_prose,
)
from steadytd.report.text import Line, Table

FENCED = re.compile(r"```\n(.*?)\n```", re.DOTALL)  # an equation of a law's text
FEW = 16  # names that have a line each without --full
KINDS = ("problems", "learners", "studies")
SHOWN = ("problem", "learner", "log")


def kinds(incomplete: str) -> list[str]:
    """What can be listed, for the shell's completion."""
    return [kind for kind in KINDS if kind.startswith(incomplete)]


def names(incomplete: str) -> list[str]:
    """What can be shown, for the shell's completion."""
    from steadytd.learners import names as learners
    from steadytd.problems import names as problems

    return [name for name in (*problems(), *learners()) if name.startswith(incomplete)]


def list_names(
    kind: Annotated[
        str,
        typer.Argument(help="problems, learners or studies; default: all.", autocompletion=kinds),
    ] = "",
    full: Full = False,
    as_json: Json = False,
) -> None:
    """List the problems, the learners or the studies that come with the package.

    Examples:
      steadytd list

      steadytd list problems

      steadytd list learners --json
    """
    from steadytd.learners import learners
    from steadytd.problems import problems
    from steadytd.studies.spec import studies

    listed = {"problem": problems, "learner": learners, "study": studies}
    word = kind.lower().replace("studies", "study").removesuffix("s")
    if kind and word not in listed:
        raise unknown("kind of thing to list:", kind, KINDS)
    found = {
        name: find() for name, (one, find) in zip(KINDS, listed.items(), strict=True)
        if not kind or one == word
    }  # fmt: skip
    if as_json:
        rows = {k: [{"name": n, "summary": t} for n, t in v.items()] for k, v in found.items()}
        print_json(rows if not kind else rows.popitem()[1])
        return
    for title, texts in found.items():
        if full or (kind and len(texts) <= FEW):
            print_parts([Table(title, ("name", "what it is"), list(texts.items()))])
        else:
            print_parts([Line(", ".join(texts), head=title)])
    if not full:
        out.print("What they are: --full. One of them: steadytd show NAME.", highlight=False)


def show(
    what: Annotated[
        list[str],
        typer.Argument(
            help="A problem, a learner or a log; its kind may stand before its name. "
            "A law of your own is FILE.py:LAW; the file is run.",
            metavar="[KIND] NAME",
            autocompletion=names,
        ),
    ],
    kernel: Annotated[
        bool, typer.Option("--kernel", help="The loop that is compiled for the learner.")
    ] = False,
    program: Annotated[
        bool, typer.Option("--program", help="What one step of the learner does, in order.")
    ] = False,
    full: Full = False,
    as_json: Json = False,
) -> None:
    """Show one problem, learner or log in full.

    Examples:
      steadytd show perturbed_td

      steadytd show problem random_mdp:states=50,seed=3

      steadytd show tdc --program

      steadytd show tdc --kernel

      steadytd show my_laws.py:my_law

      steadytd show log.parquet
    """
    kind, name = _kind(what)
    if kind == "problem":
        _show_problem(name, full, as_json)
    elif kind == "log":
        _show_log(name, as_json)
    else:
        _show_learner(name, kernel, program, full, as_json)


def _kind(what: list[str]) -> tuple[str, str]:
    """What is meant: its kind, said or found, and its name."""
    from steadytd.learners import names as learners
    from steadytd.learners import written
    from steadytd.problems import is_saved
    from steadytd.problems import names as problems

    *kinds_given, name = what
    if len(kinds_given) > 1:
        raise InputError(f"show one thing at a time, got {len(what)}: {', '.join(what)}.")
    if kinds_given:
        kind = kinds_given[0].lower().removesuffix("s")
        if kind not in SHOWN:
            raise unknown("kind of thing to show:", kinds_given[0], SHOWN)
        return kind, name
    bare = name.partition(":")[0].strip()
    if is_saved(name) or bare.lower() in problems():
        return "problem", name
    if written(name).file or bare.lower() in learners():
        return "learner", name
    if is_log(name) or Path(name).exists():
        return "log", name
    raise unknown("problem or learner", bare, (*problems(), *learners()))


def _show_log(name: str, as_json: bool) -> None:
    from steadytd.logs.log import open_log

    try:
        log = open_log(name)
    except InputError:  # most logs leave the discount to whoever reads them
        log = open_log(name, discount=1.0)
    facts: dict[str, Any] = {
        "files": log.files,
        "rows": log.rows,
        "numbers_per_observation": log.n_obs,
        "targets": log.targets,
        "behavior_probabilities": log.has_behavior,
        "notes": list(log.notes),
    }
    if as_json:
        print_json(facts)
        return
    rows = [(key.replace("_", " "), _fact(value)) for key, value in facts.items()]
    print_parts([Table(repr(log), ("quantity", "value"), rows)])


def _fact(value: object) -> str:
    """A fact for reading."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "not counted" if value is None else f"{value:,}"


def _show_problem(name: str, full: bool, as_json: bool) -> None:
    import numpy as np

    from steadytd.problems import problem
    from steadytd.theory.dynamics import best_error

    p = problem(name)
    rank = int(np.linalg.matrix_rank(p.moments().Phi))
    facts: dict[str, Any] = {
        "name": p.name,
        "summary": p.summary,
        "states": p.n_states,
        "actions": p.n_actions,
        "features": p.n_features,
        "rank_of_features": rank,
        "target_policies": p.n_policies,
        "active_states": p.active.sum(axis=-1),
        "gamma": p.gamma,
        "w0": p.w0,
        **({"reward_rate": p.rate} if p.average_reward else {}),
        "d_mu": p.d_mu,
        "v_pi": p.v_pi,
        "largest_ratio": max(m.max_ratio for m in map(p.moments, range(p.n_policies))),
        "error_at_w0": p.error(np.tile(p.w0, (p.n_policies, 1)) if p.pi.ndim == 3 else p.w0),
        "best_error": float(np.mean([best_error(p, k) for k in range(p.n_policies)])),
    }
    if as_json:
        print_json({**facts, "doc": p.doc})
        return
    rows = [(key.replace("_", " "), _short(value)) for key, value in facts.items()]
    print_parts([Line(p.summary, head=p.name), Table("", ("quantity", "value"), rows[2:])])
    if full:
        print_prose(p.doc or p.name)


def _short(value: object) -> str:
    import numpy as np

    if isinstance(value, np.ndarray) and value.ndim > 1 and value.size > 40:
        shape = " x ".join(map(str, value.shape))
        return f"{shape} numbers from {number(float(value.min()))} to {number(float(value.max()))}"
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=4, threshold=40, max_line_width=70)
    return number(value) if isinstance(value, float) else str(value)


def _show_learner(name: str, kernel: bool, program: bool, full: bool, as_json: bool) -> None:
    from steadytd.engine.active import programs
    from steadytd.engine.block import Block
    from steadytd.learners import law_of
    from steadytd.report.learner_pages import param_rows, sections

    law = law_of(name)
    if kernel:
        typer.echo((law.block or Block).source(law, False, False), nl=False)
        return
    if program:
        for path, one in programs(law).items():
            typer.echo(f"{law.name}, {path}:\n{textwrap.indent(str(one), '    ')}")
        return
    params = param_rows(law)
    if as_json:
        print_json({"name": law.name, "summary": law.summary, "params": params, "doc": law.doc})
        return
    rows = [
        (p["name"], p["meaning"], p["range"], "required" if p["default"] is None else p["default"])
        for p in params
    ]
    print_parts([Line(law.summary, head=law.name)])
    update = sections(law.doc).get("Update", law.doc)
    print_prose(law.doc if full else FENCED.sub(lambda m: textwrap.indent(m[1], "    "), update))
    print_parts([Table("Hyper-parameters", ("name", "meaning", "range", "default"), rows)])

"""`steadytd list` and `steadytd show`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from steadytd.cli.console import out, plain, print_json, print_prose, table
from steadytd.cli.experiments import Json, find_problem


class Kinds(StrEnum):
    """What can be listed."""

    problems = "problems"
    learners = "learners"


class Kind(StrEnum):
    """What can be shown."""

    problem = "problem"
    learner = "learner"


def list_names(
    kind: Annotated[Kinds, typer.Argument(help="problems or learners.")], as_json: Json = False
) -> None:
    """List the problems or the learners.

    Examples:
      steadytd list problems

      steadytd list learners --json
    """
    from steadytd.learners import learners
    from steadytd.problems import problems

    found = problems() if kind is Kinds.problems else learners()
    if as_json:
        print_json([{"name": name, "summary": text} for name, text in found.items()])
    else:
        out.print(table(kind.value, ("name", "what it is"), list(found.items())))


def show(
    kind: Annotated[Kind, typer.Argument(help="problem or learner.")],
    name: Annotated[
        str, typer.Argument(help="Its name; for a problem also name:key=value or .npz.")
    ],
    kernel: Annotated[
        bool, typer.Option("--kernel", help="The loop that is compiled for the learner.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show one problem or learner in full.

    Examples:
      steadytd show problem baird

      steadytd show problem random_mdp:states=50,seed=3

      steadytd show learner perturbed_td

      steadytd show learner tdc --kernel
    """
    if kind is Kind.problem:
        _show_problem(name, as_json)
    else:
        _show_learner(name, kernel, as_json)


def _show_problem(name: str, as_json: bool) -> None:
    import numpy as np

    from steadytd.theory.dynamics import best_error

    p = find_problem(name)
    rank = int(np.linalg.matrix_rank(p.Phi))
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
        "d_mu": p.d_mu,
        "v_pi": p.v_pi,
        "largest_ratio": max(m.max_ratio for m in map(p.moments, range(p.n_policies))),
        "error_at_w0": p.error(np.tile(p.w0, (p.n_policies, 1)) if p.pi.ndim == 3 else p.w0),
        "best_error": float(np.mean([best_error(p, k) for k in range(p.n_policies)])),
    }
    if as_json:
        print_json({**facts, "doc": p.doc})
        return
    print_prose(p.doc or p.name)
    rows = [(key.replace("_", " "), plain(_short(value))) for key, value in facts.items()]
    out.print(table("", ("quantity", "value"), rows[2:]))


def _short(value: object) -> str:
    import numpy as np

    if isinstance(value, np.ndarray) and value.ndim > 1 and value.size > 40:
        shape = " x ".join(map(str, value.shape))
        return f"{shape} numbers from {value.min():.5g} to {value.max():.5g}"
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=4, threshold=40, max_line_width=70)
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _show_learner(name: str, kernel: bool, as_json: bool) -> None:
    from steadytd.engine.block import Block
    from steadytd.learners import algorithm

    law = algorithm(name)
    if kernel:
        typer.echo((law.block or Block).source(law, False, False), nl=False)
        return
    params = [
        {"name": key, "meaning": p.doc, "range": p.rule, "default": p.default}
        for key, p in law.all_params.items()
    ]
    if law.variant_param:
        choices = list(law.variants)
        params.append(
            {
                "name": law.variant_param,
                "meaning": "form of the law",
                "range": " or ".join(choices),
                "default": choices[0],
            }
        )
    if as_json:
        print_json({"name": name, "summary": law.summary, "params": params, "doc": law.doc})
        return
    print_prose(law.doc)
    rows = [
        (p["name"], p["meaning"], p["range"], "required" if p["default"] is None else p["default"])
        for p in params
    ]
    out.print(table("Hyper-parameters", ("name", "meaning", "range", "default"), rows))

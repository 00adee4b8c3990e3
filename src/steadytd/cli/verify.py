"""`steadytd verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steadytd.base.errors import InputError
from steadytd.cli.console import out, print_json
from steadytd.cli.experiments import Json


def verify(
    file: Annotated[Path, typer.Argument(help="A proof, written by certify --proof.")],
    as_json: Json = False,
) -> None:
    """Check a proof with exact fractions, from the problem in the file.

    The same check without this library: python verify.py proof.json, where verify.py is
    steadytd/theory/proof/verify.py, a file of under 100 lines.

    Examples:
      steadytd certify three_state --eta 0.5 --proof proof.json

      steadytd verify proof.json
    """
    from steadytd.theory.proof.verify import verify as check

    try:
        proved = check(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"{file} proves nothing: {error}.") from None
    if as_json:
        print_json({"file": str(file), "proved": proved})
        return
    out.print(f"proved: {proved}.", highlight=False, markup=False, soft_wrap=True)

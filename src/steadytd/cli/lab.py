"""`steadytd lab`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from steadytd.base.errors import InputError
from steadytd.cli.console import WHOLE, out


def lab(
    problem: Annotated[
        list[str] | None,
        typer.Option("--problem", help="Your own problem (.npz), or name:key=value; repeatable."),
    ] = None,
    law: Annotated[
        list[Path] | None,
        typer.Option("--law", help="A Python file that defines laws; it is run. Repeatable."),
    ] = None,
    port: Annotated[int, typer.Option(**WHOLE, help="Port; 0 takes any free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    file: Annotated[
        Path | None, typer.Option("--out", help="Write the page to this file and stop.")
    ] = None,
) -> None:
    """Open the lab: drag eta and watch learners and exact theory answer.

    The page runs the learners in the browser, with the same bits as
    `steadytd run`. It is served on 127.0.0.1 only, at an address that
    nobody can guess; Ctrl-C ends it.

    Examples:
      steadytd lab

      steadytd lab --problem mine.npz --law my_laws.py

      steadytd lab --out lab.html
    """
    from steadytd.lab.page import lab_page
    from steadytd.lab.server import LabServer
    from steadytd.learners import laws_in
    from steadytd.problems import problem as find_problem

    if not 0 <= port < 65536:
        raise InputError(f"--port must be from 0 to 65535, got {port}.")
    own_laws = [found for path in law or () for found in laws_in(path)]
    page = lab_page([find_problem(text) for text in problem or ()], own_laws)
    if file is not None:
        from steadytd.base.files import write_whole

        write_whole(file, page)
        out.print(f"page: [bold]{file}[/]", highlight=False, soft_wrap=True)
        return
    try:
        server = LabServer(page, port)
    except OSError as error:
        raise InputError(
            f"port {port} cannot be used ({error.strerror}); leave out --port to take a free one."
        ) from error
    out.print(f"lab: [bold]{server.address}[/]   (Ctrl-C ends it)", highlight=False, soft_wrap=True)
    if not no_open:
        webbrowser.open(server.address)
    with server:
        server.serve_forever()

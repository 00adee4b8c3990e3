"""Files of figures: SVG, PNG and PDF from descriptions in Vega-Lite, by several processes.

The drawing library holds Python's lock while it works, so threads do not help. This file is also
the program of the processes: with a list of (description, path without ending) as JSON on its
standard input it writes the files, with the word `script` it prints the script that draws in
pages. It imports nothing of this package, to start at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FORMATS = ("svg", "png", "pdf")
SHARPNESS = 1.5  # pixels per point of a PNG
FEW = 4  # figures that one process draws sooner than two
PROCESSES = 4  # at most


def drawn(text: str) -> dict[str, bytes]:
    """The files of a description, by their endings."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(text)
    png = vl_convert.svg_to_png(svg, scale=SHARPNESS)
    return {"svg": svg.encode(), "png": png, "pdf": vl_convert.svg_to_pdf(svg)}


def draw_files(texts: dict[str, str], directory: Path) -> None:
    """Write NAME.svg, NAME.png and NAME.pdf for each name and description."""
    tasks = [(text, str(directory / name)) for name, text in texts.items()]
    workers = min(PROCESSES, os.cpu_count() or 1, len(tasks) // 2)
    if len(tasks) < FEW or workers < 2:
        _write(tasks)
        return
    parts = [tasks[i::workers] for i in range(workers)]
    running = [_started(part) for part in parts[1:]]
    try:
        _write(parts[0])
    finally:
        codes = [process.wait() for process in running]
    for part, code in zip(parts[1:], codes, strict=True):
        if code != 0:  # no process could be started, or it was ended: draw here
            _write(part)


def script() -> bytes:
    """The script that draws in pages, put together by another process: it takes seconds."""
    command = [sys.executable, "-I", __file__, "script"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout if done.returncode == 0 else _script()


def _script() -> bytes:
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").encode()


def _started(tasks: list[tuple[str, str]]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", __file__], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    try:
        with process.stdin as channel:
            channel.write(json.dumps(tasks).encode())
    except BrokenPipeError:  # it has ended already; its code says so
        pass
    return process


def _write(tasks: list[tuple[str, str]]) -> None:
    for text, stem in tasks:
        for ending, content in drawn(text).items():
            Path(f"{stem}.{ending}").write_bytes(content)


if __name__ == "__main__":
    if sys.argv[1:] == ["script"]:
        sys.stdout.buffer.write(_script())
    else:
        _write(json.load(sys.stdin))

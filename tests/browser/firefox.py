"""The system's Firefox, headless, spoken to in Marionette, the protocol that it carries itself."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("firefox-esr", "firefox")
PATIENCE = 120.0  # seconds: for the start of the browser, and for a page


def executable() -> str | None:
    """Where the browser is, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Session:
    """One window. A message is [0, number, command, parameters], after its length and a colon."""

    def __init__(self, port: int) -> None:
        self.wire = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.number = 0
        self._receive()  # its greeting
        self.send("WebDriver:NewSession")

    def send(self, command: str, **parameters: Any) -> Any:
        """The answer to a command."""
        self.number += 1
        text = json.dumps([0, self.number, command, parameters]).encode()
        self.wire.sendall(b"%d:%s" % (len(text), text))
        _, number, error, answer = self._receive()
        assert number == self.number
        assert error is None, error
        return answer

    def _receive(self) -> Any:
        size = b""
        while not size.endswith(b":"):
            size += self._some(1)
        left, parts = int(size[:-1]), list[bytes]()
        while left:
            parts.append(self._some(min(left, 65_536)))
            left -= len(parts[-1])
        return json.loads(b"".join(parts))

    def _some(self, size: int) -> bytes:
        found = self.wire.recv(size)
        assert found, "Firefox has closed the connection"
        return found

    def value_of(self, expression: str) -> Any:
        """What a JavaScript expression gives in the page; its globals are those of `window`."""
        script = f"return JSON.stringify({expression})"
        answer = self.send("WebDriver:ExecuteScript", script=script, args=[])
        return json.loads(answer["value"])

    def wait_for(self, expression: str) -> None:
        """Until an expression is true."""
        until = time.monotonic() + PATIENCE
        while not self.value_of(expression):
            assert time.monotonic() < until, f"never true: {expression}"
            time.sleep(0.1)


@contextmanager
def opened(address: str) -> Iterator[Session]:
    """A page at an address, in a browser with an empty profile."""
    browser = executable()
    assert browser is not None
    with tempfile.TemporaryDirectory() as profile:
        (Path(profile) / "user.js").write_text('user_pref("marionette.port", 0);\n')
        command = [browser, "--headless", "--marionette", "--no-remote", "--profile", profile]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
            try:
                session = Session(_port(Path(profile) / "MarionetteActivePort"))
                with session.wire:
                    session.send("WebDriver:Navigate", url=address)
                    yield session
                    with suppress(AssertionError, OSError):
                        session.send("Marionette:Quit", flags=["eForceQuit"])
            finally:
                process.terminate()


def _port(file: Path) -> int:
    """The port that the browser has chosen, written when it listens."""
    until = time.monotonic() + PATIENCE
    while not (file.exists() and file.read_text().strip()):
        assert time.monotonic() < until, "Firefox does not start"
        time.sleep(0.1)
    return int(file.read_text())

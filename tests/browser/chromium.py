"""A real browser for tests: Playwright from PyPI drives the system's Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str:
    """Where the browser is; a clear failure if there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found is not None, "no Chromium found; `make test-browser` says how to install it"
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser, for several pages."""
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=executable(), args=FLAGS)
        yield found
        found.close()


@contextmanager
def shown(chromium: Browser, address: str, width: int = 1280, **options: Any) -> Iterator[Page]:
    """A page at an address; any error on its console fails the test at the end."""
    faults: list[str] = []
    page = chromium.new_page(viewport={"width": width, "height": 900}, **options)
    page.set_default_timeout(60_000)
    page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(address)
    yield page
    page.close()
    assert faults == []


@contextmanager
def opened(address: str, width: int = 1280, **options: Any) -> Iterator[Page]:
    """A page at an address, in a browser of its own."""
    with browser() as chromium, shown(chromium, address, width, **options) as page:
        yield page


if __name__ == "__main__":  # whether there is a browser that starts: `make test-browser` asks
    with browser() as found:
        print("browser:", executable(), found.version)

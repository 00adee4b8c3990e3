"""A real browser for tests: Playwright from PyPI drives the system's Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, sync_playwright

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
def opened(address: str, width: int = 1280, **options: Any) -> Iterator[Page]:
    """A page at an address; any error on its console fails the test at the end."""
    faults: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=executable(), args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": 900}, **options)
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(address)
        yield page
        browser.close()
    assert faults == []

"""What holds for all rooms."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Modules and tests live as long as the process: no need to look for garbage among them."""
    gc.collect()
    gc.freeze()

"""Whether this is `make test` or `make test-all`; `compile_all` asks before pytest is installed."""

from __future__ import annotations

import os


def everything() -> bool:
    """Whether this is `make test-all`, which sets the variable."""
    return bool(os.environ.get("STEADYTD_TEST_ALL"))

"""Pages are drawn lightly in this room."""

from __future__ import annotations

from tests.support.light_pages import light_pages

__all__ = ["light_pages"]

"""The library with a changed module, as far as `base.identity` can see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from steadytd.base import identity, source

CACHED = (identity._modules, source.closure, source.imports_of)


@contextmanager
def changed(*modules: str, text: str = "\n# changed\n") -> Iterator[None]:
    """Modules of ours with a text added at their end."""
    plain = source.text_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "text_of", lambda name: plain(name) + text * (name in modules))
        for function in CACHED:
            function.cache_clear()
        try:
            yield
        finally:
            for function in CACHED:
                function.cache_clear()

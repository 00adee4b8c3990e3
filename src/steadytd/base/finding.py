"""A finding: what some numbers mean, in plain words. Every room uses this one record."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Level = Literal["warning", "note"]


@dataclass(frozen=True)
class Finding:
    """A code for programs, a sentence for people, the numbers behind it, and a remedy.

    With a `warning` the answer may be wrong, with a `note` it is not; findings of a certificate
    have no level. `target` is empty where a finding concerns everything.
    """

    code: str
    target: str = ""
    level: Level | None = None
    text: str = ""
    remedy: str = ""
    numbers: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; without target, level and remedy where there is no level."""
        if self.level is None:
            return {"code": self.code, "text": self.text, "numbers": self.numbers}
        return asdict(self)

    def __str__(self) -> str:
        about = f" [{self.target}]" if self.target else ""
        return f"{self.code}{about}: {self.text} {self.remedy}".rstrip()

# Only what this project uses.
from typing import Any

class Type:
    def __init__(self, name: str) -> None: ...
    def __call__(self, *args: Any) -> Any: ...

void: Any
intp: Any
float64: Any

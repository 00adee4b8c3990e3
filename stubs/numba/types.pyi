# Only what this project uses.
from typing import Any

class Type:
    def __init__(self, name: str) -> None: ...
    def __call__(self, *args: Any) -> Any: ...

class Integer(Type): ...
class Dispatcher(Type): ...

class Array(Type):
    def __init__(
        self, dtype: Any, ndim: int, layout: str, *, readonly: bool = ..., aligned: bool = ...
    ) -> None: ...

none: Any
void: Any
int32: Any
int64: Any
intp: Any
float64: Any

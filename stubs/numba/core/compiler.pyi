from typing import Any

class Compiler:
    state: Any
    def define_pipelines(self) -> object: ...

class CompileResult:
    def _reduce(self) -> tuple[Any, ...]: ...
    @classmethod
    def _rebuild(cls, context: Any, *parts: Any) -> CompileResult: ...

from typing import Any

class Compiler:
    state: Any
    def define_pipelines(self) -> object: ...

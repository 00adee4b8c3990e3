from types import TracebackType

class threadpool_limits:
    def __init__(self, limits: int, user_api: str) -> None: ...
    def __enter__(self) -> threadpool_limits: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

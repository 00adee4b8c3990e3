"""Reading ahead: the next batch is read while the present one is worked on."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class _Failed(NamedTuple):
    error: BaseException


class _Done:
    pass


def ahead(items: Iterator[T], depth: int = 2) -> Generator[T, None, None]:
    """The same items in the same order, made in another thread, at most `depth` in advance.

    An exception appears where the item would have. The thread ends when the iterator is closed or
    no longer used.
    """
    queue: Queue[T | _Failed | _Done] = Queue(maxsize=depth)
    closed = threading.Event()

    def put(item: T | _Failed | _Done) -> None:
        while not closed.is_set():
            with suppress(Full):
                queue.put(item, timeout=0.1)
                break

    def work() -> None:
        try:
            for item in items:
                put(item)
                if closed.is_set():
                    return
            put(_Done())
        except BaseException as error:
            put(_Failed(error))
        finally:
            if isinstance(items, Generator):
                items.close()  # a thread that it reads from in turn ends with it

    thread = threading.Thread(target=work, name="steadytd-log", daemon=True)
    thread.start()
    try:
        while True:
            item = queue.get()
            if isinstance(item, _Done):
                return
            if isinstance(item, _Failed):
                raise item.error
            yield item
    finally:
        closed.set()
        while True:
            try:
                queue.get_nowait()
            except Empty:
                break
        if thread is not threading.current_thread():  # where garbage is collected, by chance
            thread.join()

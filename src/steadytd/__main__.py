"""`python -m steadytd`, and the script `steadytd`: from the first moment on, Ctrl-C is an answer.

What is imported here is little, so that an interruption while the libraries load ends the process
without a word of Python's.
"""

import atexit
import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


def main() -> None:
    """Run a command; interrupted before it begins or after it ended, end at once."""
    heeded = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN  # not if started by nohup
    if heeded:
        signal.signal(signal.SIGINT, _stop)
        # at its very end Python gives up our handler, and the signal would kill what is done
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    from steadytd.cli import fault
    from steadytd.cli.main import main as run

    if heeded:
        sys.excepthook = fault.unhandled
        signal.signal(signal.SIGINT, fault.interrupt)
    try:
        run()
    except KeyboardInterrupt:  # where the command could not say it any more
        _stop(signal.SIGINT, None)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            _end()
        raise
    finally:
        if heeded:
            signal.signal(signal.SIGINT, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    os.write(2, b"interrupted.\n")
    os._exit(INTERRUPTED)


def _end() -> None:
    """End at once: threads and libraries that tidy up may take a minute, and files are whole."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # full, or closed
            continue
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()

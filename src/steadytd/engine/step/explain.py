"""Why a user's law cannot be compiled, in one sentence instead of the compiler's forty lines."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterator

import numpy as np

from steadytd.base.errors import InputError
from steadytd.engine.facts import CARRIED, STEP_FACTS
from steadytd.engine.law import Law

NAME = re.compile(r"NameError: name '(\w+)'")
GLOBAL = re.compile(r"Untyped global name '(\w+)'")
LINE = re.compile(r"^(?!Failed in|During|File|No implementation)\s*(\S.*)$", re.MULTILINE)
TRIAL = 0.5  # every argument of a trial call


def law_error(law: Law, error: Exception) -> InputError:
    """The sentence: an unknown name, nothing returned, an array, the wrong number of numbers."""
    found = NAME.search(str(error))
    if found:
        known = (*STEP_FACTS, *CARRIED, *law.products, *law.all_params, *law.memory)
        close = difflib.get_close_matches(found[1], known, n=1)
        hint = f"; did you mean '{close[0]}', as an argument?" if close else "; define it."
        return InputError(f"law {law.name} uses '{found[1]}', which is nowhere defined{hint}")
    found = GLOBAL.search(str(error))
    if found:
        return InputError(
            f"law {law.name} uses '{found[1]}', which cannot be compiled; a law works with "
            "numbers, math and plain functions of numbers."
        )
    wanted = ", ".join(f"{v}: {' and '.join(parts)}" for v, parts in law.writes.items())
    count = sum(map(len, law.writes.values()))
    numbers = "one number" if count == 1 else f"{count} numbers"
    rule = f"it must return {numbers}: the multiples of what it adds ({wanted})"
    returned = _trial(law)
    if returned is None:
        return InputError(f"law {law.name} returns nothing; {rule}. Is a `return` missing?")
    if isinstance(returned, np.ndarray):
        return InputError(
            f"law {law.name} returns an array of shape {returned.shape}; {rule}. Vectors are named "
            "in `writes`, and inner products are arguments, such as w_x."
        )
    given = len(list(_numbers(returned)))
    if given != count and isinstance(returned, float | int | tuple | np.number):
        return InputError(f"law {law.name} returns {given}; {rule}.")
    lines = LINE.findall(str(error)) or [str(error)]
    return InputError(
        f"law {law.name} cannot be compiled: {lines[0].strip().rstrip('.')}. Use numbers, math and "
        "plain Python only; see docs/laws.md."
    )


def _trial(law: Law) -> object:
    """What the law returns, called as plain Python; a text where that fails."""
    given = dict.fromkeys(inspect.signature(law.update).parameters, TRIAL)
    try:
        with np.errstate(all="ignore"):
            return law.update(**given)
    except Exception as error:  # whatever it is, the compiler's own sentence says more
        return str(error)


def _numbers(returned: object) -> Iterator[object]:
    if isinstance(returned, tuple | list):
        for one in returned:
            yield from _numbers(one)
    else:
        yield returned

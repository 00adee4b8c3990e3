"""Which cure is the cheapest, in a sentence with its reason."""

from __future__ import annotations

from steadytd.base.finding import Finding
from steadytd.base.wording import listed
from steadytd.theory.analysis import Analysis
from steadytd.theory.cures.table import LOUD, Treatment, equals

NOISY = 10.0  # times the noise without cure, from which on it is said what that costs


def cheapest_cure(c: Analysis, found: tuple[Treatment, ...]) -> Finding:
    """The cure of least error; among those within 5 % of it the fastest at equal noise.

    There is always one: perturbed TD, without traces, has a clear penalty and finite variance.
    """
    best, *others = equals(found)
    take, noise = best.best, best.cure.scatter(best.best or 0.0)
    text = f"the cheapest cure is {best.title} with {best.cure.amount} = {take:.4g}"
    if c.td_stable:
        text = f"no cure is needed for a stable mean. Of those compared, {text}"
    text += f": its fixed point has error {best.error:.4g}"
    if others:
        names = listed([t.title for t in others])
        text += (
            f", and of the {len(others) + 1} whose error is within 5 % of the least it is the "
            f"fastest at equal noise (the other{'s' if len(others) > 1 else ''}: {names})"
        )
    else:
        text += ", and with the amount to take no other cure of bearable noise is within 5 % of it"
    text += f". The noise of its updates is {noise:.3g}; without cure it is {plain(found):.3g}."
    if noise is not None and noise >= NOISY * plain(found):
        more = (noise / plain(found)) ** 2
        text += f" To average that out takes {more:.2g} times as many steps."
    loud = [t for t in found if t.finite and t.loud and (t.error or 0.0) < (best.error or 0.0)]
    if loud and not best.loud:
        names = listed([f"{t.title} {t.error:.4g}" for t in loud])
        text += f" Not counted, with over {LOUD:g} times the noise without cure: {names}."
    return Finding(
        "cheapest_cure",
        text=text,
        numbers={
            "cure": best.cure.name,
            "settings": dict(best.cure.settings),
            "amount": best.cure.amount,
            "best": take,
            "error": best.error,
            "noise": noise,
            "rate": best.rate,
            "equal": [t.title for t in others],
        },
    )


def plain(found: tuple[Treatment, ...]) -> float:
    """The noise of updates that are multiplied by rho alone."""
    return found[0].cure.setting.scatter

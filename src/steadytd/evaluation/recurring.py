"""Does an unused column show that episodes belong together? One-way analysis of variance.

Sessions of one user are alike. If a column that nobody reads names users, its values come again in
many episodes, and between values returns differ by more than chance, or the effects of a target,
(W - 1) (G - mean G) with G the return and W the product of an episode's ratios. With n episodes of
k values and R the ranks of one of these (so that a few large ones do not decide),

    F = [sum_g n_g (mean_g R - mean R)^2 / (k - 1)] / [sum_e (R_e - mean_g(e) R)^2 / (n - k)]

has about Fisher's distribution where values do not matter. A column is found if a p-value is below
0.001, divided by the number of tests (Bonferroni).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from steadytd.base.arrays import Floats, Longs
from steadytd.base.errors import visible
from steadytd.evaluation.sample import PRODUCTS, RETURN, WEIGHT
from steadytd.logs.log import Log
from steadytd.logs.units import texts

LEVEL = 0.001  # probability of a false alarm among all tests of a log
FEWEST_VALUES = 20  # with fewer a column names kinds of episodes, hardly who was logged
EPISODES_PER_VALUE = 2.0  # on average, at least
MOST_COLUMNS = 20  # unused columns that are read, in the order of the log
READ_ROWS = 1 << 18  # at a time
SOMEONE = re.compile(
    r"(^|_)(user|customer|client|patient|account|member|person|subject|participant|visitor|player"
    r"|student|driver|household|device|uid)(_|\d|s?$)"
)  # names of columns that say who was logged


def recurring(unused: Mapping[str, Longs], outcomes: Floats) -> dict[str, Any]:
    """The facts of an unused column that explains returns or effects; empty if there is none."""
    if not unused or not len(outcomes):
        return {}
    from scipy.stats import rankdata

    G, W = outcomes[:, RETURN], outcomes[:, PRODUCTS:].T / outcomes[:, WEIGHT]
    ranks = [rankdata(one) for one in (G, *((W - 1.0) * (G - G.mean())))]
    found = []
    for name, values in unused.items():
        known = values >= 0
        p = min(p_value(values[known], one[known]) for one in ranks)
        if p < LEVEL / (len(unused) * len(ranks)):
            found.append((not is_someone(name), p, name))
    if not found:
        return {}
    kind, p, name = min(found)
    return {"unit_column": visible(name), "someone": float(not kind), "alike": 1.0, "alike_p": p}


def is_someone(name: str) -> bool:
    """Whether a column's name says who was logged.

    >>> is_someone("user_id"), is_someone("PatientID"), is_someone("item_id"), is_someone("users")
    (True, True, False, True)
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return SOMEONE.search(words) is not None


def p_value(values: Longs, ranks: Floats) -> float:
    """Of the F test; 1 where values do not come again often enough.

    >>> p_value(np.repeat(np.arange(30), 4), np.repeat(np.arange(30.0), 4) % 7) < 1e-6
    True
    """
    from scipy.special import fdtrc

    _, value, size = np.unique(values, return_inverse=True, return_counts=True)
    n, k = len(values), len(size)
    if k < FEWEST_VALUES or n < EPISODES_PER_VALUE * k:
        return 1.0
    ranks = ranks - ranks.mean()
    mean = np.bincount(value, ranks) / size
    between = float(size @ mean**2)
    within = float(ranks @ ranks) - between
    if between <= 0.0:
        return 1.0
    ratio = between / (k - 1) * (n - k) / within if within > 0.0 else np.inf
    return float(fdtrc(k - 1, n - k, ratio))


def _unused(log: Log) -> list[str]:
    """The columns of whole numbers and texts that nothing else is read from."""
    import pyarrow.types as pt

    kinds = {
        field.name: field.type
        for field in log.source.schemas[0]
        if field.name not in log.schema.used
    }
    tests = (pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_dictionary, pt.is_integer)
    found = [name for name, kind in kinds.items() if any(test(kind) for test in tests)]
    return [name for name in found if all(name in s.names for s in log.source.schemas)][
        :MOST_COLUMNS
    ]


def unused_values(log: Log, rows: Floats) -> dict[str, Longs]:
    """The values of unused columns in some rows, as numbers of distinct ones; -1 if one is missing.

    Where the log has a column of units, none is looked for.
    """
    import pyarrow as pa

    names = [] if log.unit is not None else _unused(log)
    if not names or not len(rows):
        return {}
    source = log.source.with_types({name: pa.string() for name in names})
    parts: list[list[Any]] = [[] for _ in names]
    for chunk in source.read(names, log.begin, log.end, READ_ROWS):
        low, high = np.searchsorted(rows, [chunk.log_row, chunk.log_row + chunk.batch.num_rows])
        places = pa.array(rows[low:high].astype(np.int64) - chunk.log_row)
        for part, name in zip(parts, names, strict=True):
            part.append(texts(chunk.batch.column(name)).take(places))
    numbers = (pa.chunked_array(part, pa.large_string()).combine_chunks() for part in parts)
    codes = (one.dictionary_encode().indices.fill_null(-1) for one in numbers)
    found = (one.to_numpy(zero_copy_only=False).astype(np.int64) for one in codes)
    return dict(zip(names, found, strict=True))

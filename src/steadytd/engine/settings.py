"""The settings of a learner: a law with its hyper-parameters filled in, as text and as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Self

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError, unknown
from steadytd.engine.law import AUTO, Law, Value


class Settings:
    """A law and its hyper-parameters, checked.

    `str(learner)` is its text form: the name, then every hyper-parameter that has no default or
    differs from it. Two learners are equal when their laws and hyper-parameters are.
    """

    __slots__ = ("_text", "algorithm", "law", "values")

    algorithm: Law
    law: Law
    values: Mapping[str, Value]
    _text: str

    def __init__(self, algorithm: Law, params: Mapping[str, object]) -> None:
        checked = _checked(algorithm, params)
        chosen = algorithm.choose(checked)
        shown = [
            f"{name}={plain(value)}"
            for name, value in checked.items()
            if value != _default(algorithm, name)
        ]
        object.__setattr__(self, "algorithm", algorithm)
        object.__setattr__(self, "law", chosen)
        object.__setattr__(self, "values", MappingProxyType(checked))
        object.__setattr__(self, "_text", f"{algorithm.name}:{','.join(shown)}".rstrip(":"))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a learner is immutable; use replace({name}=...)")

    def __identity__(self) -> tuple[object, ...]:
        return self.law, repr(dict(self.values))

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<learner {self._text}>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Settings)
            and self.algorithm is other.algorithm
            and self.values == other.values
        )

    def __hash__(self) -> int:
        return hash((self.algorithm, tuple(self.values.items())))

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        return self.algorithm.name

    @property
    def traced(self) -> bool:
        """Whether the learner keeps a trace vector (at lam = 0 it needs none)."""
        return self.law.traced(self.values)

    def window(self, name: str) -> int:
        """How many steps a trace or memory looks back; 1 where the law sets no window."""
        window = self.law.windows.get(name)
        return 1 if window is None else int(self.values[window.param]) + window.more

    @property
    def every(self) -> int:
        """The learner moves its vectors in one of so many steps."""
        return int(self.values[self.law.every]) if self.law.every else 1

    @property
    def windows(self) -> tuple[int, ...]:
        """All windows of the law, in order."""
        return tuple(self.window(name) for name in self.law.windows)

    @property
    def averaged(self) -> bool:
        """Whether the learner reports the mean of its weights over all steps."""
        return self.values.get("average", 0.0) != 0.0

    @property
    def schedule(self) -> tuple[float, float]:
        """The power and the delay of the step size; constant for a learner that has none."""
        return float(self.values.get("power", 0.0)), float(self.values.get("delay", 1.0))

    @property
    def automatic(self) -> list[str]:
        """The hyper-parameters that are still to be chosen by a model."""
        return [name for name, value in self.values.items() if value == AUTO]

    def require_numbers(self, where: str) -> None:
        """Complain if a hyper-parameter is "auto" where no model is known."""
        for name in self.automatic:
            raise InputError(
                f"{self._text}: {name}=auto needs a known model, which {where} does not have; "
                f"give a number, for instance the one that certify recommends."
            )

    def first_vectors(self, w0: Floats) -> Floats:
        """The vectors [vector, d] before the first step: w at w0, others as the law says."""
        vectors = np.zeros((len(self.law.vectors), len(w0)))
        vectors[0] = w0
        for name, param in self.law.starts.items():
            vectors[self.law.vectors.index(name)] = float(self.values[param]) * w0
        return vectors

    def first_y(self, w0: Floats) -> Floats:
        """The vectors, one below the other, and the scalars before the first step."""
        return np.append(self.first_vectors(w0), np.zeros(len(self.law.scalars)))

    def replace(self, **params: object) -> Self:
        """The same algorithm with some hyper-parameters changed."""
        return type(self)(self.algorithm, {**self.values, **params})


def plain(value: Value) -> str:
    """A number in the shortest form that reads back the same: 1 for 1.0, 1e-5 for 1e-05.

    >>> plain(1.0), plain(1e-4), plain(1e-5), plain("outside")
    ('1', '0.0001', '1e-5', 'outside')
    """
    if isinstance(value, str):
        return value
    if value == int(value) and abs(value) < 1e16:
        return str(int(value))
    return repr(value).replace("e-0", "e-")


def parse_params(owner: str, text: str) -> dict[str, str]:
    """`key=value,key=value` as a dictionary of texts."""
    params: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = (t.strip() for t in part.partition("="))
        if not (key and equals and value):
            raise InputError(f"{owner}: expected key=value, got '{part}'.")
        if key in params:
            raise InputError(f"{owner}: {key} is given twice.")
        params[key] = value
    return params


def _default(algorithm: Law, name: str) -> Value | None:
    if name == algorithm.variant_param:
        return variant_names(algorithm)[0]
    return algorithm.all_params[name].default


def variant_names(algorithm: Law) -> tuple[str, ...]:
    """The values of the variant parameter, the default one first."""
    return tuple(algorithm.variants)


def _instead(name: str, names: Sequence[str]) -> str:
    """What to write for a parameter that papers have, and a learner has in another form."""
    if name == "beta" and "ratio" in names:
        return "The second step size is ratio alpha: for a step size beta write ratio = beta/alpha."
    return ""


def _checked(algorithm: Law, params: Mapping[str, object]) -> dict[str, Value]:
    known = algorithm.all_params
    names = [*known, algorithm.variant_param] if algorithm.variant_param else [*known]
    for name in params:
        if name not in names:
            raise unknown(f"parameter of {algorithm.name}:", name, names, _instead(name, names))
    checked: dict[str, Value] = {}
    for name, param in known.items():
        value = params.get(name, param.default)
        if value is None:
            raise InputError(
                f"{algorithm.name} needs {name} ({param.doc}, {param.rule}); "
                f"write for instance '{algorithm.name}:{name}=...'."
            )
        checked[name] = param.check(algorithm.name, name, value)
    if algorithm.variant_param:
        choices = variant_names(algorithm)
        chosen = str(params.get(algorithm.variant_param, choices[0]))
        if chosen not in choices:
            raise unknown(f"{algorithm.variant_param} of {algorithm.name}:", chosen, choices)
        checked[algorithm.variant_param] = chosen
        for name, param in algorithm.choose(checked).params.items():  # its range may be narrower
            checked[name] = param.check(f"{algorithm.name} with {chosen}", name, checked[name])
    return checked

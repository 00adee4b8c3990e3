"""A law: one learning algorithm, as scalar arithmetic that the engine turns into a compiled loop.

A linear TD algorithm changes its vectors by a few multiples of a few vectors, for instance

    w <- w + alpha delta z,      z <- rho (gamma lam z + x),

and the multiples depend only on inner products, the reward, the ratio rho, the discounts and the
hyper-parameters. A law is the function that computes those multiples. **Its argument names say what
it needs**, and the engine supplies exactly that:

======================================  =====================================================
`reward, rho, gamma, gamma_next`        this step's; `gamma` is the discount of the current state,
                                        0 at the first step of an episode, however the last ended
`rho_prev, pi, mu, pi_prev, mu_prev`    the previous ratio; probabilities of the action taken
`interest`                              interest in the current state (1 unless a problem says so)
`peak_min, peak_max`                    least and largest max(pi, mu) over all states and actions
`alpha`                                 the step size at this step
any hyper-parameter or memory           by its own name
`w_x, w_x_next, h_x, h_z, ...`          inner product of a vector with x, x_next or a trace
`x_x, x_x_next, z_x, z_z, h_h, ...`     the same of features, traces or vectors with each other
======================================  =====================================================

The function of a trace may ask for inner products too: those before the trace moves on.

A law with a step size of its own for every feature says with `each` what becomes of the entries of
its vectors: see `Entries` and `Total`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from steadytd.base.arrays import Floats, repeated
from steadytd.base.declared import by_name, require_functions
from steadytd.base.errors import InputError, unknown
from steadytd.engine.facts import CARRIED, STEP_FACTS

Function = Callable[..., Any]
Value = float | str
AUTO = "auto"
RATIOS = frozenset({"rho", "rho_prev", "pi", "mu", "pi_prev", "mu_prev", "peak_min", "peak_max"})

BY_NAME = ("writes", "params", "traces", "memory", "maps")  # options of a law by name


class BlockKind(Protocol):
    """What a law with blocks of its own names: a class such as `block.Block`."""

    def __call__(self, learners: Sequence[Any], w0: Floats) -> Any:
        """A block of learners that start at `w0`."""

    def program(self, law: Law, traced: bool, averaged: bool) -> Any:
        """What one step of such a block does."""

    def source(self, law: Law, traced: bool, averaged: bool) -> str:
        """The source of the loop that advances such a block."""


@dataclass(frozen=True)
class Param:
    """A hyper-parameter: its meaning, range and default (`None`: the user must give it)."""

    doc: str
    default: Value | None = None
    low: float = -math.inf
    high: float = math.inf
    above: bool = False  # low itself is excluded
    whole: bool = False
    auto: bool = False  # "auto" lets the model choose, where it is known
    word: str = ""  # may be given instead of a number; to the compiled loop it is NaN
    cure: bool = False  # some amounts of it may make an unstable mean update stable

    def check(self, owner: str, name: str, value: object) -> Value:
        """The value as a float, or an error that names the parameter, the rule and the value."""
        if self.auto and value == AUTO:
            return AUTO
        if self.word and value == self.word:
            return self.word
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            or_word = "".join(f" or {word}" for word in self.words)
            raise InputError(f"{owner}: {name} must be a number{or_word}, got {value!r}.") from None
        inside = self.low < number if self.above else self.low <= number
        if self.whole and not number.is_integer():
            raise InputError(
                f"{owner}: {name} ({self.doc}) must be a whole number, got {number:g}."
            )
        if not (math.isfinite(number) and inside and number <= self.high):
            raise InputError(f"{owner}: {name} ({self.doc}) must be {self.rule}, got {number:g}.")
        return number

    def inside(self, share: float) -> float:
        """A number that the parameter may have, of size 1 if it can: `share` of the way."""
        low = max(self.low, min(0.0, self.high - 1.0))
        number = low + share % 1.0 * (min(self.high, low + 1.0) - low)
        return float(math.ceil(number)) if self.whole else number

    @property
    def words(self) -> list[str]:
        """What may be given instead of a number."""
        return [AUTO] * self.auto + [self.word] * bool(self.word)

    @property
    def rule(self) -> str:
        """The range in words."""
        or_word = "".join(f", or {word}" for word in self.words)
        low = f"> {self.low:g}" if self.above else f">= {self.low:g}"
        if math.isinf(self.high):
            return ("a finite number" if math.isinf(self.low) else low) + or_word
        return f"{low} and <= {self.high:g}{or_word}"


ALPHA = Param("step size", low=0.0, above=True)
LAM = Param("trace decay", default=0.0, low=0.0, high=1.0)
RATIO = Param("second step size / alpha", default=10.0, low=0.0, above=True)
AUTO_RATIO = replace(RATIO, auto=True)
GENERAL = {
    "power": Param("decay of the step size, alpha / (1 + t/delay)^power", default=0.0, low=0.0),
    "delay": Param("steps before the step size decays", default=1.0, low=0.0, above=True),
    "average": Param(
        "1: report the mean of all weights so far, 0: the last", 0.0, low=0.0, high=1.0, whole=True
    ),
}


class Window(NamedTuple):
    """How many steps, this one included, a trace or memory looks back: `param` + `more`."""

    param: str
    more: int = 0


class Entries(NamedTuple):
    """For every feature, what entries of vectors become: the numbers that a function returns.

    The function asks for entries by the names of their vectors, and for `x`, and for any number of
    the step; inner products are those before entries change. `over` says for which features: "x"
    for the active ones; a vector of the law for those where it is not 0 and the active ones, which
    promises that elsewhere nothing would change; and "" for all.
    """

    function: Function
    writes: tuple[str, ...]
    over: str = ""

    @property
    def name(self) -> str:
        """What a program calls the function."""
        return f"each_{getattr(self.function, '__name__', '?').strip('<>')}"


class Total(NamedTuple):
    """A number of the step: the sum over the active features of a function, as in `Entries`."""

    function: Function
    number: str

    @property
    def name(self) -> str:
        """What a program calls the function."""
        return f"term_{self.number}"


class Role(NamedTuple):
    """How the certificate treats a law.

    `place` orders the laws that it compares and may recommend (0: not compared). `solver` names
    the direct solver with the same fixed point. An `exhibit` is kept to explain published figures
    and is never drawn beside the others.
    """

    place: int = 0
    solver: str = ""
    exhibit: bool = False


ORDINARY = Role()


@dataclass(frozen=True)
class Law:
    """One algorithm. See the module's text for what `update` may ask for.

    `update` returns, for each vector of `writes`, the multiples of the named vectors to add to it:
    a number where one vector is named, a tuple where several are. A memory in `writes`, with the
    part "value", is given the number returned. A name with the part "1" is a *scalar*, a number
    that is learned beside the vectors: the number returned is added to it. `maps` are applied to
    every entry of a vector after the write. `windows` names the traces and memories that forget
    what is older than so many steps. `starts` names, for a vector that need not start at zero, the
    hyper-parameter whose multiple of w0 it starts at. `settled` names the vectors that must be at
    their fixed point for `expectation` to hold for the others (an update that multiplies two of its
    vectors is not linear in both); `first_order` says that it holds up to terms that vanish with
    alpha. `action_values` says that the law values pairs of a state and an action, with x_next the
    expected features of the next state's actions; it then needs an `ActionValues` problem.
    `average_reward` says that it learns differential values, and needs a problem with
    `average_reward`. A law with a `block` of its own is not a step along a gradient and has no step
    size; see `second_order` for what it returns. A law that moves its vectors only in the last of
    every so many steps says with `every` which hyper-parameter that number is; its `expectation` is
    a mean over all steps. `role` says how the certificate treats the law.

    With `each`, steps through the entries of vectors (and sums of them) come after `update`, in
    their order, and only they change vectors. `update` then returns numbers for them: `writes` has
    each with the part "number". `adapts` names the law whose mean update, times a step size for
    every feature, is this one's while its step sizes stay as they are.
    """

    name: str
    update: Function
    writes: Mapping[str, tuple[str, ...]]
    params: Mapping[str, Param] = field(default_factory=dict)
    traces: Mapping[str, Function] = field(default_factory=dict)
    memory: Mapping[str, Function | None] = field(default_factory=dict)  # None: only written
    maps: Mapping[str, Function] = field(default_factory=dict)
    each: tuple[Entries | Total, ...] = ()
    windows: Mapping[str, Window] = field(default_factory=dict)
    starts: Mapping[str, str] = field(default_factory=dict)
    settled: tuple[str, ...] = ()
    first_order: bool = False
    trace_param: str = "lam"
    every: str = ""
    idle_at_rho_zero: bool = False
    expectation: Function | None = None
    adapts: str = ""
    variant_param: str = ""
    variants: Mapping[str, Law | None] = field(default_factory=dict)  # None: this law itself
    action_values: bool = False
    average_reward: bool = False
    block: BlockKind | None = None
    role: Role = ORDINARY

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isprintable():
            raise InputError(f"the name of a law must be a printable string, got {self.name!r}.")
        require_functions(f"law {self.name}", self.functions)
        for name, param in self.params.items():
            if not isinstance(param, Param):
                raise InputError(f"law {self.name}: {name} must be a st.Param, got {param!r}.")
        names = [
            *self.all_params, *self.memory, *self.numbers, *self.totals, *self.vectors,
            *self.traces, *STEP_FACTS, *CARRIED,
        ]  # fmt: skip
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"law {self.name}: '{twice[0]}' names two things; rename one of them.")
        self._check_writes()
        self._check_windows()
        self._check_arguments()

    def _require(self, what: str, names: Iterable[str], known: Iterable[str]) -> None:
        """Every name is one of the known ones."""
        options = list(known)
        for name in names:
            if name not in options:
                raise unknown(f"{what} of law {self.name}:", name, options)

    def _check_writes(self) -> None:
        """Vectors are written, mapped and started; the first is w."""
        if next(iter(self.vectors), None) != "w":
            raise InputError(f"law {self.name}: the first vector in `writes` must be 'w'.")
        self._check_each()
        for vector, parts in self.writes.items():
            known = (*self.bases, *self.vectors)
            if vector in self.memory:
                known = ("value", "1") if self.memory[vector] is None else ("value",)
            known = ("number",) if vector in self.numbers else known
            self._require(f"vector in writes['{vector}']", parts or ("",), known)
            if vector in self.memory and self.idle_at_rho_zero:
                raise InputError(f"law {self.name} writes memory: leave out idle_at_rho_zero.")
        self._require("vector in maps", self.maps, self.vectors)
        self._require("vector in starts", self.starts, () if self.block else self.vectors[1:])
        self._require("hyper-parameter in starts", self.starts.values(), self.params)

    def _check_each(self) -> None:
        """Entries are changed in one way, and where the law keeps a list, of one vector."""
        changed = [v for v in self.writes if v not in (*self.memory, *self.numbers)]
        mixed = changed or self.traces or self.maps or self.block or self.idle_at_rho_zero
        if self.each and mixed:
            raise InputError(
                f"law {self.name} has each=: all that changes vectors must be there, traces too, "
                'and no step is idle; in `writes` are numbers ("number") and memory ("value").'
            )
        if self.numbers and not self.each:
            raise InputError(f"law {self.name}: a number in `writes` needs each=.")
        over = [one.over for one in self.each if isinstance(one, Entries)]
        self._require("vector in over", over, ("", "x", *self.vectors))
        if len({one for one in over if one not in ("", "x")}) > 1:
            raise InputError(f"law {self.name}: over must name the same vector in all of each=.")
        named = [one.name for one in self.each]
        if len(set(named)) < len(named):
            raise InputError(f"law {self.name}: two functions of each= have the same name.")

    def _check_windows(self) -> None:
        """What forgets is a trace or a memory that moves on; how much is a whole number >= 1."""
        if self.every and not self._counts(self.every):
            raise InputError(
                f"law {self.name}: every must name a hyper-parameter that is a whole number >= 1, "
                f"got {self.every!r}."
            )
        moving = [*self.traces, *(m for m, f in self.memory.items() if f is not None)]
        self._require("trace or memory in windows", self.windows, () if self.block else moving)
        for name, window in self.windows.items():
            if not self._counts(window.param, window.more):
                raise InputError(
                    f"law {self.name}: the window of {name} must be a whole hyper-parameter, "
                    f"at least 1 after adding {window.more}; got {window.param!r}."
                )

    def _counts(self, name: str, more: int = 0) -> bool:
        """Whether a hyper-parameter is a whole number, at least 1 with what is added to it."""
        param = self.params.get(name)
        return param is not None and param.whole and param.low + more >= 1

    def _check_arguments(self) -> None:
        """Functions ask for facts, hyper-parameters and memory; some for inner products, too."""
        common = {*STEP_FACTS, *CARRIED, *self.all_params, *self.memory} - {CARRIED["gamma"]}
        of_entries, known = [one.function for one in self.each], set(self.numbers)
        for one in self.each:  # a sum is known to those that come after it
            allowed = common | known | {"x", *self.vectors, *self.products}
            self._require("argument", arguments(one.function), allowed)
            known |= {one.number} if isinstance(one, Total) else set()
        for function in self.functions:
            if function in of_entries:
                continue
            allowed = common
            traced = self.block is None and function in self.traces.values()
            if function is self.update or traced:
                allowed = common | set(self.products)
            if function in self.maps.values():
                allowed = {"value", *self.all_params}
            self._require("argument", arguments(function), allowed)

    def __identity__(self) -> dict[str, object]:
        """All that decides what a run computes: values of params and a variant are a learner's."""
        no = {"adapts", "average_reward", "every", "expectation", "params", "variants"}
        no |= {option for option in ("each", "windows") if not getattr(self, option)}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in no}

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    @cached_property
    def vectors(self) -> tuple[str, ...]:
        """Names of the weight vectors; the first, `w`, is the value function's."""
        own = [name for name in self.writes if name not in (*self.memory, *self.numbers)]
        entries = (name for one in self.each if isinstance(one, Entries) for name in one.writes)
        found = dict.fromkeys((*own, *entries))
        return tuple(sorted(found, key=lambda name: bool(self.each) and name != "w"))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The numbers that `update` returns for the functions of entries."""
        return tuple(name for name, parts in self.writes.items() if parts == ("number",))

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """The numbers that are learned beside the vectors, such as a reward rate."""
        return tuple(name for name, parts in self.writes.items() if parts == ("1",))

    @cached_property
    def remembered(self) -> tuple[str, ...]:
        """The memory that is no scalar: what a step knows of the steps before."""
        return tuple(name for name in self.memory if name not in self.scalars)

    def basis(self, Q: Floats) -> Floats:
        """The columns of Q for every vector, and 1 for every scalar: a basis for y."""
        return repeated(Q, len(self.vectors), len(self.scalars))

    def places(self, d: int) -> dict[str, slice]:
        """Where the vectors, of length d, and then the scalars stand in y, one below the other."""
        sizes = [d] * len(self.vectors) + [1] * len(self.scalars)
        ends = list(accumulate(sizes, initial=0))
        return dict(zip((*self.vectors, *self.scalars), map(slice, ends, ends[1:]), strict=True))

    @cached_property
    def totals(self) -> tuple[str, ...]:
        """The sums of functions of entries."""
        return tuple(one.number for one in self.each if isinstance(one, Total))

    @cached_property
    def listed(self) -> str:
        """The vector that is 0 where the functions of entries have nothing to do; "" if none."""
        over = (one.over for one in self.each if isinstance(one, Entries))
        return next((name for name in over if name not in ("", "x")), "")

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The law's functions: update, traces, memory, maps, those of entries."""
        memory = (function for function in self.memory.values() if function is not None)
        entries = (one.function for one in self.each)
        return (self.update, *self.traces.values(), *memory, *self.maps.values(), *entries)

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """What a vector may be multiplied with: the features and the traces."""
        return ("x", "x_next", *self.traces)

    @cached_property
    def products(self) -> dict[str, tuple[str, str]]:
        """Every inner product by its argument name: `{"w_x": ("w", "x"), ...}`."""
        vectors, traces = self.vectors, tuple(self.traces)
        pairs = [(v, b) for v in (*vectors, *traces) for b in self.bases]
        pairs += [(v, other) for v in vectors for other in vectors]
        pairs += [("x", "x"), ("x", "x_next"), ("x_next", "x_next")]
        return {f"{left}_{right}": (left, right) for left, right in pairs}

    @cached_property
    def asked(self) -> frozenset[str]:
        """All that the law's functions ask for."""
        return frozenset(name for function in self.functions for name in arguments(function))

    @property
    def of_discounted_states(self) -> bool:
        """Whether it learns discounted values of states: nothing else is known to the lab."""
        return not (self.action_values or self.average_reward)

    @property
    def needs_ratio(self) -> bool:
        """Whether the law learns otherwise off-policy: it asks for rho or for probabilities."""
        return self.idle_at_rho_zero or bool(self.asked & RATIOS)

    @property
    def needs_policies(self) -> bool:
        """Whether a function of the law asks for the action's probabilities, not only rho."""
        return bool(self.asked & (RATIOS - {"rho", "rho_prev"}))

    @property
    def needs_peaks(self) -> bool:
        """Whether a function of the law asks for the extremes of max(pi, mu)."""
        return bool(self.asked & {"peak_min", "peak_max"})

    @cached_property
    def all_params(self) -> dict[str, Param]:
        """The law's own hyper-parameters, and those that every learner with a step size has."""
        return {"alpha": ALPHA, **self.params, **GENERAL} if self.block is None else {**self.params}

    @property
    def summary(self) -> str:
        """The first line of the algorithm's documentation."""
        return inspect.cleandoc(self.doc).partition("\n")[0]

    @property
    def doc(self) -> str:
        """The documentation: of the module that holds the law, or of the function itself."""
        own = self.update.__doc__ or ""
        module = inspect.getmodule(self.update) if self.in_library else None
        return own if module is None else module.__doc__ or own

    @property
    def in_library(self) -> bool:
        """Whether the law, with its closed form, is one of the library's own."""
        modules = [getattr(f, "__module__", "") for f in (self.update, self.expectation) if f]
        return all(str(module).startswith("steadytd.learners.") for module in modules)

    def choose(self, values: Mapping[str, Value]) -> Law:
        """The law itself, or the variant that the values ask for."""
        return self.variants.get(str(values.get(self.variant_param))) or self

    def traced(self, values: Mapping[str, Value]) -> bool:
        """Whether these hyper-parameters need a trace vector at all."""
        return bool(self.traces) and values.get(self.trace_param, 0.0) != 0.0


@lru_cache(maxsize=4096)
def arguments(function: Function) -> tuple[str, ...]:
    """The argument names of a law's function, in order."""
    return tuple(inspect.signature(function).parameters)


def call(function: Function, scope: Mapping[str, Any]) -> Any:
    """A law's function, given what it asks for by name."""
    return function(*(scope[name] for name in arguments(function)))


def accumulating_trace(rho: float, gamma: float, lam: float) -> tuple[float, float]:
    """z <- rho (gamma lam z + x): the multiples of z and of x."""
    return rho * gamma * lam, rho


def law(
    *,
    writes: Mapping[str, tuple[str, ...] | str],
    params: Mapping[str, Param] | None = None,
    traces: Mapping[str, Function] | None = None,
    memory: Mapping[str, Function | None] | None = None,
    maps: Mapping[str, Function] | None = None,
    each: Sequence[Entries | Total] = (),
    windows: Mapping[str, Window] | None = None,
    starts: Mapping[str, str] | None = None,
    settled: tuple[str, ...] = (),
    first_order: bool = False,
    trace_param: str = "lam",
    every: str = "",
    idle_at_rho_zero: bool = False,
    expectation: Function | None = None,
    adapts: str = "",
    variant_param: str = "",
    variants: Mapping[str, Law | None] | None = None,
    action_values: bool = False,
    average_reward: bool = False,
    block: BlockKind | None = None,
    role: Role = ORDINARY,
    name: str = "",
) -> Callable[[Function], Law]:
    """Turn a function into a `Law`, usable wherever the name of a learner is.

    >>> @law(writes={"w": "x"})
    ... def semi_gradient(reward, rho, gamma_next, w_x, w_x_next, alpha):
    ...     delta = reward + gamma_next * w_x_next - w_x
    ...     return alpha * rho * delta
    >>> semi_gradient.vectors
    ('w',)
    """
    given = locals()

    def decorate(function: Function) -> Law:
        called = name or getattr(function, "__name__", "?")
        named = {option: by_name(f"law {called}", option, given[option]) for option in BY_NAME}
        parts = named["writes"].items()
        named["writes"] = {v: (p,) if isinstance(p, str) else tuple(p or ()) for v, p in parts}
        scalars = {v: None for v, p in named["writes"].items() if p == ("1",)}
        named["memory"] = scalars | named["memory"]
        plain = ("windows", "starts", "variants")
        others: dict[str, Any] = {option: dict(given[option] or {}) for option in plain}
        others |= {"each": tuple(each), "name": called, "update": function}
        return Law(**{**given, **named, **others})

    return decorate

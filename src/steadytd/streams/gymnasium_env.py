"""Gymnasium environments: made, described, and set back to a state they were in."""

from __future__ import annotations

import copy
import enum
import types
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.arrays import Floats
from steadytd.base.errors import InputError

if TYPE_CHECKING:
    import gymnasium

    Env = gymnasium.Env[Any, Any]
    Factory = Callable[[], Env]
    Vector = Callable[[Any], Floats]

Snapshot = list[dict[str, Any]]


def require_gymnasium() -> None:
    """Complain if the package is missing."""
    try:
        import gymnasium
    except ImportError as error:
        raise InputError(
            "Gymnasium is not installed; install it with: pip install 'steadytd[gym]'"
        ) from error
    assert gymnasium.__version__


def factory(env: object) -> Factory:
    """A function that makes the environment, from its id or from a function that makes it."""
    require_gymnasium()
    import gymnasium

    if callable(env):
        return env
    if not isinstance(env, str):
        raise InputError(
            "env must be the id of a Gymnasium environment or a function that makes one "
            f"(each seed needs its own), got {env!r}; write for instance lambda: MyEnv()."
        )

    def make() -> Env:
        made: Env = gymnasium.make(env, disable_env_checker=True)
        return made

    try:
        make().close()
    except gymnasium.error.Error as error:
        raise InputError(f"Gymnasium cannot make '{env}': {error}") from error
    return make


def name_of(make: Factory) -> str:
    """The environment's id, or the name of its class."""
    env = make()
    env.close()
    return type(env.unwrapped).__name__ if env.spec is None else env.spec.id


def action_count(env: Env) -> int:
    """The number of actions, which must be numbered from 0."""
    from gymnasium.spaces import Discrete

    space = env.action_space
    if not isinstance(space, Discrete) or int(space.start) != 0:
        raise InputError(
            f"the actions must be a Discrete space that starts at 0, got {space}; "
            "discretise them with a wrapper."
        )
    return int(space.n)


def vectoriser(env: Env) -> Vector:
    """How an observation becomes a vector: a box flattened, a number alone, others by Gymnasium."""
    from gymnasium import spaces

    space = env.observation_space
    if isinstance(space, spaces.Box):
        return lambda obs: np.asarray(obs, dtype=np.float64).reshape(-1)
    if isinstance(space, spaces.Discrete):
        return lambda obs: np.array([obs], dtype=np.float64)
    if not space.is_np_flattenable:
        raise InputError(f"observations of the space {space} cannot be made vectors of numbers.")
    return lambda obs: np.asarray(spaces.flatten(space, obs), dtype=np.float64)


def layers(env: Env) -> list[Any]:
    """The wrappers from the outermost inwards, and the environment itself."""
    found: list[Any] = [env]
    while found[-1] is not env.unwrapped:
        found.append(found[-1].env)
    return found


def snapshot(env: Env) -> Snapshot | None:
    """All that changes in the environment and its wrappers; None if it has objects of other kinds.

    Spaces, functions and random generators are left where they are: the first two do not change,
    and the randomness of the future should not be that of the past.
    """
    result: Snapshot = []
    for layer in layers(env):
        attributes = {}
        for name, value in vars(layer).items():
            if name == "env" or _stays(value):
                continue
            if not _plain(value):
                return None
            attributes[name] = copy.deepcopy(value)
        result.append(attributes)
    return result


def restore_snapshot(env: Env, saved: Snapshot) -> None:
    """Set the environment back to a snapshot, which may be used again."""
    for layer, attributes in zip(layers(env), saved, strict=True):
        now = vars(layer)
        for name, value in attributes.items():
            if not _unchanged(now.get(name), value):
                now[name] = copy.deepcopy(value)


def reseed(env: Env, rng: np.random.Generator) -> None:
    """Give the environment a random generator of our own."""
    env.unwrapped.np_random = rng


def replay(env: Env, seed: int, actions: Sequence[int]) -> Any:
    """Begin the episode of `seed` again and take the same actions; the last observation."""
    obs, _ = env.reset(seed=seed)
    for action in actions:
        obs, *_ = env.step(action)
    return obs


def _unchanged(now: object, before: object) -> bool:
    """Whether a container still holds the same: some hold large tables, which are slow to copy."""
    if not (isinstance(before, dict | list | tuple) and type(now) is type(before)):
        return False
    try:
        return bool(now == before)
    except ValueError:  # it holds arrays
        return False


def _stays(value: object) -> bool:
    import gymnasium

    kinds = (
        gymnasium.Space,
        np.random.Generator,
        type,
        types.FunctionType,
        types.MethodType,
        types.BuiltinFunctionType,
        gymnasium.envs.registration.EnvSpec,
    )
    return isinstance(value, kinds)


def _plain(value: object) -> bool:
    """Whether a copy of the value is all there is to it."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufcSU"
    if isinstance(value, dict):
        return all(_plain(k) and _plain(v) for k, v in value.items())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return all(map(_plain, value))
    return value is None or isinstance(
        value, bool | int | float | complex | str | bytes | enum.Enum | np.generic
    )

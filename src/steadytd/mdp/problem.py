"""A finite off-policy prediction problem: validated, read-only, with its exact answers."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steadytd.base.arrays import Bools, Floats, Longs, frozen
from steadytd.base.display import InNotebooks
from steadytd.base.errors import InputError, visible
from steadytd.base.files import reading_arrays, write_arrays
from steadytd.mdp import chains, checks
from steadytd.mdp.moments import Moments
from steadytd.mdp.sparse import PARTS, from_parts, is_sparse, parts, values_of
from steadytd.mdp.stationary import stationary_distribution

ARRAYS = ("P", "r", "gamma", "mu", "pi", "Phi", "w0", "start", "interest")
LATER = ("active", "average_reward")  # missing in older files
TEXTS = ("name", "summary", "doc")
FORMAT = 1


class Problem(InNotebooks):
    """Evaluate the policy `pi` from a stream made by the policy `mu`, with features `Phi`.

    ========== ======================= ====================================================
    `P`        [s, a, s']              transition probabilities; or see below, sparse
    `r`        [s, a, s'] or [s, a]    rewards
    `gamma`    number, [s'], [s,a,s']  discount of a transition; 0 where an episode ends
    `mu`, `pi` [s, a]                  behaviour and target policy
    `Phi`      [s, k]                  features, one row per state; may be a SciPy sparse matrix
    `w0`       [k]                     start weights (default: zero)
    `start`    [s]                     distribution of the first state (default: `d_mu`)
    `interest` [s]                     weight of a state in the error and in ETD (default: 1)
    `active`   [s]                     where a learner updates (default: everywhere)
    ========== ======================= ====================================================

    With `average_reward=True` the stream has no end and no discount (gamma is 1). What is evaluated
    is `rate`, the mean reward per step under `pi`, and the differential values v = r - rate + P v.
    These are known up to a constant: `v_pi` has the mean 0 under d_mu, and the error of values is
    measured after the best constant is added to them.

    Several target policies on one stream: a leading policy axis on `pi` and, where they differ
    between the policies, on `r` [k, s, a, s'], `gamma` [k, s'] or [k, s, a, s'], `interest` and
    `active` [k, s]; the error is then the mean over the policies.

    In a state that is not active for a policy its learner does nothing, and the error does not
    count the state. Every step from an active state into another must have discount 0, so that no
    return reaches past the active states; `v_pi` elsewhere solves the same equation, but nothing
    depends on it.

    Of a large problem `P` is a list with one SciPy sparse matrix [s, s'] per action, `r` a number
    or [s, a], `gamma` a number or [s'], and all states are active. No matrix of all pairs of states
    is made: `st.certify` finds by iteration what it needs, and says how exactly (`docs/theory.md`).

    Everything is checked, copied and read-only. Bad input raises `InputError`. A sparse `Phi` stays
    sparse in a run, whatever the number of features; exact answers (`certify`) need dense matrices
    [k, k], and are refused where these do not fit into memory.
    """

    name: str
    summary: str
    doc: str
    P: Any  # Floats, or a tuple of SciPy sparse arrays
    r: Floats
    gamma: float | Floats
    mu: Floats
    pi: Floats
    Phi: Any  # Floats, or a SciPy sparse array
    w0: Floats
    start: Floats
    interest: Floats
    active: Bools
    average_reward: bool

    def __init__(
        self,
        *,
        name: str,
        P: Any,
        r: ArrayLike,
        gamma: ArrayLike,
        mu: ArrayLike,
        pi: ArrayLike,
        Phi: Any,
        w0: ArrayLike | None = None,
        start: ArrayLike | None = None,
        interest: ArrayLike | None = None,
        active: ArrayLike | None = None,
        average_reward: bool = False,
        summary: str = "",
        doc: str = "",
    ) -> None:
        given = vars(self)
        given.update(name=str(name), summary=summary or doc.partition("\n")[0], doc=doc)
        given["P"] = checks.transitions(P)
        S, A = (self.P[0].shape[0], len(self.P)) if self.sparse else self.P.shape[:2]
        given["mu"] = checks.probabilities("mu", mu, (S, A), "[s, a]")
        given["pi"] = checks.probabilities("pi", pi, (S, A), "[s, a]", several=True)
        checks.coverage(self.pi, self.mu)
        K = self.pi.shape[:-2]
        given["r"] = checks.rewards(r, K, S, A, sparse=self.sparse)
        discount = checks.discounts(gamma, K, S, A, sparse=self.sparse)
        given["gamma"] = float(discount) if discount.ndim == 0 else discount
        given["Phi"] = checks.features(Phi, S)
        given["w0"] = checks.start_weights(w0, self.n_features)
        given["interest"] = checks.interest(interest, K, S)
        given["active"] = checks.active(active, K, S)
        if self.sparse:
            checks.all_active(self.active)
        else:
            checks.ends_where_inactive(self.active, self.P, self.mu, self._discounts)
        given["average_reward"] = bool(average_reward)
        if self.average_reward:
            checks.undiscounted(discount, self.interest)
            self.moments().require_array("average_reward")
            _ = self.rate  # the target policy's chain has one
        start = self.d_mu if start is None else start
        given["start"] = checks.probabilities("start", start, (S,), "[s]")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a problem is read-only; make a new one with another {name}")

    def __identity__(self) -> dict[str, object]:
        """Every array; the texts are for readers."""
        later = LATER if self.average_reward else LATER[:1]
        found = {name: getattr(self, name) for name in (*ARRAYS, *later)}
        found |= {"P": [parts(one) for one in self.P]} if self.sparse else {}
        return found | ({"Phi": parts(self.Phi)} if is_sparse(self.Phi) else {})

    def __repr__(self) -> str:
        size = f"{self.n_states} states, {self.n_actions} actions, {self.n_features} features"
        return visible(f"<problem {self.name}: {size}>")

    @property
    def sparse(self) -> bool:
        """Whether P is one sparse matrix per action."""
        return isinstance(self.P, tuple)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return int(self.mu.shape[0])

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.mu.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.Phi.shape[1])

    @property
    def n_policies(self) -> int:
        """Number of target policies on the stream."""
        return 1 if self.pi.ndim == 2 else int(self.pi.shape[0])

    @property
    def base(self) -> Problem:
        """The problem whose stream is walked: this one (an `ActionValues` has another)."""
        return self

    @property
    def table(self) -> Any:
        """The feature table that a stream's rows refer to; it begins with one row per value."""
        return self.Phi

    @property
    def targets(self) -> Floats:
        """The exact values, [policy, row]."""
        return self.v_pi.reshape(self.n_policies, -1)

    def rows(self, s: Longs, a: Longs, s_next: Longs, policy: int) -> tuple[Longs, Longs]:
        """The rows of x and x_next of the transitions (s, a, s') in the table."""
        return s, s_next

    @cached_property
    def chain(self) -> Any:
        """The behaviour policy's chain [s, s'], an array or sparse."""
        if self.sparse:
            return chains.flow(self.P, self.mu)
        return np.einsum("sa,sat->st", self.mu, self.P)

    @cached_property
    def d_mu(self) -> Floats:
        """The stationary distribution of the behaviour policy's chain."""
        return frozen(self._stationary.value)

    @cached_property
    def _stationary(self) -> chains.Solution:
        if self.sparse:
            return chains.stationary(self.chain)
        return chains.Solution(stationary_distribution(self.chain), 0.0)

    def moments(self, policy: int = 0) -> Moments:
        """The exact matrices of one target policy: P_gamma, r_pi, A, b, G and their kin."""
        if not isinstance(policy, int | np.integer) or not 0 <= policy < self.n_policies:
            last = self.n_policies - 1
            which = f"from 0 to {last}" if last else "0: this problem has one"
            raise InputError(f"policy must be {which}, got {policy!r:.60}.")
        known: dict[int, Moments] = vars(self).setdefault("_moments", {})
        if policy not in known:
            known[policy] = self._make_moments(policy)
        return known[policy]

    @property
    def _discounts(self) -> Floats:
        full = (self.n_states, self.n_actions, self.n_states)
        full = full if self.sparse else self.r.shape
        return checks.per_transition(np.asarray(self.gamma), full)

    def active_in(self, policy: int = 0) -> Bools:
        """In which states, [s], the learner of one target policy updates."""
        return self.active[policy] if self.pi.ndim == 3 else self.active

    def _make_moments(self, policy: int) -> Moments:
        several, own = self.pi.ndim == 3, self.pi.ndim == 3 and not self.sparse
        gamma, r = self._discounts, self.r
        if self.sparse:
            r = np.broadcast_to(r[:, :, None], gamma.shape)
        active = self.active_in(policy)
        return Moments(
            P=self.P,
            mu=self.mu,
            features=self.Phi,
            d=self.d_mu * active,
            active=active,
            pi=self.pi[policy] if several else self.pi,
            r=r[policy] if own else r,
            gamma=gamma[policy] if own else gamma,
            interest=self.interest[policy] if several else self.interest,
            average_reward=self.average_reward,
            accuracy={"d_mu": self._stationary.error} if self.sparse else {},
        )

    @cached_property
    def v_pi(self) -> Floats:
        """The exact value function: [s], or [policy, s] with several target policies."""
        values = [self.moments(k).v_pi for k in range(self.n_policies)]
        return frozen(values if self.pi.ndim == 3 else values[0])

    @cached_property
    def rate(self) -> float | Floats:
        """The mean reward per step under the target policy, [policy] with several of them."""
        rates = [self.moments(k).rate for k in range(self.n_policies)]
        return frozen(rates) if self.pi.ndim == 3 else rates[0]

    def error_weights(self, policy: int = 0) -> Floats:
        """The weight of each state in the error: d_mu interest active, scaled to sum 1."""
        interest = self.interest[policy] if self.pi.ndim == 3 else self.interest
        weights = self.d_mu * interest * self.active_in(policy)
        total = weights.sum()
        if total == 0.0:
            raise InputError(
                f"problem {self.name}: no state that mu visits has interest > 0 (policy {policy}); "
                "give one of them interest > 0, and let it be active."
            )
        return np.asarray(weights / total)

    def error(self, w: ArrayLike) -> float | Floats:
        """sqrt(sum_s d_mu(s) (phi(s).w - v_pi(s))^2): a number, or one per row of w.

        With several target policies w is [..., policy, k] and the error their mean. With average
        reward a constant is added to the values, the best one.
        """
        d = np.stack([self.error_weights(k) for k in range(self.n_policies)])
        Phi = self.moments().compared if self.average_reward else self.Phi
        return value_error(w, Phi, self.targets, d, several=self.pi.ndim == 3)

    def save(self, path: str | Path) -> Path:
        """Save to an `.npz` file; `steadytd.load_problem` reads it back."""
        return write_arrays(Path(path), self.content(), compressed=True)

    def content(self) -> dict[str, NDArray[Any]]:
        """The arrays of a saved file, by name."""
        keys = [*TEXTS, *ARRAYS, *LATER]
        sparse = {}
        if self.sparse:
            keys.remove("P")
            each = enumerate(map(parts, self.P))
            sparse = {f"P_{a}_{name}": part for a, one in each for name, part in one.items()}
        if is_sparse(self.Phi):
            keys.remove("Phi")
            sparse |= {f"Phi_{name}": part for name, part in parts(self.Phi).items()}
        arrays = {key: np.array(getattr(self, key)) for key in keys}
        return {"format": np.array(FORMAT), **arrays, **sparse}


def value_error(
    w: ArrayLike, Phi: Any, targets: Floats, d: Floats, *, several: bool
) -> float | Floats:
    """The error of weights [..., k] against `targets`; `several`: [..., policy, k], their mean."""
    weights = np.asarray(w, dtype=np.float64)
    wanted = (len(targets), Phi.shape[1]) if several else (Phi.shape[1],)
    if weights.shape[weights.ndim - len(wanted) :] != wanted:
        shape = ", ".join(map(str, wanted))
        raise InputError(f"w must have shape (..., {shape}), got {weights.shape}.")
    difference = values_of(weights, Phi) - (targets if several else targets[0])
    rms = _weighted_norm(difference, d if several else d[0])
    result = rms.mean(axis=-1) if several else rms
    return float(result) if result.ndim == 0 else np.asarray(result)


def _weighted_norm(difference: Floats, weights: Floats) -> Floats:
    """sqrt(sum weights difference^2) over the last axis, without overflow."""
    counted = np.where(weights > 0.0, difference, 0.0)
    largest = np.abs(counted).max(axis=-1, keepdims=True)
    scale = np.where((largest > 0.0) & np.isfinite(largest), largest, 1.0)
    squares = (counted / scale) ** 2
    return np.asarray(scale[..., 0] * np.sqrt((weights * squares).sum(axis=-1)))


def load_problem(path: str | Path) -> Problem:
    """Read a problem that `Problem.save` wrote, and check it as if it were new."""
    source = Path(path)
    with reading_arrays(source, "problem") as file:
        content: dict[str, Any] = {key: file[key] for key in file.files}
    if "Phi_data" in content:
        content["Phi"] = _sparse_matrix(source, content, "Phi")
    if "P_0_data" in content:
        actions = range(sum(key.startswith("P_") and key.endswith("_data") for key in content))
        content["P"] = [_sparse_matrix(source, content, f"P_{a}") for a in actions]
    missing = [key for key in ("name", "format", *ARRAYS) if key not in content]
    if missing:
        raise InputError(f"'{source}' is not a saved problem: it lacks {', '.join(missing)}.")
    if not np.array_equal(content["format"], FORMAT):
        raise InputError(
            f"'{source}' has format {content['format']}, this version reads {FORMAT}; "
            "save it again with this version."
        )
    texts: dict[str, Any] = {key: str(content.get(key, "")) for key in TEXTS}
    arrays: dict[str, Any] = {key: content[key] for key in (*ARRAYS, *LATER) if key in content}
    return Problem(**texts, **arrays)


def _sparse_matrix(source: Path, content: dict[str, Any], key: str) -> Any:
    """A sparse matrix of a saved file."""
    try:
        found = from_parts(*(content[f"{key}_{name}"] for name in PARTS))
        found.check_format(full_check=True)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"'{source}' holds no sparse {key} whose parts fit together ({error})."
        ) from None
    return found

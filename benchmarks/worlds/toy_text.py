"""Gymnasium's toy text: FrozenLake, CliffWalking and Taxi by their tables, Blackjack by rules."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
from benchmarks.worlds.world import Dynamics, Floats
from gymnasium.envs.toy_text.cliffwalking import CliffWalkingEnv
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.envs.toy_text.taxi import TaxiEnv


def _table(env: Any, obs: Floats) -> Dynamics:
    """P, r and ends of an environment that states them as env.P[s][a]."""
    S, A = len(env.P), len(env.P[0])
    P, r, ends = np.zeros((S, A, S)), np.zeros((S, A, S)), np.zeros(S, dtype=bool)
    for s, a in product(range(S), range(A)):
        for p, after, reward, end in env.P[s][a]:
            r[s, a, after] = (r[s, a, after] * P[s, a, after] + p * reward) / (
                P[s, a, after] + p if p else 1.0
            )
            P[s, a, after] += p
            ends[after] |= end
    return Dynamics(P, r, ends, np.asarray(env.initial_state_distrib, dtype=float), obs)


@cache
def frozen_lake(side: int) -> Dynamics:
    """Slippery; the observation is (row, column)."""
    obs = np.array([divmod(s, side) for s in range(side * side)], dtype=float)
    return _table(FrozenLakeEnv(map_name=f"{side}x{side}", is_slippery=True), obs)


@cache
def cliff() -> Dynamics:
    """Cliff walking on 4 x 12 cells; stepping off costs 100 and leads back to the start."""
    obs = np.array([divmod(s, 12) for s in range(48)], dtype=float)
    return _table(CliffWalkingEnv(), obs)


@cache
def taxi() -> Dynamics:
    """500 states: (row, column, passenger, destination)."""
    obs = np.array([_taxi_obs(s) for s in range(500)], dtype=float)
    return _table(TaxiEnv(), obs)


def _taxi_obs(s: int) -> tuple[int, int, int, int]:
    s, destination = divmod(s, 4)
    s, passenger = divmod(s, 5)
    return (*divmod(s, 5), passenger, destination)


@cache
def blackjack() -> Dynamics:
    """An endless deck; states (sum 4 to 21, dealer's card, usable ace) and three ends."""
    cards = np.full(11, 1.0 / 13.0)
    cards[0], cards[10] = 0.0, 4.0 / 13.0
    states = list(product(range(4, 22), range(1, 11), (0, 1)))
    at = {x: i for i, x in enumerate(states)}
    S = len(states) + 3  # lost, drawn, won
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2, S))
    r[:, :, -3], r[:, :, -1] = -1.0, 1.0
    for (total, dealer, ace), s in at.items():
        for card in range(1, 11):
            new, soft = total + card, ace
            if card == 1 and new + 10 <= 21 and not ace:
                new, soft = new + 10, 1
            if new > 21 and soft:
                new, soft = new - 10, 0
            P[s, 1, S - 3 if new > 21 else at[new, dealer, soft]] += cards[card]
        final = _dealer(dealer, cards)
        P[s, 0, -3] = final[total + 1 :].sum()
        P[s, 0, -2] = final[total] if total >= 17 else 0.0
        P[s, 0, -1] = 1.0 - P[s, 0, -3] - P[s, 0, -2]
    start = np.zeros(S)
    for one, two, dealer in product(range(1, 11), repeat=3):
        ace = int(1 in (one, two))
        start[at[one + two + 10 * ace, dealer, ace]] += cards[one] * cards[two] * cards[dealer]
    P[-3:, :, -1] = 1.0
    ends = np.arange(S) >= S - 3
    return Dynamics(P, r, ends, start / start.sum(), np.array([*states, *[(0, 0, 0)] * 3], float))


def _dealer(card: int, cards: Floats) -> Floats:
    """Probabilities of the dealer's final sum (17 to 21; a bust is counted at index 0)."""
    final = np.zeros(32)
    todo = [(11 if card == 1 else card, int(card == 1), 1.0)]
    while todo:
        total, soft, p = todo.pop()
        if total > 21 and soft:
            total, soft = total - 10, 0
        if total >= 17:
            final[total if total <= 21 else 0] += p
            continue
        for drawn in range(1, 11):
            as_eleven = drawn == 1 and total + 11 <= 21
            new = total + (11 if as_eleven else drawn)
            todo.append((new, soft or int(as_eleven), p * cards[drawn]))
    return final

"""Worlds with real-valued observations that are set aside: nothing may be tuned on them.

Their dynamics are other than those of `continuous_development`, not the same with other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from benchmarks.worlds.simulated import (
    Column,
    Floats,
    Ints,
    OneStep,
    Random,
    Simulated,
    Step,
    mixed,
    sigmoid,
    soft,
    taken,
    turned,
)


class Glucose(Simulated):
    """Insulin through the day: meals by chance, insulin that works late; lows are dangerous."""

    discount, episodes, length = 0.98, 200, 72

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return (
            rng.normal(1.4, 0.3, n),
            rng.exponential(0.3, n),
            rng.exponential(0.2, n),
            np.zeros(n),
        )

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        sugar, insulin, meal, past = s
        eats = rng.random(len(a)) < 0.12
        meal = 0.75 * meal + eats * rng.gamma(3.0, 0.25, len(a))
        insulin, past = 0.6 * insulin + past, 0.35 * a
        pull = 0.30 * insulin * np.maximum(sugar, 0.2)
        sugar = (
            sugar + 0.3 * meal - pull + 0.05 * (1.5 - sugar) + 0.05 * rng.standard_normal(len(a))
        )
        sugar = np.clip(sugar, 0.2, 5.0)
        cost = np.log(sugar / 1.2) ** 2 + 3.0 * (sugar < 0.7)
        return (sugar, insulin, meal, past), -cost, np.zeros(len(a), dtype=bool)

    def policies(self, x: Floats) -> dict[str, Floats]:
        high = 1.2 * (x[0] - 1.6) - 0.5 * x[1]
        mu = soft(-high, 0.2, high, explore=0.15)
        high = 1.8 * (x[0] + 0.8 * x[2] - 1.5 * x[1] - 1.2)
        keen = soft(0.5 - high, 0.2, high - 0.5, explore=0.1)
        return {
            "behavior": mu,
            "meals": mixed(0.35, mu, keen),
            "strong": mixed(0.08, mu, soft(-1.0, 0.0, 1.0)),
        }


class Fishing(Simulated):
    """A quota of four sizes from a stock that regrows, or collapses: collapse ends it."""

    discount, episodes, length = 0.95, 250, 60

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(0.3, 1.2, n), rng.normal(0, 0.3, n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        fish, price = s
        caught = fish * (1.0 - np.exp(-0.15 * a))
        fish = fish - caught
        growth = 0.45 * fish * (1.0 - fish) * (fish / 0.15 - 1.0) / (fish / 0.15 + 1.0)
        fish = np.maximum(fish + growth, 0.0) * np.exp(0.12 * rng.standard_normal(len(a)))
        price = 0.8 * price + 0.2 * rng.standard_normal(len(a))
        reward = 10.0 * caught * np.exp(price) - 0.15 * a
        return (fish, price), reward, fish < 0.08

    def policies(self, x: Floats) -> dict[str, Floats]:
        z = 1.5 * (x[0] - 0.5)
        mu = soft(-z, 0.3, 0.2 + 0.5 * z, z, explore=0.15)
        z = 4.0 * (x[0] - 0.55) + 1.0 * x[1]
        escape = soft(-z, 0.0, 0.5 * z, z, explore=0.1)
        return {
            "behavior": mu,
            "escape": mixed(0.4, mu, escape),
            "greedy": mixed(0.3, mu, soft(0.0, 0.3, 0.8, 1.5)),
        }


class Crossing(Simulated):
    """Keep or switch the lights of a crossing of two roads; switching loses a turn. Endless."""

    discount, episodes, endless = 0.95, 10_000, True

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.exponential(3.0, n), rng.exponential(3.0, n), rng.choice([-1.0, 1.0], n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        north, east, green = s
        moved = a == 0
        north = (
            north
            + rng.poisson(0.9, len(a))
            - np.where((green > 0) & moved, np.minimum(north, 2.6), 0.0)
        )
        east = (
            east
            + rng.poisson(0.6, len(a))
            - np.where((green < 0) & moved, np.minimum(east, 2.6), 0.0)
        )
        north, east = np.minimum(north, 25.0), np.minimum(east, 25.0)
        cost = 0.1 * (north + east) + 0.01 * (north**1.5 + east**1.5)
        return (north, east, np.where(moved, green, -green)), -cost, np.zeros(len(a), dtype=bool)

    def policies(self, x: Floats) -> dict[str, Floats]:
        wants = 0.2 * (x[1] - x[0]) * x[2]
        mu = soft(1.0 - wants, wants, explore=0.1)
        served, other = np.where(x[2] > 0, x[0], x[1]), np.where(x[2] > 0, x[1], x[0])
        clears = soft(0.8 * (served - 1.0), 0.3 * other - 0.5, explore=0.05)
        return {
            "behavior": mu,
            "clears": mixed(0.5, mu, clears),
            "even": mixed(0.1, mu, soft(0.0, 0.0)),
        }


class Subscribers(Simulated):
    """Mail, coupon or nothing each month; subscribers spend with a heavy tail, and churn."""

    discount, episodes, length = 0.97, 500, 48

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.normal(0, 1, n), np.ones(n), rng.lognormal(0.0, 0.4, n), np.zeros(n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        content, recent, habit, bother = s
        buys = rng.random(len(a)) < sigmoid(
            0.6 * content - 0.5 * recent + np.array([0.0, 0.4, 1.1])[a] - 0.6
        )
        spent = (
            buys * habit * rng.lognormal(0.0, 0.8, len(a)) - 0.05 * (a > 0) - 0.35 * buys * (a == 2)
        )
        bother = 0.8 * bother + 0.5 * (a > 0)
        content = 0.95 * content + 0.15 * buys - 0.14 * bother + 0.15 * rng.standard_normal(len(a))
        recent = np.where(buys, 0.0, recent + 1.0)
        churns = rng.random(len(a)) < sigmoid(-0.8 * content + 0.15 * recent - 3.3)
        return (content, recent, habit, bother), spent, churns

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.5, 0.15 * x[1], 0.2 * x[1] - 0.6, explore=0.2)
        care = soft(
            0.8 + 0.5 * x[3], 0.1 * x[1] - 0.3, 0.7 * np.log(x[2]) + 0.2 * x[1] - 0.4, explore=0.1
        )
        return {
            "behavior": mu,
            "care": mixed(0.5, mu, care),
            "push": mixed(0.4, mu, soft(-1.0, 0.2, 1.2)),
        }


class Pole(Simulated):
    """Balance a pole on a cart: trigonometric dynamics, reward 1 a step until it falls."""

    discount, episodes, length = 0.98, 250, 200
    reward_range = (0.0, 1.0)

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return list(rng.uniform(-0.1, 0.1, (4, n)))

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        place, speed, angle, spin = s
        force = 12.0 * (a - 0.5) + 3.0 * rng.standard_normal(len(a))
        sin, cos = np.sin(angle), np.cos(angle)
        push = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        slide = push - 0.05 * turn * cos / 1.1
        state = (
            place + 0.04 * speed,
            speed + 0.04 * slide,
            angle + 0.04 * spin,
            spin + 0.04 * turn,
        )
        return state, np.ones(len(a)), (np.abs(state[2]) > 0.4) | (np.abs(state[0]) > 2.4)

    def policies(self, x: Floats) -> dict[str, Floats]:
        z = 6.0 * x[2] + 1.0 * x[3]
        mu = soft(-z, z, explore=0.2)
        z = 8.0 * x[2] + 2.0 * x[3] + 0.4 * x[0] + 0.6 * x[1]
        return {
            "behavior": mu,
            "steady": mixed(0.3, mu, soft(-z, z)),
            "numb": mixed(0.15, mu, soft(0.0, 0.0)),
        }


class Swing(Simulated):
    """Swing a pendulum up and hold it: paid only while it stands."""

    discount, episodes, length = 0.97, 200, 150
    reward_range = (0.0, 1.0)

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        turn = rng.uniform(-np.pi, np.pi, n)
        return np.cos(turn), np.sin(turn), rng.uniform(-1, 1, n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        cos, sin, spin = s
        push = 8.0 * sin + 5.0 * (a - 1.0) - 0.2 * spin
        spin = np.clip(spin + 0.1 * push + 0.2 * rng.standard_normal(len(a)), -8.0, 8.0)
        angle = np.arctan2(sin, cos) + 0.1 * spin
        stands = np.cos(angle) > 0.9
        state = (np.cos(angle), np.sin(angle), spin)
        return state, 1.0 * stands, np.zeros(len(a), dtype=bool)

    def policies(self, x: Floats) -> dict[str, Floats]:
        z = np.where(x[0] > 0.8, -0.6 * x[1] - 0.2 * x[2], 0.1 * x[2])
        mu = soft(-z, 0.0, z, explore=0.2)
        z = np.where(x[0] > 0.7, -3.0 * x[1] - 1.0 * x[2], 0.3 * x[2])
        hold, weak = soft(-z, 0.0, z, explore=0.1), soft(0.0, 1.0, 0.0)
        return {"behavior": mu, "hold": mixed(0.8, mu, hold), "weak": mixed(0.6, mu, weak)}


class Dam(Simulated):
    """Release water for power in four sizes; inflow by season in bursts; floods cost much."""

    discount, episodes, length = 0.98, 150, 120

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        phase = rng.uniform(0, 2 * np.pi, n)
        return rng.uniform(2, 8, n), rng.exponential(1.0, n), np.sin(phase), np.cos(phase)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        level, flow, sin, cos = s
        release = np.minimum(0.8 * a, level)
        full = level - release + flow
        spill = np.maximum(full - 10.0, 0.0)
        level = np.minimum(full, 10.0)
        reward = (
            release * np.sqrt(level + 1.0) * (1.0 - 0.4 * sin) - 6.0 * spill - 4.0 * (level < 0.5)
        )
        burst = (rng.random(len(a)) < 0.08) * rng.exponential(2.5, len(a))
        flow = 0.6 * flow + 0.35 * np.exp(0.6 * sin) + burst
        return (level, flow, *turned(sin, cos, 36)), reward, np.zeros(len(a), dtype=bool)

    def policies(self, x: Floats) -> dict[str, Floats]:
        z = 0.3 * (x[0] - 5.0)
        mu = soft(-z, 0.2, 0.2 + 0.4 * z, z, explore=0.15)
        z = 0.5 * (x[0] - 5.0 + x[1]) - 0.5 * x[2]
        return {
            "behavior": mu,
            "ready": mixed(0.35, mu, soft(-z, 0.2, 0.4 * z, z, explore=0.1)),
            "hoards": mixed(0.12, mu, soft(1.0, 0.5, 0.0, -0.5)),
        }


class Ferment(Simulated):
    """Feed a fermenter slowly or fast, or harvest it: the action harvest ends the batch."""

    discount, episodes, length = 0.99, 300, 80

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(0.1, 0.4, n), rng.uniform(1.0, 3.0, n), np.zeros(n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        cells, sugar, product = s
        feed = np.array([0.0, 0.5, 0.0])[a]
        rate = 0.4 * sugar / (0.5 + sugar + 0.15 * sugar**2) / (1.0 + 0.3 * product)
        grown = rate * cells * np.exp(0.2 * rng.standard_normal(len(a)))
        sugar = np.maximum(sugar + feed - 1.2 * grown, 0.0)
        product = product + 0.5 * grown + 0.05 * cells * (sugar < 0.5)
        spoils = rng.random(len(a)) < 0.015
        ends = spoils | (a == 2)
        reward = np.where((a == 2) & ~spoils, 4.0 * product, -0.1 * feed - 0.05)
        return (cells + grown - 0.03 * cells, sugar, product), reward, ends

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.3 * x[1], 1.0 - 0.4 * x[1], 1.2 * x[2] - 3.0, explore=0.02)
        patient = soft(0.8 * (x[1] - 1.0), 0.8 * (1.2 - x[1]), 2.0 * x[2] - 5.0)
        return {
            "behavior": mu,
            "patient": mixed(0.5, mu, patient),
            "hasty": mixed(0.04, mu, soft(-5.0, -5.0, 0.0)),
        }


class Servers(Simulated):
    """Add, keep or remove servers under web traffic with daily waves and bursts. Endless."""

    discount, episodes, endless = 0.9, 8000, True

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(3, 8, n), rng.gamma(5.0, 1.0, n), np.zeros(n), rng.uniform(0, 1, n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        count, load, trend, day = s
        count = np.clip(count + a - 1.0, 1.0, 15.0)
        use = load / count
        reward = -0.15 * count - 2.0 * sigmoid(6.0 * (use - 1.0)) - 0.5 * (a != 1) * 0.2
        day = (day + 1.0 / 48.0) % 1.0
        mean = 5.0 + 2.5 * np.sin(2 * np.pi * day)
        burst = 4.0 * (rng.random(len(a)) < 0.02)
        after = np.maximum(0.8 * load + 0.2 * mean + burst + 0.5 * rng.standard_normal(len(a)), 0.1)
        return (
            (count, after, 0.7 * trend + 0.3 * (after - load), day),
            reward,
            np.zeros(len(a), dtype=bool),
        )

    def policies(self, x: Floats) -> dict[str, Floats]:
        z = 2.0 * (x[1] / x[0] - 0.8)
        mu = soft(-z, 0.5, z, explore=0.15)
        z = 4.0 * ((x[1] + 2.0 * x[2]) / x[0] - 0.75)
        return {
            "behavior": mu,
            "trend": mixed(0.5, mu, soft(-z, 0.5, z, explore=0.1)),
            "still": mixed(0.4, mu, soft(0.0, 2.0, 0.0)),
        }


class Landing(Simulated):
    """Land on thrusters in gusts: paid by how softly it touches the ground, and for fuel."""

    discount, episodes, length = 0.99, 400, 100

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(6, 10, n), rng.normal(-0.5, 0.3, n), rng.uniform(2.0, 5.0, n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        height, speed, fuel = s
        burn = np.minimum(0.15 * a, fuel)
        speed = speed - 0.1 + 1.3 * burn + 0.06 * rng.standard_normal(len(a)) - 0.02 * speed
        height = height + speed
        lands, lost = height <= 0.0, height > 15.0
        reward = lands * (6.0 - 12.0 * np.minimum(np.abs(speed), 1.5)) - 0.3 * burn - 5.0 * lost
        return (np.maximum(height, 0.0), speed, fuel - burn), reward, lands | lost

    def policies(self, x: Floats) -> dict[str, Floats]:
        z = -2.0 * (x[1] + 0.55)
        mu = soft(-z, 0.3, z, explore=0.2)
        z = -4.0 * (x[1] + 0.25 + 0.08 * x[0])
        return {
            "behavior": mu,
            "soft": mixed(0.4, mu, soft(-z, 0.3, z, explore=0.1)),
            "late": mixed(0.3, mu, soft(1.0, 0.3, -0.5)),
        }


class Ward(Simulated):
    """Patients of eight vital signs, four treatments; only discharge (1) or death (-1) counts."""

    discount, episodes, length = 0.99, 500, 60
    reward_range = (-1.0, 1.0)
    push = 0.5 * np.random.default_rng(21).standard_normal((8, 4))
    couple = 0.85 * np.eye(8) + 0.06 * np.random.default_rng(22).standard_normal((8, 8))

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return list(1.2 * rng.standard_normal((8, n)))

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        after = (
            self.couple @ s + self.push[:, a] * np.tanh(s[:1]) + 0.45 * rng.standard_normal(s.shape)
        )
        ill = np.sqrt((after[:4] ** 2).sum(axis=0)) + 0.3 * after[4]
        u = rng.random(len(a))
        dies, leaves = u < sigmoid(1.5 * ill - 7.5), u > 1.0 - sigmoid(-1.2 * ill)
        return list(after), 1.0 * leaves - 1.0 * dies, dies | leaves

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.4, 0.3 * x[0], -0.2 * x[1], 0.2 * x[2], explore=0.2)
        ahead = (self.couple @ x)[:4, None] + self.push[:4, :, None] * np.tanh(x[:1])
        apt = soft(*(-0.5 * (ahead**2).sum(axis=0)), explore=0.1)
        worst = soft(*(0.5 * (ahead**2).sum(axis=0)), explore=0.1)
        return {"behavior": mu, "apt": mixed(0.4, mu, apt), "inapt": mixed(0.25, mu, worst)}


class Reminders(Simulated):
    """Remind or not, in two wordings that do the same (an equal target): habits form and fade."""

    discount, episodes, length, equal = 0.95, 300, 50, ("wording",)

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.beta(2, 4, n), rng.normal(0, 1, n), np.zeros(n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        habit, mood, since = s
        reminded = a > 0
        active = rng.random(len(a)) < sigmoid(
            3.0 * habit + 0.8 * mood + 0.9 * reminded * (since / 3.0) - 2.2
        )
        habit = np.clip(habit + np.where(active, 0.12 * (1.0 - habit), -0.05 * habit), 0.0, 1.0)
        mood = 0.7 * mood + 0.6 * rng.standard_normal(len(a)) - 0.2 * reminded
        since = np.where(reminded, 0.0, np.minimum(since + 1.0, 5.0))
        return (habit, mood, since), 1.0 * active - 0.1 * reminded, rng.random(len(a)) < 0.01

    def words(self, often: Floats, first: Floats) -> Floats:
        p, q = sigmoid(often), sigmoid(first)
        return np.stack([1.0 - p, p * q, p * (1.0 - q)])

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = self.words(0.4 * x[2] - 0.8, 0.3 * x[1])
        spaced = 0.9 * x[2] - 1.8 + 0.3 * x[1]
        return {
            "behavior": mu,
            "wording": self.words(0.4 * x[2] - 0.8, 0.3 * x[1] + 0.8),
            "spaced": self.words(spaced, 0.3 * x[1]),
        }


class Rings(OneStep):
    """Name the ring that a point lies in: three rings around each other, reward 0 or 1."""

    episodes, reward_range = 800, (0.0, 1.0)

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        turn, far = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 3, n)
        return far * np.cos(turn), far * np.sin(turn)

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        far = np.hypot(*x) + 0.25 * rng.standard_normal(len(a))
        return 1.0 * (np.clip(np.floor(far), 0, 2) == a)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(-0.3 * np.abs(x[0]), 0.0, 0.3 * np.abs(x[1]), explore=0.2)
        near = soft(*(-1.5 * np.abs(np.hypot(*x) - ring) for ring in (0.5, 1.5, 2.5)), explore=0.1)
        return {
            "behavior": mu,
            "near": mixed(0.5, mu, near),
            "middle": mixed(0.4, mu, soft(0.0, 2.0, 0.0)),
        }


class Routing(OneStep):
    """Which of four agents takes a call: minutes of work (gamma), by topic and mood."""

    episodes = 700

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(0, 1, n), rng.normal(0, 1, n), rng.exponential(1.0, n)

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        skill = np.array([0.1, 0.4, 0.7, 0.9])[a]
        minutes = 3.0 + 8.0 * np.abs(x[0] - skill) + 1.5 * np.maximum(x[1], 0.0) * (a % 2)
        return -rng.gamma(2.0, minutes / 2.0)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.4 - 0.4 * x[0], 0.3, 0.0, 0.4 * x[0], explore=0.3)
        apt = soft(*(-5.0 * np.abs(x[0] - skill) for skill in (0.1, 0.4, 0.7, 0.9)), explore=0.1)
        return {
            "behavior": mu,
            "apt": mixed(0.5, mu, apt),
            "third": mixed(0.4, mu, soft(0.0, 0.0, 2.0, 0.0)),
        }


class Treatment(OneStep):
    """Treat or not: survival (0 or 1) by eight measurements; some gain, some are harmed."""

    episodes, reward_range = 600, (0.0, 1.0)
    beta = np.random.default_rng(23).standard_normal(8) / 2.0

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        common = rng.standard_normal(n)
        return list(0.5 * common + rng.standard_normal((8, n)))

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        gain = 0.8 * x[0] + 0.6 * (x[1] > 0.5) - 0.4
        return 1.0 * (rng.random(len(a)) < sigmoid(0.5 + self.beta @ x + a * gain))

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.3, 0.5 * x[2] + 0.2 * x[0], explore=0.1)
        gain = 0.8 * x[0] + 0.6 * (x[1] > 0.5) - 0.4
        return {
            "behavior": mu,
            "gain": soft(0.0, 2.0 * gain, explore=0.1),
            "harm": mixed(0.4, mu, soft(gain, 0.0)),
        }


class Donations(OneStep):
    """Which of three letters to send; one in fifty gives, amounts with a Pareto tail."""

    episodes = 5000

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.normal(0, 1, n), rng.exponential(1.0, n)

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        z = np.stack([0.0 * x[0], 0.6 * x[0], 0.5 * x[1] - 0.4])
        gives = rng.random(len(a)) < sigmoid(taken(z, a) - 3.9)
        return gives * 5.0 * (1.0 + rng.pareto(2.6, len(a))) - 0.02 * (a == 2)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.3, 0.2 * x[0], 0.0, explore=0.1)
        return {
            "behavior": mu,
            "apt": mixed(0.7, mu, soft(0.0, 1.5 * x[0], x[1] - 0.8)),
            "same": mixed(0.5, mu, soft(2.0, 0.0, 0.0)),
        }


class Auction(OneStep):
    """The reserve price of an auction, in five sizes: nothing, the second bid, or the reserve."""

    episodes = 1000

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.normal(0, 0.5, n), rng.integers(1, 6, n) * 1.0, rng.normal(0, 1, n)

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        bids = rng.lognormal(x[0], 0.6, (6, len(a))) * (np.arange(6)[:, None] < x[1])
        first, second = np.sort(bids, axis=0)[[-1, -2]]
        reserve = np.array([0.2, 0.6, 1.0, 1.5, 2.2])[a]
        return np.where(first > reserve, np.maximum(second, reserve), 0.0)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.3, 0.4, 0.3 + 0.3 * x[0], 0.3 * x[0], -0.5, explore=0.1)
        sizes = np.array([0.2, 0.6, 1.0, 1.5, 2.2])[:, None]
        apt = soft(*(-3.0 * (np.log(sizes) - x[0]) ** 2), explore=0.1)
        return {
            "behavior": mu,
            "apt": mixed(0.6, mu, apt),
            "high": mixed(0.4, mu, soft(0.0, 0.0, 0.0, 1.0, 2.0)),
        }


class Credit(OneStep):
    """Refuse, lend little or lend much: interest mostly, a large loss seldom."""

    episodes = 2000

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return (
            rng.normal(0, 1, n),
            rng.normal(0, 1, n),
            rng.gamma(2.0, 0.5, n),
            rng.uniform(0, 1, n),
        )

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        fails = rng.random(len(a)) < sigmoid(-3.2 - 0.8 * x[0] + 0.5 * x[1] * x[2] + 0.3 * (a == 2))
        return np.array([0.0, 1.0, 3.0])[a] * np.where(fails, -1.0, 0.12)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.2 - 0.3 * x[0], 0.4, 0.3 * x[0], explore=0.15)
        risk = 0.5 * x[1] * x[2] - 0.8 * x[0]
        apt = soft(risk, 0.3, -risk, explore=0.1)
        return {
            "behavior": mu,
            "apt": mixed(0.6, mu, apt),
            "bold": mixed(0.3, mu, soft(-1.0, 0.0, 1.5)),
        }


CONTINUOUS: dict[str, Callable[[], Simulated]] = {
    "glucose": Glucose, "fishing": Fishing, "subscribers": Subscribers, "pole": Pole,
    "swing": Swing, "dam": Dam, "ferment": Ferment, "landing": Landing,
    "ward": Ward, "reminders": Reminders, "crossing endless": Crossing,
    "servers endless": Servers,
}  # fmt: skip
ONE_STEP: dict[str, Callable[[], Simulated]] = {
    "rings": Rings, "routing": Routing, "treatment": Treatment, "donations": Donations,
    "auction": Auction, "credit": Credit,
}  # fmt: skip

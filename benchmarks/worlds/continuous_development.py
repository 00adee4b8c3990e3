"""Worlds with real-valued observations for development: stock, heating, dosing, sessions ...

The worlds of `continuous_set_aside` have other dynamics. No rule may be tuned on those.
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
    turned,
)


class Stock(Simulated):
    """Order goods every day: stock, goods on their way, and a demand that drifts."""

    discount, episodes, length = 0.95, 300, 60

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(0, 15, n), rng.choice([0.0, 4.0, 8.0], n), 0.4 * rng.standard_normal(n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        stock, coming, mood = s
        demand = rng.gamma(3.0, np.exp(mood) * 2.0)
        sold = np.minimum(stock + coming, demand)
        left = stock + coming - sold
        reward = 3.0 * sold - 4.0 * a - 0.3 * left - 1.0 * (demand - sold)
        mood = 0.9 * mood + 0.15 * rng.standard_normal(len(a))
        return (left, 4.0 * a, mood), reward, rng.random(len(a)) < 0.02

    def order_up_to(self, x: Floats, level: float, sharp: float) -> Floats:
        gap = level - x[0] - x[1]
        return soft(*(-sharp * (gap - 4.0 * a) ** 2 / 30.0 for a in range(4)), explore=0.1)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = self.order_up_to(x, 10.0, 0.7)
        follows_demand = self.order_up_to(x, 11.0 * np.exp(x[2]), 1.0)
        return {
            "behavior": mu,
            "demand": mixed(0.4, mu, follows_demand),
            "lean": self.order_up_to(x, 8.0, 0.8),
        }


class Heating(Simulated):
    """Heat a room through day and night: comfort against energy. Every log is cut, none ends."""

    discount, episodes, length = 0.98, 150, 96

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        phase = rng.uniform(0, 2 * np.pi, n)
        return rng.normal(18, 2, n), 2 * rng.standard_normal(n), np.sin(phase), np.cos(phase)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        room, weather, sin, cos = s
        outside = 6.0 + 5.0 * sin + weather
        room = room + 0.12 * (outside - room) + 1.6 * a + 0.3 * rng.standard_normal(len(a))
        reward = -0.04 * (room - 20.5) ** 2 - 0.25 * a
        weather = 0.97 * weather + 0.5 * rng.standard_normal(len(a))
        return (room, weather, *turned(sin, cos, 24)), reward, np.zeros(len(a), dtype=bool)

    def policies(self, x: Floats) -> dict[str, Floats]:
        cold = 20.0 - x[0]
        mu = soft(-0.3 * cold, 0.3, 0.3 * cold, explore=0.15)
        ahead = 20.5 - x[0] - 0.1 * x[1] - 0.5 * x[2]
        thrifty = soft(0.5 - 0.3 * (19.0 - x[0]), 0.3, 0.3 * (19.0 - x[0]), explore=0.15)
        keen = soft(-0.6 * ahead, 0.5, 0.6 * ahead, explore=0.1)
        return {"behavior": mu, "ahead": mixed(0.4, mu, keen), "thrifty": mixed(0.4, mu, thrifty)}


class Dosing(Simulated):
    """Keep a drug's level in its range: lower, keep or raise the dose; bleeding ends it badly."""

    discount, episodes, length = 1.0, 400, 200
    reward_range = (-20.0, 1.0)

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return (
            rng.uniform(1.0, 4.0, n),
            rng.uniform(2.0, 6.0, n),
            np.exp(0.3 * rng.standard_normal(n)),
            rng.uniform(40.0, 85.0, n) / 10.0,
        )

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        level, dose, response, age = s
        dose = np.clip(dose + 0.5 * (a - 1), 0.5, 10.0)
        level = 0.7 * level + 0.3 * 0.65 * response * dose * np.exp(
            0.15 * rng.standard_normal(len(a))
        )
        bleeds = rng.random(len(a)) < 0.002 * np.exp(0.9 * (level - 3.0) + 0.15 * (age - 6.0))
        inside = (level > 2.0) & (level < 3.0)
        reward = inside - 20.0 * bleeds
        return (level, dose, response, age), reward, bleeds | (rng.random(len(a)) < 0.05)

    def aim(self, x: Floats, level: float, sharp: float) -> Floats:
        miss = sharp * (level - 0.5 * x[0] - 0.5 * 0.65 * x[1] * x[2])
        return soft(-miss, 0.5, miss, explore=0.1)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = self.aim(x, 2.3, 1.0)
        return {"behavior": mu, "sharp": self.aim(x, 2.5, 1.8), "high": self.aim(x, 3.1, 1.0)}


class Checkout(Simulated):
    """Open more tills as the line grows: waiting against wages, hours that change. Endless."""

    discount, episodes, endless = 0.95, 8000, True

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.exponential(4.0, n), 0.5 * rng.standard_normal(n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        line, rush = s
        come = rng.poisson(2.0 * np.exp(rush))
        go = rng.gamma(4.0, 0.25 * (1.0 + 1.5 * a))
        line = np.maximum(line + come - go, 0.0) * 0.97
        reward = -0.1 * line - 0.5 * a
        rush = 0.9 * rush + 0.2 * rng.standard_normal(len(a))
        return (line, rush), reward, np.zeros(len(a), dtype=bool)

    def policies(self, x: Floats) -> dict[str, Floats]:
        press = 0.25 * (x[0] - 4.0)
        mu = soft(-press, 0.2, press, explore=0.2)
        early = 0.25 * (x[0] - 2.0) + 1.0 * x[1]
        return {"behavior": mu, "early": mixed(0.5, mu, soft(-early, 0.2, early, explore=0.1))}


class Battery(Simulated):
    """Charge when power is cheap, sell when it is dear; prices revert and jump. Endless."""

    discount, episodes, endless = 0.97, 10_000, True

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        phase = rng.uniform(0, 2 * np.pi, n)
        return rng.uniform(0, 4, n), rng.normal(0, 1, n), np.sin(phase), np.cos(phase)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        charge, spread, sin, cos = s
        price = 5.0 + 2.0 * sin + spread
        flow = np.where(a == 0, np.minimum(1.0, 4.0 - charge), 0.0)
        flow = np.where(a == 2, -np.minimum(1.0, charge), flow)
        reward = np.where(flow > 0, -price * flow, -0.9 * price * flow)
        jump = 3.0 * rng.standard_normal(len(a)) * (rng.random(len(a)) < 0.03)
        spread = 0.85 * spread + 0.6 * rng.standard_normal(len(a)) + jump
        state = (charge + flow, spread, *turned(sin, cos, 24))
        return state, reward, np.zeros(len(a), dtype=bool)

    def policies(self, x: Floats) -> dict[str, Floats]:
        dear = 0.4 * (2.0 * x[2] + x[1])
        mu = soft(-dear, 0.3, dear, explore=0.2)
        dear = 0.8 * (2.0 * x[2] + x[1]) + 0.3 * (x[0] - 2.0)
        keen = soft(-dear, 0.0, dear, explore=0.1)
        idle = soft(0.0, 1.5, 0.0)
        return {"behavior": mu, "keen": mixed(0.4, mu, keen), "idle": mixed(0.4, mu, idle)}


class Machine(Simulated):
    """Run, service or replace a machine that wears, under a load that changes; shut by chance."""

    discount, episodes, length = 0.97, 250, 100

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(0, 2, n), rng.normal(0, 1, n), rng.uniform(0.5, 1.5, n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        wear, load, make = s
        wear = np.where(a == 2, 0.0, np.where(a == 1, 0.6 * wear, wear))
        breaks = rng.random(len(a)) < sigmoid(1.2 * wear + 0.4 * load - 5.0)
        reward = 1.0 + 0.4 * load - 6.0 * breaks - np.array([0.0, 0.6, 2.5])[a] - 0.1 * wear
        wear = np.where(breaks, 0.5, wear + rng.gamma(2.0, 0.08 * make * np.exp(0.2 * load)))
        load = 0.8 * load + 0.6 * rng.standard_normal(len(a))
        return (wear, load, make), reward, rng.random(len(a)) < 0.02

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(2.0 - 0.6 * x[0], 0.5, 0.4 * x[0] - 1.5, explore=0.1)
        by_wear = soft(2.5 - 1.0 * x[0], 1.2 * x[0] * x[2] - 1.0, 0.8 * x[0] - 3.0, explore=0.05)
        never = soft(3.0, -0.5, -2.0, explore=0.1)
        return {"behavior": mu, "by_wear": mixed(0.4, mu, by_wear), "never": mixed(0.4, mu, never)}


class Steering(Simulated):
    """Hold a drifting vehicle in its lane against gusts: two variables, quadratic costs."""

    discount, episodes, length = 0.95, 300, 80

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.normal(0, 1, n), rng.normal(0, 0.3, n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        place, speed = s
        speed = 0.9 * speed + 0.25 * (a - 1.0) + 0.12 * rng.standard_normal(len(a))
        place = place + speed
        reward = 1.0 - 0.2 * place**2 - 0.1 * (a != 1)
        out = np.abs(place) > 3.5
        return (place, speed), reward - 5.0 * out, out

    def turn(self, x: Floats, by_place: float, by_speed: float) -> Floats:
        z = by_place * x[0] + by_speed * x[1]
        return soft(z, 0.0, -z, explore=0.1)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = self.turn(x, 0.6, 1.0)
        return {"behavior": mu, "firm": self.turn(x, 0.75, 1.5), "loose": self.turn(x, 0.55, 0.8)}


class Harbour(Simulated):
    """Find a harbour in currents: reward 1 on arrival alone; storms end some trips. Sparse."""

    discount, episodes, length = 0.98, 400, 150
    reward_range = (0.0, 1.0)

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(-4, -1, n), rng.uniform(-3, 3, n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        x, y = s
        dx, dy = np.array([[0.35, -0.1, -0.1, -0.1], [0.0, 0.35, -0.35, 0.0]])[:, a]
        x = np.clip(x + dx + 0.1 * np.sin(y) + 0.2 * rng.standard_normal(len(a)), -5.0, 5.0)
        y = np.clip(y + dy - 0.05 * x + 0.2 * rng.standard_normal(len(a)), -4.0, 4.0)
        arrives = (x - 3.0) ** 2 + y**2 < 0.8
        lost = rng.random(len(a)) < 0.008 + 0.03 * (np.abs(y) > 3.0)
        return (x, y), 1.0 * arrives, arrives | lost

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.25 * (3.0 - x[0]), -0.3 * x[1], 0.3 * x[1], 0.2 * x[0] - 0.6, explore=0.2)
        straight = soft(0.4 * (3.0 - x[0]), -0.8 * x[1], 0.8 * x[1], -1.0, explore=0.1)
        aimless = soft(0.3, 0.0, 0.0, 0.0)
        return {
            "behavior": mu,
            "straight": mixed(0.4, mu, straight),
            "aimless": mixed(0.3, mu, aimless),
        }


class Sledge(Simulated):
    """A sledge in a valley, too weak to leave it at once: 1 behind the hill, nothing before."""

    discount, episodes, length = 0.99, 200, 200
    reward_range = (0.0, 1.0)

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(-0.7, -0.3, n), np.zeros(n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        place, speed = s
        pull = 0.0035 * (a - 1.0) - 0.0025 * np.cos(3.0 * place)
        speed = np.clip(speed + pull + 0.001 * rng.standard_normal(len(a)), -0.07, 0.07)
        place = np.clip(place + speed, -1.2, 0.6)
        there = place >= 0.5
        state = (place, np.where(place <= -1.2, 0.0, speed))
        return state, 1.0 * there, there | (rng.random(len(a)) < 0.005)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(-20.0 * x[1], 0.0, 20.0 * x[1], explore=0.3)
        swing = soft(-60.0 * x[1], 0.0, 60.0 * x[1], explore=0.1)
        idle = soft(0.0, 1.5, 0.0)
        return {"behavior": mu, "swing": mixed(0.8, mu, swing), "idle": mixed(0.35, mu, idle)}


class Collections(Simulated):
    """Collect a debt: wait, write, call, or offer instalments. Paid or written off, it ends."""

    discount, episodes, length = 0.99, 600, 60

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return (
            rng.lognormal(1.0, 0.6, n),
            rng.uniform(0.0, 3.0, n),
            rng.standard_normal(n),
            rng.standard_normal(n),
            np.zeros(n),
        )

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        debt, late, means, temper, plan = s
        plan = np.maximum(
            plan * (rng.random(len(a)) > 0.05),
            1.0 * ((a == 3) & (rng.random(len(a)) < sigmoid(temper - 0.5))),
        )
        effect = np.array([0.0, 0.3, 0.8, 0.2])[a]
        pays = rng.random(len(a)) < sigmoid(0.7 * means + effect - 0.25 * late - 2.2 + 1.8 * plan)
        share = np.where(plan > 0, 0.25, rng.uniform(0.2, 1.0, len(a)))
        paid = np.minimum(debt, pays * (share * debt + 0.1))
        temper = temper - 0.15 * (a == 2) + 0.1 * rng.standard_normal(len(a))
        debt = debt - paid
        late = np.where(pays, 0.5 * late, late + 0.25)
        ends = (debt < 0.1) | (rng.random(len(a)) < 0.04 * sigmoid(late - 3.0) + 0.01)
        return (debt, late, means, temper, plan), paid - np.array([0.0, 0.02, 0.1, 0.05])[a], ends

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.5, 0.5, 0.2 * x[1], 0.2 * x[0] - 0.5, explore=0.2)
        plans = soft(0.3 + 2.0 * x[4], 0.0, 0.5 * x[2], 1.0 + 0.8 * x[3] - 3.0 * x[4], explore=0.1)
        waits = soft(2.5, 0.3, -1.0, -1.5, explore=0.1)
        return {"behavior": mu, "plans": mixed(0.4, mu, plans), "waits": mixed(0.4, mu, waits)}


class Tutoring(Simulated):
    """Choose exercises for a pupil; a test at the end alone is paid. Two skills are not seen."""

    discount, episodes, hidden = 1.0, 400, 2

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        skill = rng.normal(0.0, 0.7, n)
        guess = skill + 0.5 * rng.standard_normal(n)
        return np.zeros(n), guess, 0.5 * np.ones(n), skill, np.exp(0.3 * rng.standard_normal(n))

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        done, guess, lately, skill, pace = s
        hard = np.array([-1.0, 0.5, 2.0])[a]
        solved = rng.random(len(a)) < sigmoid(1.5 * (skill - hard))
        skill = skill + 0.25 * pace * np.exp(-0.5 * (hard - skill - 0.4) ** 2)
        guess = guess + 0.3 * (solved - sigmoid(1.5 * (guess - hard))) + 0.05
        lately = 0.7 * lately + 0.3 * solved
        done = done + 0.1
        ends = done > 1.15
        mark = np.clip(5.0 + 2.0 * skill + rng.standard_normal(len(a)), 0.0, 10.0)
        return (done, guess, lately, skill, pace), mark * ends, ends

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.3 - 0.5 * x[1], 0.4, 0.5 * x[1] - 0.3, explore=0.15)
        apt = soft(*(-0.8 * (h - x[1] - 0.4) ** 2 for h in (-1.0, 0.5, 2.0)), explore=0.1)
        return {
            "behavior": mu,
            "apt": mixed(0.5, mu, apt),
            "easy": mixed(0.3, mu, soft(2.0, 0.3, -1.0)),
        }


class Lights(Simulated):
    """A farm lamp's colour and strength: strength matters, colour does not (an equal target)."""

    discount, episodes, length, equal = 0.9, 300, 40, ("colour",)

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.uniform(0, 1, n), rng.normal(0, 1, n)

    def step(self, rng: Random, s: Floats, a: Ints) -> Step:
        sugar, cloud = s
        strong = a // 2
        light = 0.4 * strong - 0.15 * cloud + 0.3
        sugar = np.clip(0.8 * sugar + 0.3 * light + 0.05 * rng.standard_normal(len(a)), 0.0, 2.0)
        reward = np.sqrt(sugar) - 0.15 * strong + 0.3 * rng.standard_normal(len(a))
        cloud = 0.85 * cloud + 0.5 * rng.standard_normal(len(a))
        return (sugar, cloud), reward, rng.random(len(a)) < 0.03

    def colours(self, x: Floats, red: Floats, strong: Floats) -> Floats:
        r, p = sigmoid(red), sigmoid(strong)
        return np.stack([(1 - p) * r, (1 - p) * (1 - r), p * r, p * (1 - r)])

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = self.colours(x, 0.5 * x[1], 0.5 * x[1] - 0.3)
        strong = 0.5 * x[1] - 0.3
        dim = 0.8 * x[1] - 0.5 + 2.0 * (0.4 - x[0])
        return {
            "behavior": mu,
            "colour": self.colours(x, 0.5 * x[1] + 0.8, strong),
            "dim": self.colours(x, 0.5 * x[1], dim),
        }


class Clusters(OneStep):
    """Name the class of a point: five overlapping clusters in six dimensions, reward 0 or 1."""

    episodes, reward_range = 1000, (0.0, 1.0)
    centres = 1.2 * np.random.default_rng(11).standard_normal((6, 5))
    weights = centres + 0.8 * np.random.default_rng(12).standard_normal((6, 5))

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        kind = rng.integers(5, size=n)
        return [*(self.centres[:, kind] + 1.2 * rng.standard_normal((6, n))), kind * 1.0]

    hidden = 1

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        return 1.0 * (x[6] == a)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(*(0.35 * self.weights.T @ x), explore=0.2)
        nearest = soft(
            *(0.8 * self.centres.T @ x - 0.4 * (self.centres**2).sum(0)[:, None]), explore=0.1
        )
        return {
            "behavior": mu,
            "nearest": mixed(0.5, mu, nearest),
            "even": mixed(0.5, mu, np.full(mu.shape, 0.2)),
        }


class Clicks(OneStep):
    """One of four advertisements; a click in a hundred, by age, hour and interest."""

    episodes, reward_range = 4000, (0.0, 1.0)

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.normal(0, 1, n), rng.uniform(-1, 1, n), rng.exponential(1.0, n)

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        z = np.stack([0.5 * x[0], -0.5 * x[0], x[1] - 0.2, 0.5 * x[2] - 0.7])
        return 1.0 * (rng.random(len(a)) < sigmoid(np.take_along_axis(z, a[None], 0)[0] - 4.2))

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.5, 0.2 * x[0], 0.3 * x[1], 0.0, explore=0.2)
        keen = soft(x[0], -x[0], 1.5 * x[1], x[2] - 1.0, explore=0.1)
        return {
            "behavior": mu,
            "keen": mixed(0.6, mu, keen),
            "third": mixed(0.5, mu, soft(0.0, 0.0, 2.0, 0.0)),
        }


class PriceTest(OneStep):
    """One of four prices to a customer of some income and need: paid, or nothing."""

    episodes = 1000

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.lognormal(0.0, 0.5, n), rng.normal(0, 1, n)

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        price = np.array([4.0, 6.0, 8.0, 11.0])[a]
        return price * (rng.random(len(a)) < sigmoid(2.2 * x[0] + 0.7 * x[1] - 0.5 * price + 1.0))

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.8 + 0.0 * x[0], 0.5, 0.2, -0.5, explore=0.1)
        best = 4.4 * x[0] + 1.4 * x[1] + 1.0
        by_income = soft(*(-0.1 * (p - best) ** 2 for p in (4.0, 6.0, 8.0, 11.0)), explore=0.1)
        return {
            "behavior": mu,
            "by_income": mixed(0.6, mu, by_income),
            "cheap": mixed(0.4, mu, soft(3.0, 0.0, 0.0, 0.0)),
        }


class Spending(OneStep):
    """Coupons of three sizes; few buy, and what they spend has a heavy tail."""

    episodes = 3000

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return rng.normal(0, 1, n), rng.gamma(2.0, 0.5, n), rng.normal(0, 1, n)

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        buys = rng.random(len(a)) < sigmoid(0.4 * x[0] + 0.5 * a - 2.0)
        return buys * (rng.lognormal(0.5 + 0.3 * x[1] + 0.2 * x[2], 1.1) - 1.5 * a)

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(0.5, 0.3 * x[0], 0.2 * x[2], explore=0.2)
        rich = soft(-x[1] - 0.5 * x[0], 0.0, 1.5 * (x[1] + 0.4 * x[0] - 0.6), explore=0.1)
        return {
            "behavior": mu,
            "rich": mixed(0.6, mu, rich),
            "none": mixed(0.5, mu, soft(2.0, 0.0, -1.0)),
        }


class ManyArticles(OneStep):
    """Thirty articles for readers of five traits: linear tastes, noisy ratings."""

    episodes = 3000
    tastes = np.random.default_rng(13).standard_normal((30, 5)) / 2.0
    common = np.random.default_rng(14).standard_normal(30) / 3.0

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return list(rng.standard_normal((5, n)))

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        return (self.tastes[a] * x.T).sum(axis=1) + self.common[a] + rng.standard_normal(len(a))

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = soft(*(0.4 * self.common[:, None] + 0.2 * self.tastes @ x), explore=0.3)
        apt = soft(*(self.common[:, None] + self.tastes @ x), explore=0.1)
        return {"behavior": mu, "apt": mixed(0.4, mu, apt), "even": np.full(mu.shape, 1.0 / 30.0)}


class Fee(OneStep):
    """A fee of three sizes, from a window that does not matter (an equal target), eight traits."""

    episodes, equal = 500, ("window",)
    beta = np.random.default_rng(16).standard_normal(8) / 3.0

    def start(self, rng: Random, n: int) -> Sequence[Column]:
        return list(rng.standard_normal((8, n)))

    def reward(self, rng: Random, x: Floats, a: Ints) -> Column:
        fee = 1.0 + a % 3
        return fee * (rng.random(len(a)) < sigmoid(self.beta @ x - 0.8 * fee + 1.5)) + 0.2 * x[0]

    def fees(self, x: Floats, fee: Floats, left: Floats) -> Floats:
        p = sigmoid(left)
        return np.concatenate([p * fee, (1.0 - p) * fee])

    def policies(self, x: Floats) -> dict[str, Floats]:
        mu = self.fees(x, soft(0.3 * x[1], 0.2, 0.3 * x[0], explore=0.1), 0.5 * x[2])
        fee, z = mu[:3] + mu[3:], self.beta @ x
        able = soft(-z, 0.0, z, explore=0.1)
        return {
            "behavior": mu,
            "window": self.fees(x, fee, 0.5 * x[2] + 1.0),
            "able": self.fees(x, able, 0.5 * x[2]),
        }


CONTINUOUS: dict[str, Callable[[], Simulated]] = {
    "stock": Stock, "heating": Heating, "dosing": Dosing, "machine": Machine,
    "steering": Steering, "harbour": Harbour, "sledge": Sledge, "collections": Collections,
    "tutoring": Tutoring, "lights": Lights, "checkout endless": Checkout,
    "battery endless": Battery,
}  # fmt: skip
ONE_STEP: dict[str, Callable[[], Simulated]] = {
    "clusters": Clusters, "clicks": Clicks, "price test": PriceTest, "spending": Spending,
    "many articles": ManyArticles, "fee": Fee,
}  # fmt: skip

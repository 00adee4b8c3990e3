"""The rule of trust by hand: the two sides of an interval, and what more data would do to them."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from steadytd.evaluation.judge.decide import Counted, Falling, Side, best_of, compared, more
from steadytd.evaluation.judge.rule import Bias, Data, Reaches, Ruled, bias, left_over, noise, ruled

from steadytd.evaluation.intervals import Estimate

LAMS = (0.0, 0.5, 0.8, 0.95, 1.0)


def influences(rng: np.random.Generator, units: int, skew: float = 0.0) -> np.ndarray:
    """Of mean 0; the larger `skew`, the longer the tail above."""
    e = rng.standard_normal(units) + skew * rng.standard_exponential(units) ** 2
    return np.asarray((e - e.mean()) / units)


def drawn(rng: np.random.Generator, units: int = 60) -> Ruled:
    """A rule on a drawn curve whose noise grows with lam, or does not."""
    skew, start, cut = rng.choice([-1.0, 0.0, 1.0]), rng.normal(), rng.choice([0.0, 0.1])
    masses = np.full(units, 1.0 / units)
    curve = {
        lam: Estimate(
            start + 0.1 * rng.normal(), influences(rng, units, skew) * rng.uniform(0.5, 2.0), lam,
            masses, cut,
        )
        for lam in LAMS
    }  # fmt: skip
    own = Estimate(start + 0.1 * rng.normal(), influences(rng, units), masses=masses)
    return ruled(curve, own, alone(units))


def alone(units: int, rewards: tuple[float, float] = (0.0, 0.0)) -> Data:
    """Units of one episode each."""
    return Data(np.ones(units), False, rewards)


def test_chance_reaches_further_on_the_side_of_the_tail() -> None:
    """t se, and two more units like the most extreme one: by hand."""
    e = np.array([-0.1, -0.1, -0.1, -0.1, 0.4])
    found = noise(e, divided=False)
    n = (e**2).sum() ** 2 / (e**4).sum()
    chance = student.ppf(0.975, max(n, 2.0) - 1.0) * np.sqrt((e**2).sum() * 5 / 4)
    assert found.number == max(n, 2.0)
    assert found.reach == pytest.approx((chance + 0.2, chance + 0.8))
    assert noise(-e, divided=False).reach == pytest.approx(found.reach[::-1])


def test_the_bias_lies_away_from_lower_lam() -> None:
    """c d there, 3/4 d back to J(0), and half a standard error of d at the least: by hand."""
    e = np.array([0.1, -0.1, 0.2, -0.2])
    error = np.sqrt(4 / 3 * 4 * (e**2).sum())  # of e - (-e)
    for lam, apart in ((0.5, 3.0), (0.8, -1.0), (0.95, 0.2), (1.0, -2.0)):
        curve = {0.0: Estimate(1.0, -e), lam: Estimate(1.0 + apart, e), 2.0: Estimate(1.0, e)}
        for higher, q in (([], 0.97), ([2.0], 0.9)):
            found = bias(curve, lam, higher, divided=False)
            away = (1.0 - lam) / ((1.0 - q) * lam) * abs(apart)
            back = (1.0 if higher else 0.75) * abs(apart)  # a higher one at J(0) is reached
            assert found.fixed == pytest.approx((back, away) if apart > 0 else (away, back))
            least = 0.5 * (1.0 - lam) / (0.1 * lam) * error
            assert found.chance == pytest.approx(least)
            assert found.reach == pytest.approx([max(side, least) for side in found.fixed])


@pytest.mark.parametrize("q", [0.0, 0.5, 0.9, 0.97])
def test_the_bound_is_the_bias_that_is_left(q: float) -> None:
    """From any two lam of a curve b (1 - lam) / (1 - q lam), what is missing at the higher."""
    f = {lam: 3.0 * (1.0 - lam) / (1.0 - q * lam) for lam in LAMS}
    for lower, lam in itertools.combinations(LAMS, 2):
        assert left_over(lower, lam, q) * (f[lower] - f[lam]) == pytest.approx(f[lam])


def test_a_curve_that_turns_is_bounded_by_its_last_part() -> None:
    """J(0) and J(0.8) agree, J(0.5) lies above both: what falls may go on falling."""
    e = influences(np.random.default_rng(2), 40) * 1e-6
    curve = {lam: Estimate(v, e) for lam, v in ((0.0, 1.0), (0.5, 2.0), (0.8, 1.0))}
    found = bias(curve, 0.8, [], divided=False)
    assert found.fixed == pytest.approx((left_over(0.5, 0.8, 0.97), 0.0))


def test_an_interval_reaches_every_higher_lam_that_is_carried() -> None:
    rng = np.random.default_rng(13)
    seen = 0
    for _ in range(100):
        units = 60
        masses = np.full(units, 1.0 / units)
        curve = {
            lam: Estimate(0.1 * rng.normal(), influences(rng, units) * 9.0**lam, lam, masses)
            for lam in LAMS
        }
        r = ruled(curve, curve[0.0], alone(units))
        for lam in (x for x in LAMS if x > r.lam):  # all are carried: these weights are all 1
            apart = curve[lam].value - r.value
            seen += 1
            assert r.bias.fixed[int(apart > 0.0)] >= abs(apart) * (1.0 - 1e-12)
            assert r.interval.lo <= curve[lam].value <= r.interval.hi
    assert seen > 50


def test_rewards_that_were_not_seen_widen_the_interval() -> None:
    """Two more, of the whole range, where the weight is largest; of a difference, where it differs.

    An arm is pulled in one of ten episodes, the target pulls it four times as often.
    """
    units = 300
    pulled = np.arange(units) % 10 == 0
    masses = np.where(pulled, 4.0, 2 / 3) / units
    e = influences(np.random.default_rng(4), units) * 1e-3
    one, own = Estimate(0.5, e, 1.0, masses), Estimate(0.4, e, 1.0, np.full(units, 1.0 / units))
    base = Estimate(0.5, e, 0.0, masses)
    r = ruled({0.0: base, 1.0: one}, own, alone(units, (-2.0, 8.0)))
    assert r.unseen == pytest.approx(2 * 10 * 4 / 300)
    assert r.reach == pytest.approx((r.unseen, r.unseen))
    d = compared(Side("one", r, ()), None, Counted(units, "episodes"))
    assert (d.hi - d.lo) / 2 == pytest.approx(2 * 10 * 3 / 300)
    assert d.decision == "undecided"
    same = ruled({0.0: base, 1.0: one}, own, alone(units))
    assert compared(Side("one", same, ()), None, Counted(units, "episodes")).decision == "better"
    stretches = ruled({0.0: base, 1.0: one}, own, Data(np.ones(units), True, (-2.0, 8.0)))
    assert stretches.unseen == 0.0


def test_noise_does_not_fall_with_lam() -> None:
    """Products of ratios that vary less than single ratios have lost their tail."""
    rng = np.random.default_rng(3)
    wide, narrow = influences(rng, 80), influences(rng, 80) / 10.0
    masses = np.full(80, 1.0 / 80)
    base, top = Estimate(1.0, wide, 0.0, masses), Estimate(1.0, narrow, 1.0, masses)
    found = ruled({0.0: base, 1.0: top}, top, alone(80))
    assert found.reach == noise(wide, divided=False).reach
    turned = ruled({0.0: top, 1.0: base}, top, alone(80))
    assert turned.reach == noise(wide, divided=False).reach


def test_every_interval_holds_its_value_and_is_made_of_its_parts() -> None:
    rng = np.random.default_rng(5)
    lopsided = 0
    for _ in range(100):
        r = drawn(rng)
        assert r.interval.lo <= r.value <= r.interval.hi
        parts = zip(r.noise.reach, r.bias.reach, strict=True)
        assert r.reach == pytest.approx(
            [max(a, r.unseen) + b + r.beyond + r.past.doubt() for a, b in parts]
        )
        assert r.half == pytest.approx((r.interval.hi - r.interval.lo) / 2.0)
        lopsided += max(r.reach) > 1.1 * min(r.reach)
    assert lopsided > 20


def test_rare_events_are_covered_more_often_than_by_t_alone() -> None:
    """60 to 300 units, of which few have something large; a unit without is no proof of absence."""
    rng = np.random.default_rng(11)
    plain, ours = [], []
    for units, share in itertools.product((60, 300), (0.03, 0.1)):
        for _ in range(200):
            x = (rng.random(units) < share) * rng.exponential(1.0 / share, units)
            x += 0.1 * rng.standard_normal(units)
            one = Estimate(float(x.mean()), (x - x.mean()) / units)
            plain.append(one.interval().covers(1.0))
            reach = noise(one.influence, divided=False).reach
            ours.append(reach.around(one.value).covers(1.0))
    assert np.mean(plain) < 0.85 and np.mean(ours) > 0.94


def test_a_comparison_turned_round_is_the_same() -> None:
    """What makes one target larger makes the other's difference smaller."""
    rng = np.random.default_rng(7)
    data, said = Counted(60, "episodes"), set()
    for together in (1, 6) * 30:
        one, two = Side("one", drawn(rng), ()), Side("two", drawn(rng), ())
        d, turned = compared(one, two, data, together), compared(two, one, data, together)
        assert (-turned.hi, -turned.lo) == pytest.approx((d.lo, d.hi))
        assert turned.episodes_needed == d.episodes_needed
        assert d.lo <= d.difference <= d.hi
        said.add(d.decision)
    assert said == {"better", "worse", "undecided"}


def test_the_best_is_better_by_what_is_said() -> None:
    """The least lower limit of all comparisons, and the next best target: from the sentence."""
    rng, data, told = np.random.default_rng(17), Counted(60, "episodes"), 0
    for number in (2, 3, 4) * 20:
        sides = [Side(f"t{i}", shifted(drawn(rng), 10.0 * rng.normal()), ()) for i in range(number)]
        found, pairs = best_of(sides, data), number * (number - 1) // 2
        others = [s for s in sides if s.name != found.target]
        if found.target is None:
            assert "cannot be told" in found.text
            continue
        told += 1
        (leading,) = (s for s in sides if s.name == found.target)
        made = [compared(leading, two, data, pairs) for two in others]
        ways = {
            True: r"than (?P<name>t\d) by (?P<by>\S+) \(95 % interval (?P<least>\S+) to",
            False: r"others by at least (?P<least>\S+) .* (?P<name>t\d) comes next, (?P<by>\S+) b",
        }
        said = re.search(ways[number == 2], found.text)
        assert said is not None
        room = 0.03 * max(d.hi - d.lo for d in made)  # two digits of half an interval
        assert float(said["least"]) == pytest.approx(min(d.lo for d in made), rel=1e-3, abs=room)
        assert said["name"] == max(others, key=lambda s: s.rule.value).name
        nearest = min(d.difference for d in made)
        assert float(said["by"]) == pytest.approx(nearest, rel=1e-3, abs=room)
    assert 10 < told < 50


def shifted(rule: Ruled, by: float) -> Ruled:
    """The same with all values larger by so much."""
    return replace(rule, path=tuple(replace(one, value=one.value + by) for one in rule.path))


def test_more_data_decides_just_then() -> None:
    """With as many as needed the limit passes 0, with one in fifty fewer it does not."""
    rng = np.random.default_rng(9)
    none = 0
    for _ in range(300):
        number = int(rng.integers(50, 2000))
        difference, chance, rare = rng.normal(), rng.exponential(), 3.0 * rng.exponential()
        bounds = [
            (0.5 * rng.exponential(), rng.exponential()) for _ in range(int(rng.integers(1, 3)))
        ]

        def width(
            n: float, had: int = number, chance: float = chance, rare: float = rare,
            bounds: list[tuple[float, float]] = bounds,
        ) -> float:  # fmt: skip
            s = np.sqrt(had / n)
            falling = max(s * chance, s * s * rare + 0.1 * s * chance)  # beyond cuts, a tenth
            return float(falling + sum(max(fixed, s * falls) for fixed, falls in bounds))

        if width(number) <= abs(difference):
            continue
        needed = more(difference, Falling(chance, rare, 0.1 * chance), bounds, number)
        if needed is None:
            none += 1
            assert width(1e16) >= abs(difference) - 1e-6
            continue
        assert width(number + needed + 1) <= abs(difference) * (1.0 + 1e-9)
        assert needed == 1 or width((number + needed) * 0.98) > abs(difference)
    assert 20 < none < 280


def test_without_a_known_bound_no_number_is_named() -> None:
    assert more(1.0, Falling(float("nan")), [(0.1, 0.0)], 100) is None
    assert more(0.0, Falling(1.0), [(0.0, 0.0)], 100) is None
    assert Bias(Reaches(1.0, 2.0), 1.5).reach == Reaches(1.5, 2.0)

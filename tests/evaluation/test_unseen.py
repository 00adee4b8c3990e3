"""What a log cannot show: the bound by hand, stated ranges, and sentences that must be true."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.worlds import DEVELOPMENT, World
from benchmarks.worlds.drl import Fitted, row_scores
from benchmarks.worlds.rows import read
from scipy import optimize

import steadytd as st
from steadytd.base.errors import InputError
from steadytd.evaluation.judge.silence import rarest
from steadytd.evaluation.judge.stated import Stated, stated_range
from steadytd.evaluation.judge.unseen import Resting, Tries, most
from steadytd.evaluation.result import Evaluation
from steadytd.report.evaluation.page import evaluation_page
from tests.support.draws import examples
from tests.support.light_pages import no_pictures

LOG20 = float(np.log(20.0))


@cache
def world(name: str) -> World:
    return DEVELOPMENT[name]()


def evaluated(w: World, log: Any, **how: Any) -> Evaluation:
    return st.evaluate(
        log, discount=w.discount, features=w.features, learners=["drl"], threads=1, **how
    )


@cache
def asked(name: str, seed: int, ranged: bool = False, horizon: int | None = None) -> Evaluation:
    w = world(name)
    return evaluated(
        w, w.log(seed), reward_range=w.reward_range if ranged else None, horizon=horizon
    )


def test_the_most_that_can_be_missing_is_the_largest_of_all_chances() -> None:
    """Against a solver, and against drawn chances that may be missing: none does more."""
    rng, solve = np.random.default_rng(0), cast(Any, optimize.minimize)
    for _ in range(10):
        a = rng.exponential(size=rng.integers(2, 7)) ** 2
        found = most(a, LOG20)
        solved = solve(
            lambda p, a=a: -(a @ p), np.full(len(a), 0.1), jac=lambda p, a=a: -a,
            bounds=[(0.0, 0.999999)] * len(a), method="SLSQP",
            constraints={"type": "ineq", "fun": lambda p: LOG20 + np.log1p(-p).sum()},
        )  # fmt: skip
        assert found == pytest.approx(-solved.fun, rel=1e-2)
        assert found >= -solved.fun * (1.0 - 1e-6)  # the solver may stop early
        for _ in range(200):
            share = rng.dirichlet(np.full(len(a), 0.5))
            assert a @ -np.expm1(-LOG20 * share) <= found * (1.0 + 1e-12)
    assert most(np.zeros(3), LOG20) == 0.0


def test_a_row_that_stands_for_many_counts_like_so_many_rows() -> None:
    a = np.random.default_rng(1).exponential(size=30)
    assert most(a, LOG20, 7.0) == pytest.approx(most(np.repeat(a, 7), LOG20))
    assert most(np.array([2.0]), LOG20, 1e9) == pytest.approx(2.0 * LOG20)  # the rule of three


def test_a_rare_outcome_is_missing_in_one_of_twenty_logs() -> None:
    """Chances by hand: 1 - 20^(-1/k) in k rows."""
    found = rarest(np.ones(250), 1.0)
    assert found is not None and found.rows == 250.0
    assert (1.0 - 1.0 / found.once_in) ** 250 == pytest.approx(0.05)
    assert found.weight == pytest.approx(250.0 / found.once_in)
    steep = rarest(np.append(np.full(100, 9.0), np.ones(900)), 1.0)
    assert steep is not None and steep.rows == 100.0  # where the weights are large
    assert rarest(np.ones(9), 1.0) is None and rarest(-np.ones(90), 1.0) is None


def test_what_an_outcome_does_to_a_difference_depends_on_both_weights() -> None:
    """By hand: rows of a third of weight, many of each, so that 3.0 times the largest counts."""
    weight, own = np.array([3.0, 1.0]), np.array([1.0, 1.5])
    up, down = np.array([2.0, 4.0]), np.array([1.0, 5.0])
    one = Tries(weight, own, up, down, 1e9, 100.0)
    both, apart = one.minus(None)
    assert one.of(one.weight) == pytest.approx((5.0 * LOG20 / 100, 6.0 * LOG20 / 100))
    # row 0: the target goes there by 2 more; row 1: by 0.5 less, so what is good there is bad
    assert both.of(apart) == pytest.approx((2.0 * LOG20 / 100, 4.0 * LOG20 / 100))
    other = Tries(own, own, up + 1.0, down, 1e9, 100.0)
    pair, apart = one.minus(other)
    assert pair.of(apart)[1] == pytest.approx(6.0 * LOG20 / 100)
    bound = replace(one, sampled=False)  # of a bound no difference is known
    assert bound.minus(bound)[1] == pytest.approx(weight)


def test_a_log_without_sampled_rows_is_bounded_by_its_largest_ratio() -> None:
    """An endless log of over 10,000 rows: wider with a wider range, and no number is named."""
    name = "line endless raw"
    w, log = world(name), world(name).log(3)
    near, far = (
        evaluated(w, log, reward_range=known) for known in (w.reward_range, (-2000.0, 2000.0))
    )
    tries = near.judged[0].rule.tries
    assert tries is not None and not tries.sampled and tries.each == 20_000
    assert tries.weight[0] >= near.judged[0].overlap.rho_max / (1.0 - w.discount)
    assert near.compare("pi").trusted and near.compare("pi").decision == "better"
    assert far.compare("pi").decision == "undecided"
    assert asked(name, 3).unseen("pi").change is None


@pytest.mark.parametrize("name", ["garnet onehot near", "queue endless onehot"])
def test_rows_have_the_weights_of_their_scores(name: str) -> None:
    """At lam = 1 with V = 0: U rho of the slow reference, in the order of the log."""
    w = world(name)
    e = asked(name, 3, ranged=True)
    rows, _ = read(w, 3)
    tries = e.judged[0].rule.tries
    assert tries is not None and tries.each == 1.0 and len(tries.weight) == len(rows.reward)
    nothing = np.zeros(len(rows.reward))
    plain = rows._replace(reward=np.ones(len(rows.reward)), rho=np.ones(len(rows.reward)))
    own = row_scores(plain, Fitted(nothing, nothing, nothing), (1.0,))[0, :, 0]
    assert tries.own == pytest.approx(own, rel=1e-5)
    # the target's discounted visits per start are as many as the moment of the rule says
    rule = e.judged[0].rule
    mean = float(tries.weight @ (1.0 - rows.discount)) / tries.starts
    assert mean == pytest.approx(rule.weighing.moment, abs=0.1)


def silent(seed: int, chance: float, size: float, episodes: int = 200) -> tuple[Any, float, float]:
    """One step: action 1 is taken once in ten times, and once in a while costs `size`.

    The table, the target's value, and the behaviour's.
    """
    rng = np.random.default_rng([seed, 5])
    action = (rng.random(episodes) < 0.1).astype(int)
    hit = (action == 1) & (rng.random(episodes) < chance)
    reward = np.where(action == 1, 1.0, 0.5) + 0.2 * rng.choice([-1, 1], episodes) - size * hit
    table = pa.table(
        {
            "episode_id": np.arange(episodes), "t": np.zeros(episodes, dtype=int),
            "obs_0": np.ones(episodes), "action": action, "reward": reward,
            "terminated": np.ones(episodes, dtype=bool),
            "truncated": np.zeros(episodes, dtype=bool),
            "behavior_prob": np.where(action == 1, 0.1, 0.9),
            "target_prob_new": np.full(episodes, 0.5),
        }
    )  # fmt: skip
    rare = 1.0 - chance * size
    return table, 0.5 * rare + 0.25, 0.1 * rare + 0.45


def test_few_tries_are_trusted_only_with_a_stated_range() -> None:
    """20 tries of an action that costs 20 once in 25: in 4 of 9 logs nothing is seen of it."""
    refused = shown = 0
    logs = examples(8, 30)
    for seed in range(logs):
        table, value, own = silent(seed, 0.04, 20.0)
        assert value < own  # so that "better" is wrong
        for known in (None, (-19.5, 1.5)):
            e = st.evaluate(table, discount=0.9, learners=["drl"], threads=1, reward_range=known)
            r, d = e.recommended["new"], e.compare("new")
            seen = table["reward"].to_numpy().min() < -10.0
            few = any(w.code == "few_rows" for w in e.warnings)
            assert r.trusted or few
            assert not r.trusted or (r.lo <= value <= r.hi and d.decision == "undecided")
            assert not few or known is None
            refused += few and not seen
            shown += seen and r.trusted
            assert not few or e.judged[0].rule.noise.number >= 3.0
    assert refused >= logs / 5 and shown >= logs / 2


def test_tries_are_counted_by_weight() -> None:
    """By hand: 40 rows that the target doubles, 60 that it halves; of these 40 it wants more."""
    one = Resting(100.0, 40.0, 0.2, 100.0)
    assert one.too_few == {"rows": (100.0, 500.0), "more": (40.0, 300.0)}
    assert one._replace(kinds=11).too_few["more"] == (40.0, 150.0)
    assert list(one._replace(episodes=9.0).too_few) == ["more", "episodes", "rows"]
    assert not Resting(500.0, 3.0, 0.05, 50.0).too_few  # the target is nearly the behaviour
    table, _, _ = silent(1, 0.0, 0.0)
    e = st.evaluate(table, discount=0.9, learners=["drl"], threads=1)
    taken = int((table["action"].to_numpy() == 1).sum())
    weight = np.where(table["action"].to_numpy() == 1, 5.0, 5 / 9)
    found = e.judged[0].resting
    assert found is not None and found.more == pytest.approx(taken)
    assert found.rows == pytest.approx(weight.sum() ** 2 / (weight @ weight))
    assert found.share == pytest.approx(4.0 * taken / weight.sum())
    assert found.episodes == pytest.approx(found.rows, rel=0.2)


def test_a_range_no_wider_than_the_log_changes_little_and_a_wide_one_much() -> None:
    w = world("bandit far")
    log = w.log(2)
    own = log["reward"].to_numpy()
    plain, near, far = (
        evaluated(w, log, reward_range=known).recommended["pi"]
        for known in (None, (own.min(), own.max()), (-500.0, own.max()))
    )
    assert near.lo <= plain.lo and plain.hi <= near.hi  # never narrower
    assert near.hi - near.lo < 1.5 * (plain.hi - plain.lo)
    assert far.lo < near.lo - 5.0 and far.hi < near.hi + 0.2  # on the side that may be missing


def test_a_horizon_holds_what_lasts() -> None:
    """A pit that is left after some thirty steps, which 80 episodes hardly show."""
    name, right = "trap few", {None: 0, 400: 0}
    trusted = 0
    logs = examples(8, 30)
    for seed in range(60, 60 + logs):
        for horizon, count in right.items():
            r = asked(name, seed, True, horizon).recommended["pi"]
            trusted += r.trusted and horizon is None
            right[horizon] = count + (r.trusted and r.lo <= world(name).truth <= r.hi)
    assert trusted >= logs / 2 and right[None] < trusted and right[400] >= 0.95 * trusted


def test_sums_of_rewards_by_hand() -> None:
    assert Stated(-1.0, 2.0, 1).sums(0.9) == (-1.0, 2.0)
    assert Stated(1.0, 2.0, 4).sums(1.0) == (1.0, 8.0)
    assert Stated(-2.0, -1.0, 10_000).sums(0.5) == pytest.approx((-4.0, -1.0))


@pytest.mark.parametrize(
    "given", [(1.0,), (1.0, 2.0, 3.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0), "ab", 3.0,
              (True, 2.0), ("0", "1"), {0.0: 1.0}],
)  # fmt: skip
def test_a_range_must_be_two_numbers(given: Any) -> None:
    with pytest.raises(InputError, match=r"reward_range must be .*got"):
        stated_range(given, None)


def test_what_the_log_contradicts_is_an_error() -> None:
    w = world("walk onehot")
    log = w.log(1)
    reward = log["reward"].to_numpy()
    first = int(np.flatnonzero(reward == reward.max())[0])
    with pytest.raises(InputError, match=rf"row {first} \(counted from 0\): reward 1 lies outside"):
        evaluated(w, log, reward_range=(reward.min(), 0.5))
    longest = int(log["t"].to_numpy().max()) + 1
    known = (reward.min(), 1.0)
    with pytest.raises(InputError, match=rf"horizon={longest - 1} .* episode of {longest} steps"):
        evaluated(w, log, reward_range=known, horizon=longest - 1)
    assert evaluated(w, log, reward_range=known, horizon=longest).settings["horizon"] == longest
    with pytest.raises(InputError, match="horizon=5 needs reward_range"):
        evaluated(w, log, horizon=5)
    with pytest.raises(InputError, match="horizon must be a whole number"):
        evaluated(w, log, reward_range=known, horizon=0)


SAID = re.compile(r"once in ([\d.,e+]+) times .* if that (\w+(?: or brought)?) ([\d.,e+]+) each")


def test_what_would_turn_a_decision_does_turn_it() -> None:
    """Rewards of the rows that are meant change by chance x size, as they would in the mean.

    Then the difference is 0, up to what V learns from the new rewards: a tenth of the difference.
    Half of the size is not enough. The sentence has two digits of both numbers.
    """
    names = "bandit far", "bandit", "lake4 onehot near", "garnet onehot near", "short queue onehot"
    met = 0
    seeds = range(4, 4 + examples(1, 4))
    for name, seed in itertools.product(names, seeds):
        w, e = world(name), asked(name, seed)
        d, u, rule = e.compare("pi"), e.unseen("pi"), asked(name, seed, ranged=True).judged[0].rule
        if not d.trusted or d.decision == "undecided" or rule.lam != e.judged[0].rule.lam:
            continue
        found = SAID.search(u.text)
        assert found is not None and u.change is not None
        once_in, size = (float(found[i].replace(",", "")) for i in (1, 3))
        assert (once_in, size) == pytest.approx((u.once_in, u.change), rel=0.06)
        assert found[2] == ("cost" if d.decision == "better" else "brought")
        assert f"pi would not be {d.decision}" in u.text
        assert rule.tries is not None and rule.tries.each == 1.0
        order = np.argsort(-(rule.tries.weight - rule.tries.own), kind="stable")[: round(u.rows)]
        log = w.log(seed)
        for part, left in ((1.0, 0.0), (0.5, 0.5)):
            reward = log["reward"].to_numpy().copy()
            reward[order] -= np.sign(d.difference) * part * u.change / u.once_in
            place = log.schema.get_field_index("reward")
            moved = evaluated(w, log.set_column(place, "reward", pa.array(reward)))
            assert _at(moved, rule.lam) / d.difference == pytest.approx(left, abs=0.1), name
        met += 1
    assert met >= 2 * len(seeds)


def _at(e: Evaluation, lam: float) -> float:
    """The difference at a given lam."""
    return e.judged[0].curve[lam].value - e.judged[0].rule.own.value


def test_once_in_so_many_times_is_missing_in_one_of_twenty_logs() -> None:
    """The rows that are meant in a bandit's log are those of one action: draw logs with the event.

    Tolerance: 400 logs, so 5 % is known within 3.3 % (three standard errors).
    """
    table, _, _ = silent(1, 0.0, 0.0)
    u = st.evaluate(table, discount=0.9, learners=["drl"], threads=1).unseen("new")
    taken = int((table["action"].to_numpy() == 1).sum())
    assert u.rows == taken  # the target goes there five times as often
    logs = (np.random.default_rng(3).random((400, taken)) < 1.0 / u.once_in).any(axis=1)
    assert abs((~logs).mean() - 0.05) < 0.033


def test_sentences_stand_where_something_is_trusted_and_only_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    no_pictures(monkeypatch)
    names = "bandit far", "lake4 small", "garnet raw near", "line endless raw"
    met = set()
    for name in names[: examples(2, 4)]:
        for ranged in (False, True):
            e = asked(name, 3, ranged)
            u, trusted = e.unseen("pi"), e.compare("pi").trusted
            assert bool(u.text) == trusted
            assert ("as you state them" in u.text) == (ranged and trusted)
            assert e.to_dict()["unseen"][0]["text"] == u.text
            assert (u.text in str(e).replace("\n", " ")) or not trusted
            assert (u.text.replace("'", "&#39;") in evaluation_page(e)) == trusted or not u.text
            assert any("reward_range" in note for note in e.notes)
            lo, hi = e.log.rewards
            near = (
                u.change is not None
                and not e.judged[0].rule.divided
                and u.change <= 10.0 * (hi - lo)
            )
            helps = "(reward_range) would count that in" in u.text
            assert helps == (near and trusted and not ranged)
            met.add(helps)
    assert met == {True, False}


def test_an_evaluation_with_a_range_is_kept(tmp_path: Any) -> None:
    e = asked("bandit far", 3, True, 7)
    again = st.load_evaluation(e.save(tmp_path / "e.npz"))
    assert again.compare("pi") == e.compare("pi") and again.unseen("pi") == e.unseen("pi")
    assert again.to_dict() == e.to_dict()


def test_episodes_needed_are_fewer_where_rare_outcomes_are_the_reason() -> None:
    """They shrink with the number of episodes: with as many it is decided, with half it is not."""
    said: list[bool] = []
    early: list[bool] = []
    logs = examples(3, 6)
    for seed in range(logs):
        table, *_ = silent(seed, 0.0, 0.0)
        how: dict[str, Any] = {
            "discount": 0.9,
            "learners": ["drl"],
            "threads": 1,
            "reward_range": (-8.0, 1.5),
        }
        d = st.evaluate(table, **how).compare("new")
        assert d.decision == "undecided" and d.episodes_needed
        for times, found in ((1.3, said), (0.5, early)):
            many, *_ = silent(seed, 0.0, 0.0, episodes=int(times * (200 + d.episodes_needed)))
            found.append(st.evaluate(many, **how).compare("new").decision == "better")
    assert sum(said) >= 2 * logs / 3 and sum(early) <= logs / 6


def test_a_single_outlier_is_not_called_a_lack_of_overlap() -> None:
    table, *_ = silent(3, 0.0, 0.0)
    reward = table["reward"].to_numpy().copy()
    reward[7] = 1000.0
    table = table.set_column(table.schema.get_field_index("reward"), "reward", pa.array(reward))
    e = st.evaluate(table, discount=0.9, learners=["drl"], threads=1)
    assert not [w.code for w in e.warnings if w.level == "warning"]
    (found,) = [w for w in e.warnings if w.code == "few_decide"]
    assert "to 1000" in found.text and "few episodes are unlike all others" in found.text
    d = e.compare("new")
    assert d.trusted and d.decision == "undecided" and d.hi - d.lo > 20.0  # it is wide

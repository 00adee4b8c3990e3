"""What evaluation says about logs in which there is little to say."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import steadytd as st
from steadytd.evaluation.decide import Decision
from steadytd.report.evaluation import text as words
from steadytd.report.evaluation.text import policy_rows
from tests.support.draws import thinned
from tests.support.evaluate_helpers import Identity
from tests.support.log_helpers import fixed_lists, log_table
from tests.support.logged_worlds import episodic


def log(seed: int, rewards: str, target: str, episodes: int = 60) -> Any:
    """Episodes of five steps of a coin's two actions."""
    rng = np.random.default_rng(seed)
    n = 5 * episodes
    t, action = np.arange(n) % 5, (rng.random(n) < 0.5).astype(int)
    reward = {"none": np.zeros(n), "one": np.ones(n), "by action": action + rng.normal(size=n)}
    pi = {"same": np.full(n, 0.5), "other": np.where(action == 1, 0.8, 0.2)}
    pi["close"] = np.where(action == 1, 0.62, 0.38)
    pi["far"] = np.where(action == 1, 0.98, 0.02)
    return pa.table(
        {
            "episode_id": np.arange(n) // 5, "t": t, "obs": fixed_lists(rng.normal(size=(n, 2))),
            "action": action, "reward": reward[rewards], "terminated": t == 4,
            "truncated": np.zeros(n, dtype=bool), "behavior_prob": np.full(n, 0.5),
            "target_prob_pi": pi[target],
        }
    )  # fmt: skip


def evaluated(*how: Any) -> st.Evaluation:
    return st.evaluate(log(*how), discount=0.9, learners=["lstd"], threads=1)


@pytest.mark.parametrize("seed", range(4))
def test_a_log_without_rewards_says_that_nothing_varies(seed: int) -> None:
    e = evaluated(seed, "none", "other")
    (line,) = words.decision_lines(e)
    assert "All units have the same score" in line.text and line.grade == "bad"
    assert e.compare("pi").episodes_needed is None and "more episodes" not in e.compare("pi").text
    assert "the same value" in e.sensitivity("pi").text


@pytest.mark.parametrize("seed", range(4))
def test_a_target_like_the_behaviour_is_said_to_be_it(seed: int) -> None:
    e = evaluated(seed, "by action", "same")
    d = e.compare("pi")
    assert abs(d.difference) < 1e-9 and d.decision == "undecided" and d.lo <= 0.0 <= d.hi
    assert "there is nothing to decide" in d.text and "does not show" not in str(e)
    assert "the same value" in e.sensitivity("pi").text
    _, row = policy_rows(e)
    assert (row["difference"], row["difference_interval"]) == ("the same", "")


@pytest.mark.parametrize("seed", range(4))
def test_a_target_that_differs_in_one_row_is_another(seed: int) -> None:
    rows = log(seed, "by action", "same")
    pi = np.full(len(rows), 0.5)
    pi[seed] = 0.5 + 1e-6
    rows = rows.set_column(rows.schema.get_field_index("target_prob_pi"), "target_prob_pi", [pi])
    d = st.evaluate(rows, discount=0.9, learners=["lstd"], threads=1).compare("pi")
    assert not d.same and "does not show" in d.text


@pytest.mark.parametrize("seed", range(3))
def test_sensitivity_is_about_the_difference_that_was_decided(seed: int) -> None:
    """However large the values are beside it: here all rewards are about 100,000."""
    rng, n = np.random.default_rng(seed), 600
    action = (rng.random(n) < 0.5).astype(int)
    columns = {
        "episode_id": np.arange(n), "t": np.zeros(n, dtype=int), "action": action,
        "obs": fixed_lists(np.ones((n, 1))), "reward": 1e5 + action + 0.1 * rng.normal(size=n),
        "terminated": np.ones(n, dtype=bool), "truncated": np.zeros(n, dtype=bool),
        "behavior_prob": np.full(n, 0.5), "target_prob_pi": np.where(action == 1, 0.8, 0.2),
    }  # fmt: skip
    e = st.evaluate(pa.table(columns), discount=0.9, learners=["lstd"], threads=1)
    d, said = e.compare("pi"), e.sensitivity("pi")
    assert d.decision == "better" and said.text.startswith("pi is better unless")
    assert said.value - said.behavior == pytest.approx(d.difference, rel=1e-6)


def test_no_zero_has_a_sign_and_needed_episodes_are_named_only_where_they_help() -> None:
    """Over drawn decisions: what the sentence says is what the numbers are."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        value = rng.choice([0.0, rng.normal(), 1e-6 * rng.normal()])
        down, up = rng.exponential(size=2)
        lo, hi = value - down, value + up
        said = "better" if lo > 0.0 else "worse" if hi < 0.0 else "undecided"
        needed = 0 if said != "undecided" else None if rng.random() < 0.5 else 40
        needed = None if value == 0.0 else needed
        d = Decision("pi", None, value, lo, hi, said, True, needed, 0.95, ())  # type: ignore[arg-type]
        assert not re.search(r"-0\.?0*(?![\d.])", d.text), d.text
        told = "more episodes would decide with probability 1/2"
        assert (told in d.text) == bool(needed)
        assert ("may not decide" in d.text) == (said == "undecided" and needed is None)


@pytest.mark.slow
def test_as_many_more_episodes_as_are_named_give_an_even_chance_to_tell() -> None:
    """Logs of that many episodes, drawn from the log's: its difference is the true one."""
    told = []
    for seed in range(60):
        rows = log(seed, "by action", "close", episodes=40)
        d = st.evaluate(rows, discount=0.9, learners=["lstd"]).compare("pi")
        if d.decision != "undecided" or not d.episodes_needed or d.episodes_needed > 1000:
            continue
        rng, episode = np.random.default_rng(seed), rows["episode_id"].to_numpy()
        for _ in range(3):
            drawn = rng.integers(0, 40, size=40 + d.episodes_needed)
            places = [np.flatnonzero(episode == e) for e in drawn]
            more = rows.take(np.concatenate(places))
            number = np.repeat(np.arange(len(drawn)), [len(p) for p in places])
            more = more.set_column(
                more.schema.get_field_index("episode_id"), "episode_id", [number]
            )
            again = st.evaluate(more, discount=0.9, learners=["lstd"]).compare("pi")
            told.append(again.decision != "undecided")
    # a share of about 30 draws has a standard error of 0.09
    assert len(told) >= 24 and 0.25 < np.mean(told) < 0.85


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strength", "seed", "first"), [(0.3, 0, 1), (0.3, 5, 1), (0.6, 0, 1), (1.0, 0, 0), (1.0, 3, 0)]
)
def test_no_log_says_that_more_episodes_would_not_tell(
    strength: float, seed: int, first: int
) -> None:
    """Exact features: the bound of the bias of 100 episodes is chance, and 12,000 decide."""
    p = episodic(6, strength, np.eye(6), seed=seed)
    few, many = (
        st.evaluate(log_table(p, targets={"pi": p.pi}, episodes=n, length=200, seed=drawn),
                    features=Identity(), learners=["lstd"]).compare("pi")
        for n, drawn in ((100, first), (12_000, first + 77))
    )  # fmt: skip
    assert many.decision != "undecided" and few.decision == "undecided" and few.trusted
    assert "would not decide" not in few.text
    assert few.episodes_needed or "may not decide" in few.text


@pytest.mark.parametrize("seed", range(2))
def test_of_equal_targets_none_has_the_largest_value(seed: int) -> None:
    rows = log(seed, "by action", "other", episodes=40)
    rows = rows.append_column("target_prob_twin", rows["target_prob_pi"])
    best = st.evaluate(rows, discount=0.9, learners=["lstd"]).best
    assert best.target is None and "does not show" in best.text
    ends = rows.schema.get_field_index("terminated")
    row = rows.slice(0, 1).set_column(ends, "terminated", [[True]])
    one = st.evaluate(row, discount=0.9, learners=["lstd"]).best
    assert "none has a value with an interval" in one.text and "largest" not in one.text


def test_a_target_that_does_nothing_logged_leaves_the_terminal_alone(
    capfd: pytest.CaptureFixture[str],
) -> None:
    rows = log(0, "by action", "other", episodes=30)
    place = rows.schema.get_field_index("target_prob_pi")
    rows = rows.set_column(place, "target_prob_pi", [np.zeros(len(rows))])
    e = st.evaluate(rows, discount=0.9, learners=["lstd"])
    assert "ratios_off" in e.compare("pi").reasons
    assert "td_unstable" not in {w.code for w in e.warnings}  # nothing moves
    assert "is not known" in e.sensitivity("pi").text
    assert "".join(capfd.readouterr()) == ""


def test_an_interval_that_excludes_0_does_not_look_as_if_it_held_it() -> None:
    """Over drawn decisions, many of them close: both printed ends have the signs of the numbers."""
    rng, close = np.random.default_rng(3), 0
    for _ in range(500):
        width = 10.0 ** rng.uniform(-3.0, 5.0)
        lo = rng.choice([-1.0, 1.0]) * width * 10.0 ** rng.uniform(-5.0, 0.0)
        hi, value = lo + width, lo + width * rng.random()
        said = "better" if lo > 0.0 else "worse" if hi < 0.0 else "undecided"
        d = Decision("pi", None, value, lo, hi, said, True, 0, 0.95, ())  # type: ignore[arg-type]
        ends = re.findall(r"% interval (\S+) to (\S+)\)", d.text)[0]
        wanted = (-hi, -lo) if said == "worse" else (lo, hi)
        shown = words.interval_text(lo, hi).split(" to ")
        assert (
            np.sign([float(x.replace(",", "")) for x in (*ends, *shown)]).tolist()
            == np.sign([*wanted, lo, hi]).tolist()
        ), (d.text, shown)
        close += abs(lo) < 0.01 * width
    assert close > 100


@pytest.mark.parametrize(
    ("unit", "features", "said"),
    [
        (1e39, "raw", "must lie between -1e\\+30 and 1e\\+30"),
        (1.0, "poly:90", "Use features of a lower degree"),
    ],
)
def test_numbers_that_are_too_large_are_refused(unit: float, features: str, said: str) -> None:
    """Sums of products would lose all digits of the others."""
    rows = log(0, "by action", "other")
    place = rows.schema.get_field_index("reward")
    rows = rows.set_column(place, "reward", [rows["reward"].to_numpy() * unit])
    rows = rows.set_column(
        rows.schema.get_field_index("obs"),
        "obs",
        [pa.array(np.random.default_rng(0).normal(size=len(rows)))],
    )
    with pytest.raises(st.InputError, match=said):
        st.evaluate(rows, discount=0.9, features=features, learners=["lstd"], threads=1)


@pytest.mark.parametrize("degree", [60, 80, 99])
@pytest.mark.parametrize("seed", thinned(range(3), 3))
def test_features_that_rounding_makes_dependent_have_a_stability(degree: int, seed: int) -> None:
    """Powers of three observations: all but three of them say the same."""
    rows = log(seed, "by action", "other")
    place = rows.schema.get_field_index("obs")
    obs = np.random.default_rng(seed).choice(3, size=len(rows), p=[0.35, 0.25, 0.4])
    rows = rows.set_column(place, "obs", [pa.array(obs.astype(float))])
    e = st.evaluate(rows, discount=0.9, features=f"poly:{degree}", learners=["lstd"], threads=1)
    exact = st.evaluate(rows, discount=0.9, features="onehot", learners=["lstd"], threads=1)
    one, other = (x.stability["eta_pd"][0] for x in (exact, e))
    # products of such powers keep three or four of their digits
    assert other == pytest.approx(one, abs=1e-2) and e.stability["rank"][0] == 3

"""What evaluation advises, and why: remedies and reasons, on drawn logs in which they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import steadytd as st
from steadytd.cli.console import out
from steadytd.cli.evaluate_page import print_sensitivity, print_stability
from steadytd.cli.main import app
from steadytd.evaluation.judge.decide import Decision
from steadytd.evaluation.result import Evaluation
from steadytd.logs.write import write_log
from steadytd.report.evaluation import words
from steadytd.report.evaluation.page import evaluation_page
from tests.support.draws import thinned
from tests.support.log_helpers import fixed_lists, log_table
from tests.support.logged_worlds import episodic

STATES = 5
Targets = Mapping[str, float]
PI: Targets = {"pi": 0.5}


def drawn(
    seed: int, episodes: int, targets: Targets = PI, reward: str = "normal", cut: int = 40
) -> Any:
    """Episodes of a random world of five states; targets by how far they are from the log's."""
    p = episodic(STATES, 0.0, np.eye(STATES), seed=seed)
    policies = {}
    for name, strength in targets.items():
        pi = p.mu ** (1.0 + strength)
        policies[name] = pi / pi.sum(axis=1, keepdims=True)
    table = log_table(p, episodes=episodes, length=cut, seed=seed, targets=policies)
    if reward == "one":
        place = table.schema.get_field_index("reward")
        table = table.set_column(place, "reward", [np.ones(len(table))])
    return table


def found(e: Evaluation, code: str) -> list[Any]:
    return [w for w in e.warnings if w.code == code]


def evaluated(table: Any, **options: Any) -> Evaluation:
    return st.evaluate(table, threads=1, **{"features": "raw", **options})


@pytest.mark.parametrize("seed", thinned(range(6), 3))
def test_why_a_value_is_out_of_its_range_depends_on_the_learner(seed: int) -> None:
    """Rewards are all 1. Each remedy is followed: the value that it names is within the range."""
    e = evaluated(
        drawn(seed, 60, {"pi": 1.5}, "one"),
        learners=["lstd", "perturbed_lstd:eta=0.5", "tdc", "td:alpha=1e-5", "snpdis", "pdis"],
    )
    said = {w.numbers["learner"]: w for w in found(e, "value_range")}
    values = {v["learner"]: v for v in e.values.to_dicts()}
    for name, w in said.items():
        lo, hi = w.numbers["lo"] - 1e-6, w.numbers["hi"] + 1e-6
        other = {
            "fixed point": values[name]["fixed_point"], "penalty": values["lstd"]["value"],
            "snpdis": values["snpdis"]["value"],
        }  # fmt: skip
        named = [value for word, value in other.items() if word in w.remedy]
        assert all(lo <= value <= hi for value in named), (name, w.remedy)
        assert bool(named) == (name not in ("lstd", "drl", "snpdis")), (name, w.remedy)
        assert ("other features" in w.remedy) == (not named)
    assert "td:alpha=1e-5" in said


@pytest.mark.parametrize("times", [0.7, 0.8, 1.25, 1.4])
@pytest.mark.parametrize("seed", thinned(range(4), 4))
def test_missing_actions_are_blamed_only_for_a_mean_ratio_below_1(seed: int, times: float) -> None:
    """Logged probabilities are wrong by a factor; what the log never shows cannot raise a mean."""
    table = drawn(seed, 150)
    place = table.schema.get_field_index("behavior_prob")
    mu = np.minimum(table["behavior_prob"].to_numpy() / times, 1.0)
    e = evaluated(table.set_column(place, "behavior_prob", [mu]), learners=["lstd"])
    (w,) = found(e, "ratios_off")
    above = w.numbers["rho_mean"] > 1.0
    assert above == (times > 1.0)
    assert ("the log never shows" in w.text) == ("actions of the beh" in w.remedy) == (not above)
    assert "the logged probabilities are not right" in w.text and "behavior_prob" in w.remedy


def test_estimated_probabilities_are_not_called_logged() -> None:
    """And no limit of an interval that excludes 1 is shown as 1. Few rows are counted."""
    met = 0
    for seed in range(8):
        p = episodic(12, 0.0, np.eye(12), seed=seed)
        table = log_table(p, episodes=72, length=40, seed=seed, targets={"pi": p.mu})
        e = evaluated(table.drop_columns(["behavior_prob"]), behavior="estimate", learners=["drl"])
        for w in found(e, "ratios_off"):
            assert "the estimated probabilities" in w.text and "Check behavior" not in w.remedy
            (said,) = re.findall(r"is (\S+) \(99.9 % interval (\S+) to (\S+)\)", w.text)
            mean, lo, hi = map(float, said)
            assert lo <= mean <= hi and not lo <= 1.0 <= hi
            assert lo == pytest.approx(w.numbers["lo"], rel=1e-3)
            met += 1
    assert met >= 4


@pytest.mark.parametrize("episodes", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("seed", thinned(range(4), 4))
def test_small_logs_are_not_said_to_have_outliers(seed: int, episodes: int) -> None:
    """Of ten units three decide the error by chance alone: no episode is unlike the others."""
    e = evaluated(drawn(seed, episodes, {"near": 0.5, "same": 0.0}), learners=["lstd"])
    assert len(e.judged[0].rule.estimate.influence) >= 20 or not found(e, "few_decide")
    assert found(e, "few_episodes")


@pytest.mark.parametrize("seed", thinned(range(4), 4))
def test_where_nothing_varies_stretches_are_not_called_alike(seed: int) -> None:
    """Rewards of 1 without end: what is left is rounding, and a longer log would not change it."""
    p = episodic(STATES, 0.5, np.eye(STATES), seed=seed)
    q = st.Problem(
        name="q", P=p.P, r=p.r, gamma=np.full(p.P.shape, 0.9), mu=p.mu, pi=p.pi, Phi=p.Phi
    )
    table = log_table(q, episodes=1, length=1200, seed=seed)
    place = table.schema.get_field_index("reward")
    e = evaluated(table.set_column(place, "reward", [np.ones(len(table))]), learners=["lstd"])
    assert found(e, "no_variation") and not found(e, "stretches_alike")


@pytest.mark.parametrize("seed", thinned(range(4), 4))
def test_of_the_logs_own_policy_nothing_is_said_that_only_others_do(seed: int) -> None:
    e = evaluated(drawn(seed, 25, {"near": 0.5, "same": 0.0}, "one"), learners=["lstd"])
    mine = " ".join(w.text for w in e.warnings if w.target == "same")
    assert e.decisions[1].same
    assert "ratios multiply" not in mine and "does more often" not in mine
    assert any("ratios multiply" in w.text for w in e.warnings if w.target == "near")


@pytest.mark.parametrize("seed", thinned(range(4), 4))
def test_every_finding_stands_beside_its_own_remedy(seed: int) -> None:
    """On the page and on the terminal: targets of one finding may need different things."""
    table = drawn(seed, 60, {"near": 1.0, "far": 8.0})
    idle = pa.array(np.zeros(len(table)))
    e = evaluated(table.append_column("target_prob_idle", idle), learners=["lstd", "pdis"])
    groups = words.grouped(e.warnings)
    beside = {(i["target"], i["text"]): g["remedy"] for g in groups for i in g["items"]}
    for w in e.warnings:
        assert beside[w.target, w.text] == w.remedy
    unlike = {w.remedy for w in found(e, "unlike_target")}
    assert len(unlike) > 1  # one remedy for all of them would be false


@pytest.mark.parametrize("seed", thinned(range(4), 4))
def test_a_decision_that_is_not_trusted_says_so_wherever_it_is_read(seed: int) -> None:
    for episodes, targets in ((9, {"pi": 0.5}), (9, {"one": 0.5, "two": 2.0}), (300, {"pi": 0.5})):
        e = evaluated(drawn(seed, episodes, targets), learners=["lstd"])
        for d, shown in zip(e.decisions, e.to_dict()["decisions"], strict=True):
            for text in (d.text, shown["text"], e.compare(d.target).text):
                assert ("cannot be trusted: " in text) == (not d.trusted) == bool(d.reasons)
                assert all(code in text for code in d.reasons)
        assert e.best.text.count("can be trusted") + e.best.text.count("be trusted") <= 2
        assert ("be trusted" in e.best.text) == (not all(d.trusted for d in e.decisions))


def test_a_level_below_100_is_not_printed_as_100() -> None:
    for many in (1, 2, 3, 7, 50, 1000, 2000, 100_000):
        level = 1.0 - 0.05 / many
        d = Decision("pi", None, 1.0, 0.5, 1.5, "better", True, 0, level, ())
        untrusted = Decision("pi", None, 1.0, 0.5, 1.5, "better", False, 0, level, ("few_rows",))
        for text in (d.text, words.decision(untrusted)):
            (said,) = re.findall(r"\((\S+) % interval", text)
            assert 100.0 - float(said) == pytest.approx(5.0 / many, rel=0.05)


@pytest.mark.parametrize("seed", thinned(range(3), 3))
def test_the_remedy_for_rows_left_out_is_true_with_and_without_the_column(seed: int) -> None:
    """Followed: with next_obs in these rows alone nothing is left out."""
    table = drawn(seed, 60, cut=3)
    empty = table.set_column(
        table.schema.get_field_index("next_obs"), "next_obs",
        pa.nulls(len(table), table.schema.field("next_obs").type),
    )  # fmt: skip
    for log in (table.drop_columns(["next_obs"]), empty):
        (w,) = found(evaluated(log, learners=["lstd"]), "rows_left_out")
        assert "next_obs there" in w.remedy and "Add the column" not in w.remedy
    assert not found(evaluated(table, learners=["lstd"]), "rows_left_out")


def printed(show: Any, e: Evaluation) -> str:
    with pytest.MonkeyPatch.context() as patched, out.capture() as shown:
        patched.delenv("COLUMNS", raising=False)  # no wrapping, as in a pipe
        show(e)
    return " ".join(shown.get().split())


def test_many_targets_are_not_left_out_without_a_word() -> None:
    e = evaluated(drawn(1, 60, {f"t{k}": 0.1 * k for k in range(9)}), learners=["drl"])
    shown = printed(print_sensitivity, e)
    assert len(re.findall(r"\bt\d (?:at least|more than|not)", shown)) == 6
    assert "of 6 of 9 targets" in shown


@pytest.mark.parametrize("seed", thinned(range(3), 3))
def test_quantiles_of_cut_returns_are_said_to_be_cut(seed: int) -> None:
    """They are those of the logged parts, which lie nearer 0 than whole returns of rewards of 1."""
    cut, whole = (evaluated(drawn(seed, 300, PI, "one", n), learners=["lstd"]) for n in (4, 400))
    (w,) = found(cut, "truncated_returns")
    assert "quantiles of the return" in w.text and not found(whole, "truncated_returns")
    upper = [
        e.quantiles("pi").filter(what="quantile", level=0.75)["value"][0] for e in (cut, whole)
    ]
    assert upper[0] <= 4.0 < upper[1]


@pytest.mark.parametrize("seed", thinned(range(2), 2))
def test_the_stability_table_tells_not_stable_from_unstable(seed: int) -> None:
    """In one of three states the target does nothing that was logged: that mode stays as it is."""
    rng, n = np.random.default_rng(seed), 600
    state, t = rng.integers(3, size=n), np.arange(n) % 4
    columns = {
        "episode_id": np.arange(n) // 4, "t": t, "obs": fixed_lists(np.eye(3)[state]),
        "reward": rng.normal(size=n), "terminated": t == 3, "behavior_prob": np.full(n, 0.5),
        "target_prob_pi": np.where(state == 2, 0.0, rng.choice([0.25, 0.75], size=n)),
    }  # fmt: skip
    e = evaluated(pa.table(columns), discount=0.9, learners=["lstd"])
    assert e.stability["slowest"].to_list() == [0.0]
    assert "not stable" in printed(lambda x: print_stability(x, "Stability"), e)
    assert ">not stable<" in evaluation_page(e) and ">unstable<" not in evaluation_page(e)


@pytest.mark.parametrize("seed", thinned(range(4), 4))
def test_a_sum_of_rewards_without_end_is_not_blamed_on_the_log(seed: int) -> None:
    """Discount 1, and no episode ends: followed, the remedy gives a value by a lam."""
    p = episodic(STATES, 0.5, np.ones((STATES, 1)), seed=seed)
    q = st.Problem(name="q", P=p.P, r=p.r, gamma=np.ones(p.P.shape), mu=p.mu, pi=p.pi, Phi=p.Phi)
    table = log_table(q, episodes=1, length=1500, seed=seed)
    e = evaluated(table, learners=["lstd"])
    assert found(e, "no_end") and not found(e, "low_overlap")
    assert {"discount below 1" in w.remedy for w in found(e, "td_unstable")} == {True}
    below = evaluated(table.drop_columns(["discount"]), discount=0.9, learners=["lstd"])
    assert not found(below, "no_end") and not found(below, "td_unstable")
    assert below.judged[0].rule.carried


def test_the_page_of_a_log_without_episodes_does_not_speak_of_them() -> None:
    p = episodic(STATES, 0.5, np.eye(STATES), seed=1)
    table = log_table(p, episodes=40, length=40, seed=1)
    by_state, by_episode = (
        evaluation_page(evaluated(table, learners=["lstd"], value_at=where))
        for where in ("states", "start")
    )
    assert "the policy that made the log, state by state." in by_state
    assert "the policy that made the log, episode by episode." in by_episode
    one = table.slice(0, 1)
    place = one.schema.get_field_index("terminated")
    page = evaluation_page(
        evaluated(one.set_column(place, "terminated", [[True]]), learners=["lstd"])
    )
    assert "From a log of another policy: 1 row, 1 episode." in page


def test_certifying_a_log_warns_of_wrong_probabilities(tmp_path: Any) -> None:
    """Its thresholds rest on the ratios as everything does."""
    table = drawn(3, 200)
    place = table.schema.get_field_index("behavior_prob")
    wrong = table.set_column(place, "behavior_prob", [table["behavior_prob"].to_numpy() * 0.7])
    said = []
    for name, log in (("right", table), ("wrong", wrong)):
        path = write_log(tmp_path / f"{name}.parquet", log)
        done = CliRunner().invoke(app, ["certify", str(path)])
        assert done.exit_code == 0, done.output
        said.append("probabilities_off" in done.output)
    assert said == [False, True]


def test_a_discount_of_0_is_not_replaced_by_the_samples_own() -> None:
    done = CliRunner().invoke(app, ["evaluate", "--sample", "--discount", "0", "--learner", "lstd"])
    assert done.exit_code == 0, done.output
    assert "--discount 0 --features" in " ".join(done.output.split())

"""The commands on problems of average reward."""

from __future__ import annotations

from pathlib import Path

import pytest

import steadytd as st
from steadytd.runs.measures import goal
from tests.support.commands import Command


def test_certify_prints_the_rate_and_what_to_use(steadytd: Command) -> None:
    out = steadytd("certify", "queue", "--eta", "0.1", "--full")
    text = " ".join(out.split())
    assert "queue: the target policy earns -0.6104 a step. Use differential_td with ratio" in text
    assert "true rate: -0.6104" in text and "td_stable:" in text and "penalty:" in text
    assert "the paper" not in text  # of its bounds, none is about this
    c = st.certify("queue")
    row = c.path([0.1]).row(0, named=True)
    assert f"{row['error']:.4g} {row['rate']:.4g}" in text


def test_the_document_the_page_and_single_runs(steadytd: Command, tmp_path: Path) -> None:
    found = steadytd.json("certify", "average_baird", "--cures", "--alpha", "0.01")
    assert found["unstable_ratios"] == [[0.0, pytest.approx(2 / 7)]]
    assert {row["cure"] for row in found["cures"]} == {row["learner"] for row in found["learners"]}
    assert len(found["at_alpha"]["learners"]) == 3
    steadytd("certify", "average_baird", "--out", str(tmp_path / "page"))
    page = (tmp_path / "page" / "certificate.html").read_text(encoding="utf-8")
    assert "the target policy earns 0 a step" in page and "differential_gtd2" in page


def test_a_proof_is_refused(steadytd: Command, tmp_path: Path) -> None:
    file = str(tmp_path / "proof.json")
    message = steadytd.error("certify", "queue", "--eta", "0.1", "--proof", file)
    assert "queue asks for the average reward, and this is about discounted values" in message


def test_show_and_run(steadytd: Command) -> None:
    assert steadytd.json("show", "queue")["reward_rate"] == st.problem("queue").rate
    learners = ["differential_td:alpha=0.01", "perturbed_differential_td:alpha=0.01,eta=auto"]
    rows = steadytd.json("run", "queue", *learners, "--steps", "300", "--seeds", "2")
    assert [row["algorithm"] for row in rows] == [one.partition(":")[0] for one in learners]
    assert "td learns discounted values" in steadytd.error("run", "queue", "td:alpha=0.1")


def test_a_study(steadytd: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'title = "mine"\nsteps = 200\nseeds = 2\n\n[[problems]]\nname = "queue"\n\n[[learners]]\n'
        'name = "differential_td"\nalpha = [0.01, 0.02]\n',
        encoding="utf-8",
    )
    out = steadytd("study", str(file), "--out", str(tmp_path / "results"))
    assert "differential_td" in out
    assert "queue" in steadytd("report", str(tmp_path / "results"))
    with pytest.raises(st.InputError, match="projected Bellman error is defined with a discount"):
        goal(st.problem("queue"), 0, ["projected_bellman"])

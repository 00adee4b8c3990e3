"""Whatever is advertised runs: every command of the documents, every script, every make target.

A command runs at its smallest size, in a directory that all of them share, from the README on. What
it needs and the directory lacks is made by the command that the documents name for it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import closing
from itertools import takewhile
from pathlib import Path

import polars as pl
import pytest

import steadytd as st
from steadytd.learners import algorithm, written
from steadytd.learners import names as learner_names
from steadytd.logs.example import sample_log
from tests.support.cases import is_quick
from tests.support.commands import call
from tests.support.light_pages import no_pictures

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
TOOL = r"(?:(?:steadytd|make|pip|uv pip)\s|python\s[\w/]+\.py\b)"
LINE = re.compile(rf"^ *(?:\$ )?({TOOL}.*)$", re.MULTILINE)
INDENTED = re.compile(rf"^ {{4}}({TOOL}.*)$", re.MULTILINE)
QUOTED = re.compile(rf"`({TOOL}[^`]*)`")


def commands(text: str) -> list[str]:
    """The commands of a page: in fenced and indented blocks and in quotes, without remarks."""
    blocks = [body for kind, body in FENCE.findall(text) if kind != "python"]
    prose = FENCE.sub("", text)
    found = [line for body in blocks for line in LINE.findall(body)]
    found += INDENTED.findall(prose) + QUOTED.findall(prose)
    return [" ".join(re.sub(r"\s#.*", "", one).split()) for one in found]


def advertised() -> list[str]:
    """All commands once, in the order of the pages, and all scripts that no page names."""
    found = [one for page in PAGES for one in commands(page.read_text(encoding="utf-8"))]
    named = {word for one in found for word in one.split()}
    scripts = [
        script
        for folder in ("benchmarks", "examples")
        for file in sorted((ROOT / folder).glob("*.py"))
        if (script := f"{folder}/{file.name}") not in named and takes_quick(file)
    ]
    return list(dict.fromkeys([*found, *(f"python {script}" for script in scripts)]))


def takes_quick(script: Path) -> bool:
    """Whether a script has a smaller size; `test_examples` runs the examples that are small."""
    return '"--quick"' in script.read_text(encoding="utf-8")


# What is run instead, where a document leaves a place open, or where the whole would take too long.
INSTEAD = {
    "steadytd certify NAME": "steadytd certify three_state",
    "steadytd certify P --alpha 1e-4": "steadytd certify three_state --alpha 1e-4",
    "steadytd certify NAME --eta ETA --proof FILE":
        "steadytd certify three_state --eta 0.5 --proof proof.json",
    "steadytd verify FILE": "steadytd verify proof.json",
    "python verify.py proof.json": "python src/steadytd/theory/proof/verify.py proof.json",
    "steadytd show problem NAME": "steadytd show problem three_state",
    "steadytd show learner NAME --kernel": "steadytd show learner td --kernel",
    "steadytd study FILE": "steadytd study mine.toml",
    "steadytd report DIR": "steadytd report results/mine",
    "steadytd report DIR --law my_laws.py": "steadytd report results/mine --law my_laws.py",
    "steadytd study quick": "steadytd study studies/quick.toml",
    "steadytd study studies/NAME.toml": "steadytd study studies/quick.toml",
    "steadytd evaluate log.parquet --discount 0.99 --features rbf:300 --out results/log":
        "steadytd evaluate log.parquet --discount 0.99 --features rbf:9 --out results/log",
    "steadytd lab": "steadytd lab --out lab.html",
    "steadytd lab --law my_laws.py": "steadytd lab --law my_laws.py --out lab.html",
    "steadytd lab --problem mine.npz --law my_laws.py":
        "steadytd lab --problem mine.npz --law my_laws.py --out lab.html",
    "steadytd reproduce": "steadytd reproduce --figure 1 --runs 1",
    "steadytd reproduce --figure 1": "steadytd reproduce --figure 1 --runs 1",
    "steadytd reproduce --json": "steadytd reproduce --figure 1 --runs 1 --json",
    "steadytd reproduce --supplement": "steadytd reproduce --supplement --runs 1",
    "python docs/run_snippets.py": "python docs/run_snippets.py docs/page.md",
    "python examples/clinic.py results/clinic_2600.parquet --patients 2600":
        "python examples/clinic.py results/clinic_2600.parquet --patients 100",
    "python examples/cartpole_log.py results/cartpole_log.parquet":
        "python examples/cartpole_log.py results/cartpole_log.parquet --episodes 40",
}  # fmt: skip
SMALL = {"--steps": "20", "--seeds": "2", "--points": "5"}
MADE_BY = {
    "proof.json": "steadytd certify NAME --eta ETA --proof FILE",
    "results/cartpole_log.parquet": "python examples/cartpole_log.py results/cartpole_log.parquet",
    "results/clinic.parquet": "python examples/clinic.py results/clinic.parquet",
    "results/clinic_careless.parquet":
        "python examples/clinic.py results/clinic_careless.parquet --careless",
    "results/clinic_2600.parquet":
        "python examples/clinic.py results/clinic_2600.parquet --patients 2600",
    "results/cures": "steadytd study studies/cures.toml",
    "results/mine": "steadytd study mine.toml",
    "results/quick": "steadytd study quick",
    "shop.json": "steadytd monitor shop.json monday.parquet --reward-range 0,1",
}  # fmt: skip
SLOW = re.compile(
    r"steadytd reproduce|engine dask|study studies/(?!quick)|report results/(?!quick|mine)"
    r"|benchmarks/(horde|logs|sizes|soak)|examples/horde|trust.py(?!.*--part)|drl_q|--only traces"
    r"|cure_wins|certificate_right"
)
NO_BROWSER = "this benchmark needs Playwright and Chromium; `make test-browser` installs both"
CLUSTER = "tcp://head:8786"
MINE = """
problem = "three_state"
steps = 20
seeds = 2
[[learners]]
name = "td"
alpha = [0.01, 0.1]
"""
LAWS = """
import steadytd as st

@st.law(writes={"w": "x"})
def my_law(reward, rho, gamma_next, w_x, w_x_next, alpha):
    return alpha * rho * (reward + gamma_next * w_x_next - w_x)
"""


def smaller(study: str) -> str:
    """A study with the same problems and learners, few steps, seeds and values."""
    text = re.sub(r"^(steps|every) = .*", lambda m: f"{m[1]} = 20", study, flags=re.MULTILINE)
    text = re.sub(r"\bseeds = (?!0)[\d_]+", "seeds = 2", text)
    return re.sub(r"log2 = \[.*?\]", "log2 = [-8, -7]", text)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that documents take for granted."""
    made = tmp_path_factory.mktemp("place")
    for name in ("studies", "logs", "docs"):
        (made / name).mkdir()
    for file in (ROOT / "studies").glob("*.toml"):
        text = smaller(file.read_text(encoding="utf-8"))
        (made / "studies" / file.name).write_text(text, encoding="utf-8")
    (made / "mine.toml").write_text(MINE)
    (made / "my_laws.py").write_text(LAWS)
    st.problem("three_state").save(made / "mine.npz")
    shutil.copy(sample_log(made / "log.parquet"), made / "logs")
    for day, reward in (("monday", 0.0), ("tuesday", 1.0)):
        batch = pl.DataFrame({
            "episode_id": range(30), "t": 0, "obs_0": 1.0, "reward": reward, "terminated": True,
            "behavior_prob": 0.5, "target_prob_new": 0.5, "user_id": range(30),
        })  # fmt: skip
        batch.write_parquet(made / f"{day}.parquet")
    for file in (ROOT / "docs").glob("*.py"):
        shutil.copy(file, made / "docs")
    (made / "docs" / "results").mkdir()
    (made / "docs" / "page.md").write_text("```python\n# runs\nprint(1)\n```\n")
    return made


class Runner:
    """Runs commands in this process, in a directory."""

    def __init__(self, place: Path, patch: pytest.MonkeyPatch) -> None:
        self.place, self.patch = place, patch
        patch.chdir(place)
        patch.setattr("webbrowser.open", lambda address: True)
        no_pictures(patch)
        patch.setattr(sys, "path", list(sys.path))

    def run(self, command: str) -> None:
        words = shlex.split(INSTEAD.get(command, command))
        for word in words:
            if word in MADE_BY and MADE_BY[word] != command and not (self.place / word).exists():
                self.run(MADE_BY[word])
        for option, value in SMALL.items():
            if option in words:
                words[words.index(option) + 1] = value
        {"steadytd": self.steadytd, "python": self.python, "make": self.make,
         "pip": self.pip, "uv": self.pip}[words[0]](words[1:])  # fmt: skip

    def steadytd(self, words: list[str]) -> None:
        if CLUSTER in words:
            from distributed import LocalCluster

            cluster = LocalCluster(n_workers=1, dashboard_address="127.0.0.1:0")
            with closing(cluster):
                address = cluster.scheduler_address
                self.steadytd([address if word == CLUSTER else word for word in words])
            return
        assert call(self.patch, *words) == 0

    def python(self, words: list[str]) -> None:
        script, *more = words
        path = self.place / script if script.startswith("docs/") else ROOT / script
        more = [sys.executable if word == "PYTHON" else word for word in more]
        more += ["--quick"] if takes_quick(path) else []
        self.patch.setattr(sys, "argv", [str(path), *more])
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            assert end.code in (None, 0) or (end.code == NO_BROWSER and not has_browser()), end.code

    def make(self, words: list[str]) -> None:
        """Whether there is such a target, and such a variable; the tests below run targets."""
        set_here = {name for word in words for name, is_set, _ in [word.partition("=")] if is_set}
        assert all(re.search(rf"^{name} [:?]=", makefile(), re.MULTILINE) for name in set_here)
        assert {word for word in words if "=" not in word} <= set(targets())

    def pip(self, words: list[str]) -> None:
        """Whether what is asked for is there; `test_release.py` installs it."""
        about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert words[-2] == "install"
        what, _, extras = words[-1].rstrip("]").partition("[")
        assert what in (".", "steadytd", f"steadytd-{about['version']}-py3-none-any.whl")
        assert set(filter(None, extras.split(","))) <= set(about["optional-dependencies"])


@pytest.fixture
def runner(place: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    return Runner(place, monkeypatch)


def has_browser() -> bool:
    browsers = ("chromium", "chromium-browser", "google-chrome")
    return bool(importlib.util.find_spec("playwright")) and any(map(shutil.which, browsers))


def is_mention(command: str) -> bool:
    """Whether a text in a sentence only names a command or an option of it."""
    words = command.split()
    return words[0] == "steadytd" and command not in INSTEAD and (
        len(words) == 2 or words[2:] == ["--eta"]
    )  # fmt: skip


def is_slow(command: str) -> bool:
    """Whether it takes long, or needs a loop that is compiled for `make test-all` only."""
    words = command.split()
    asked = words[3:] if words[1] == "run" else []
    learners = takewhile(lambda word: not word.startswith("--"), asked)
    registered = [one for one in learners if not written(one).file]
    return bool(SLOW.search(command)) or not all(is_quick(st.learner(one)) for one in registered)


RUN = [one for one in advertised() if not is_mention(one)]


@pytest.mark.parametrize(
    "command", [pytest.param(c, marks=[pytest.mark.slow] if is_slow(c) else []) for c in RUN]
)
def test_an_advertised_command_runs(command: str, runner: Runner) -> None:
    runner.run(command)


@pytest.mark.parametrize("command", [one for one in advertised() if is_mention(one)])
def test_a_command_that_is_mentioned_is_there(
    command: str, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    _, *words = command.split()
    runner.steadytd([words[0], "--help"] if words[0][0] != "-" else ["--help"])
    assert all(word in capsys.readouterr().out for word in words if word[0] == "-")


def test_completion_is_installed(tmp_path: Path) -> None:
    """For a shell that is named: that of the tests may be any."""
    program = Path(sys.executable).with_name("steadytd")
    env = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    subprocess.run([program, "--install-completion", "bash"], env=env, check=True)
    assert "steadytd" in (tmp_path / ".bash_completions" / "steadytd.sh").read_text()


def test_every_learner_has_a_command_that_runs() -> None:
    """But for those of action values, which the command line does not have."""
    run = [one for one in RUN if one.startswith("steadytd run")]
    for name in learner_names():
        if not algorithm(name).action_values:
            assert any(re.search(rf" {name}[: ]", one) for one in run), name


def test_what_is_advertised_is_found() -> None:
    text = (
        "Say `make\ntest`.\n\n    steadytd lab   # opens it\n\n```\n$ steadytd run x \\\n```\n"
        "```python\nmake = 1\n```\n`python -m venv`, `python a/b.py --x 1`"
    )
    assert commands(text) == [
        "steadytd run x \\",
        "steadytd lab",
        "make test",
        "python a/b.py --x 1",
    ]


def test_nothing_is_overlooked() -> None:
    """No prompt with another program, and no benchmark that nobody would run."""
    for page in PAGES:
        for line in re.findall(r"^ *\$ .*$", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert LINE.match(line), f"{page.name}: {line}"
    for file in (ROOT / "benchmarks").glob("*.py"):
        if "__main__" in file.read_text(encoding="utf-8") and file.name != "jax_side.py":
            assert takes_quick(file), file.name


def test_what_is_not_known_fails(runner: Runner) -> None:
    for command in ("make nothing", "python benchmarks/nothing.py", "steadytd run nowhere td"):
        with pytest.raises((AssertionError, OSError)):
            runner.run(command)


def makefile() -> str:
    """Its text, with continued lines made one."""
    return (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")


def targets() -> list[str]:
    """What `make` can be asked for."""
    (names,) = re.findall(r"^\.PHONY: (.*)$", makefile(), re.MULTILINE)
    return str(names).split()


def recipe(target: str) -> str:
    (found,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)*)", makefile(), re.MULTILINE)
    return str(found)


def checked_by_ci() -> set[str]:
    """The targets that `.ci/run` makes, and those that these make."""
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    found = set(re.findall(r"^ *make ([\w-]+)", text, re.MULTILINE))
    inner = {w for t in found for line in recipe(t).splitlines() if "$(MAKE)" in line
             for w in line.split()}  # fmt: skip
    return found | (inner & set(targets()))


def make(target: str, *more: str, cwd: Path = ROOT) -> str:
    """Make a target in a directory, without installing anything."""
    if cwd != ROOT:
        (cwd / ".venv").symlink_to(sys.prefix)
    here = [] if (cwd / ".venv").exists() else [f"BIN={Path(sys.executable).parent}"]
    installed = ["-o", ".venv/.installed", "-o", ".venv/.installed-dev"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "--no-print-directory", "-f", ROOT / "Makefile", *installed, target, *here, *more],
        cwd=cwd, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_make_bench() -> None:
    out = make("bench", "MORE=--quick")
    assert "JAX is not installed" in out or "vmapped scan" in out
    assert "gcc is not installed" in out or "ours / C" in out
    assert out.endswith(
        "--quick shows that everything runs. Its figures are too rough to be judged.\n"
    )


def test_make_clean(tmp_path: Path) -> None:
    (tmp_path / "src" / "__pycache__").mkdir(parents=True)
    for name in ("results", "build", "site", ".mypy_cache"):
        (tmp_path / name).mkdir()
    make("clean", cwd=tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["src"]


@pytest.mark.slow
def test_make_test_all() -> None:
    """Its own command, without the targets that `make test` makes, too."""
    asked = "-n 0 --collect-only tests/project/test_soak.py"
    assert "test_soak.py" in make("test-all", "MAKE=true", f"MORE={asked}")


@pytest.mark.slow
def test_make_reproduce(tmp_path: Path) -> None:
    make("reproduce", f"OUT={tmp_path}", "MORE=--figure 1 --runs 1 --no-figures")
    assert (tmp_path / "report.html").is_file()


@pytest.mark.slow
def test_make_results(place: Path) -> None:
    """Two studies, smaller, to documents of its own; commands above run the others."""
    make("results", "STUDIES=collision cures", "MORE=--quick", cwd=place)
    made = {path.stem for path in (place / "docs" / "results").glob("*.md")}
    assert {"index", "collision", "cures"} <= made


MADE_HERE = {
    name.removeprefix("test_make_").replace("_", "-")
    for name in list(globals())
    if name.startswith("test_make_")
}


def test_every_target_is_made() -> None:
    """By a test above or by `.ci/run`; the site is built by tests/browser."""
    site = (ROOT / "tests" / "browser" / "test_site.py").read_text(encoding="utf-8")
    in_browser = {"docs"} if '"make", "docs"' in site else set()
    assert set(targets()) == MADE_HERE | checked_by_ci() | in_browser
    assert "test-browser" in checked_by_ci()

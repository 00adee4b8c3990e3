"""The top level is honest: what `dir`, `help`, editors and type checkers see is what there is."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pydoc
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import steadytd as st
from tests.support.draws import examples

FUNCTIONS = [name for name in st.__all__ if not inspect.isclass(getattr(st, name))]
CLASSES = [name for name in st.__all__ if inspect.isclass(getattr(st, name))]
# What rooms hand among themselves; a user need not name their types.
INNER = {
    "Block",
    "Eigen",
    "Goal",
    "LogSchema",
    "PenaltyErrors",
    "PenaltyPath",
    "RowSpace",
    "Rows",
    "Spec",
    "StudyBlock",
    "TargetValues",
}


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    assert dir(st) == sorted([*st.__all__, "__version__"])
    names = "import steadytd as st; st.run, st.evaluate, st.study; import steadytd.cli.main; "
    assert python(names + "print(dir(st))") == str(dir(st))
    contract = {
        "ActionValues", "Certificate", "Control", "Curves", "Evaluation", "FeatureMap", "Finding",
        "GymStream", "InputError", "Law", "Learner", "Log", "OnlineLearner", "Param", "Problem",
        "Recommendation", "Result", "Study", "ValueFunction", "certify", "check", "evaluate",
        "feature_map",
        "greedy_gq", "gym_log", "gym_stream", "law", "learner", "learners", "load_learner",
        "load_problem", "load_value_function", "nonlinear", "open_log", "problem", "problems",
        "run", "study", "write_log",
    }  # fmt: skip
    assert contract <= set(dir(st))
    with pytest.raises(AttributeError, match="module 'steadytd' has no attribute 'evalute'"):
        st.evalute  # type: ignore[attr-defined]  # noqa: B018


def test_import_loads_nothing_heavy() -> None:
    code = "import sys; before = set(sys.modules); import steadytd; dir(steadytd); "
    code += "print(sorted(set(sys.modules) - before))"
    loaded = set(ast.literal_eval(python(code)))
    assert "steadytd" in loaded
    assert {name.partition(".")[0] for name in loaded} <= {"steadytd", *sys.stdlib_module_names}
    assert not any(name.startswith("steadytd.") for name in loaded)


def test_a_star_import_gives_every_name() -> None:
    found: dict[str, object] = {}
    exec("from steadytd import *", found)
    assert all(found[name] is getattr(st, name) for name in st.__all__)


@pytest.mark.parametrize("name", st.__all__)
def test_each_name_is_the_thing_itself(name: str) -> None:
    """No wrapper: its room has the same object under the same name; packages stay packages."""
    found = getattr(st, name)
    if isinstance(found, ModuleType):
        assert found is sys.modules[f"steadytd.{name}"] and callable(found)
        return
    real = inspect.unwrap(found) if inspect.isfunction(found) else found
    home = importlib.import_module(real.__module__)
    assert getattr(home, name) is found
    assert f"steadytd.{name}" not in sys.modules  # no package or module is shadowed


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_option_is_spelled_out(name: str) -> None:
    signature = inspect.signature(getattr(st, name))
    for parameter in signature.parameters.values():
        assert parameter.annotation is not parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD and name != "evaluate_learning":
            # hyper-parameters, and options of a problem; that one has the options of `evaluate`
            assert name in ("grid", "learner", "problem") and parameter.annotation == "object"
    assert inspect.getdoc(getattr(st, name))


def test_help_of_evaluate_shows_its_options() -> None:
    signature = inspect.signature(st.evaluate)
    shown = {"discount": None, "features": "auto", "behavior": None, "value_at": "auto", "seed": 0}
    assert {key: signature.parameters[key].default for key in shown} == shown
    assert "batch_rows" in pydoc.render_doc(st.evaluate)


def stub() -> ast.Module:
    path = Path(str(st.__file__)).with_suffix(".pyi")
    return ast.parse(path.read_text(encoding="utf-8"))


def test_the_stub_has_the_same_names_from_the_same_places() -> None:
    found: dict[str, object] = {}
    for node in stub().body:
        if isinstance(node, ast.ImportFrom):
            (alias,) = node.names
            assert alias.asname == alias.name and node.module is not None  # a public name
            assert alias.name not in found
            found[alias.name] = getattr(importlib.import_module(node.module), alias.name)
    assert sorted(found) == st.__all__
    for name, thing in found.items():
        given = getattr(st, name)
        assert isinstance(given, ModuleType) or thing is given
        if not inspect.isclass(given):
            assert inspect.signature(thing) == inspect.signature(given)  # type: ignore[arg-type]


WAYS = [
    "import steadytd.problems",
    "st.problems()",
    "from steadytd.problems import baird",
    "st.run",
]
ORDERS = list(itertools.permutations(WAYS))


@pytest.mark.parametrize("order", ORDERS[:: examples(24, 5)], ids=str)
def test_problems_and_learners_are_both_in_any_order(order: tuple[str, ...]) -> None:
    lines = ["import steadytd as st", *order]
    lines += [line.replace("problems", "learners").replace("baird", "td") for line in order]
    lines += [
        "import steadytd.learners, steadytd.problems",
        "from steadytd.problems import problems, problem",
        "assert st.problems() == problems() and 'baird' in st.problems()",
        "assert st.problems.baird.make().name == problem('baird').name == 'baird'",
        "assert 'td' in st.learners() and st.learners.td.td.name == 'td'",
        "assert st.problems is steadytd.problems and st.learners is steadytd.learners",
        "import inspect; assert str(inspect.signature(st.problems)) == \"() -> 'dict[str, str]'\"",
        "print('fine')",
    ]
    assert python("\n".join(lines)) == "fine"


def names_seen_by(module: ModuleType) -> dict[str, object]:
    """The module's names, also those imported for type checkers only."""
    found = dict(vars(module))
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("steadytd"):
            room = importlib.import_module(str(node.module))
            for alias in node.names:
                found.setdefault(alias.asname or alias.name, getattr(room, alias.name, None))
    return found


def own_classes(thing: object) -> Iterator[type]:
    """The thing if it is a class of ours, or those that an alias is made of."""
    if inspect.isclass(thing) and thing.__module__.startswith("steadytd"):
        yield thing
    for part in typing.get_args(thing):
        yield from own_classes(part)


def returned(function: object) -> Iterator[type]:
    plain = inspect.unwrap(function)  # type: ignore[arg-type]
    known = names_seen_by(sys.modules[plain.__module__])
    for node in ast.walk(ast.parse(plain.__annotations__["return"])):
        if isinstance(node, ast.Name):
            yield from own_classes(known.get(node.id))


def public_methods(kind: type) -> Iterator[object]:
    for part in kind.__mro__:
        for name, value in vars(part).items() if part.__module__.startswith("steadytd") else ():
            inner = [getattr(value, how, None) for how in ("__func__", "fget", "func")]
            function = next((f for f in inner if f is not None), value)
            if not name.startswith("_") and inspect.isfunction(function):
                yield function


def test_every_type_that_is_returned_is_exported() -> None:
    """By a function, or by a method or property of an exported class."""
    functions = [getattr(st, name) for name in FUNCTIONS if name not in ("problems", "learners")]
    methods = [method for name in CLASSES for method in public_methods(getattr(st, name))]
    assert len(functions) > 15 and len(methods) > 100
    exported = {getattr(st, name) for name in CLASSES}
    seen = {kind for function in (*functions, *methods) for kind in returned(function)}
    assert {kind.__name__ for kind in seen - exported} <= INNER
    assert len(seen & exported) > 15

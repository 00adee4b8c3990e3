"""Off-policy TD learning: run, certify and compare learners, and value policies from logs.

>>> import steadytd as st
>>> p = st.problem("three_state")
>>> r = st.run(p, ["perturbed_td:alpha=0.01,eta=0.6"], steps=20_000, seeds=4)
>>> bool(r.summary["final"][0] < 6)
True

Each name below is loaded when it is first used, so that `import steadytd` takes little time. What
is loaded is the function or class itself, with its own signature and text. Type checkers read
the same names from `__init__.pyi`. `problems` and `learners` are packages and, called, lists of
what is in them: `st.problems()`, `st.problems.baird`. They are one object (a module that can be
called), so it does not matter what was imported before.
"""

import importlib as _importlib

__version__ = "0.2.0"

_ROOMS = {
    "base.errors": ("InputError",),
    "base.finding": ("Finding",),
    "engine.law": ("Law", "Param", "law"),
    "engine.learner": ("Learner", "OnlineLearner"),
    "evaluation.calibration": (
        "ActionCalibration",
        "ByBin",
        "ByFeature",
        "LogCalibration",
    ),
    "evaluation.sensitivity": ("Bound", "Sensitivity"),
    "evaluation.evaluate": ("evaluate",),
    "evaluation.decide": ("BestTarget", "Decision"),
    "evaluation.gate": ("Gate",),
    "evaluation.learning": ("evaluate_learning",),
    "evaluation.next_log": ("LogNext",),
    "evaluation.monitor": ("Look", "Monitor", "load_monitor", "monitor"),
    "evaluation.result": ("Evaluation", "RareOutcome", "Recommendation", "load_evaluation"),
    "evaluation.segments": ("Segments",),
    "evaluation.value_function": ("ValueFunction", "load_value_function"),
    "features": ("FeatureMap", "feature_map"),
    "hordes.horde": ("Horde", "horde", "load_horde"),
    "hordes.prediction": ("HordePrediction", "prediction"),
    "learners": ("learner", "learners", "load_learner"),
    "logs.batch": ("LogBatch",),
    "logs.example": ("sample_log",),
    "logs.log": ("Log", "open_log"),
    "logs.policies": ("with_policy",),
    "logs.selection": ("split",),
    "logs.write": ("write_log",),
    "mdp.action_values": ("ActionValues",),
    "mdp.moments": ("Expectation", "Moments"),
    "mdp.problem": ("Problem", "load_problem"),
    "problems": ("problem", "problems"),
    "runs.greedy_gq": ("Control", "greedy_gq"),
    "runs.gym_stream": ("GymStream", "gym_stream"),
    "runs.nonlinear": ("Curves", "nonlinear"),
    "runs.result": ("Result", "load_result"),
    "runs.run": ("run",),
    "streams.gymnasium_log": ("gym_log",),
    "streams.rollouts": ("Truth",),
    "studies.grid": ("grid",),
    "studies.results": ("StudyResults", "load_study"),
    "studies.study": ("Study", "study"),
    "theory.assumptions": ("Assumption",),
    "theory.certificate": ("Certificate", "certify", "load_certificate"),
    "theory.closed_form": ("LawCheck", "check"),
    "theory.cure": ("Cure",),
    "theory.exact": ("MeanSquare",),
    "theory.almost_sure": ("AlmostSure",),
    "theory.learning_curve": ("LearningCurve",),
    "theory.thresholds": ("Pencil",),
    "theory.variance": ("Variance",),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}
_RENAMED = {"Treatment": "Cure", "Unseen": "RareOutcome"}

__all__ = sorted(_HOME)  # noqa: PLE0605 (one list is enough)


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        import warnings

        new = _RENAMED[name]
        warnings.warn(f"st.{name} is now called st.{new}", DeprecationWarning, stacklevel=2)
        return __getattr__(new)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = _importlib.import_module(f"{__name__}.{_HOME[name]}")
    found = room if name == _HOME[name] else getattr(room, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

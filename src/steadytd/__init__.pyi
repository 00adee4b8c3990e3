"""What type checkers see of `steadytd`: the same names as at run time, from the same rooms."""

from steadytd.base.errors import InputError as InputError
from steadytd.base.finding import Finding as Finding
from steadytd.engine.law import Law as Law
from steadytd.engine.law import Param as Param
from steadytd.engine.law import law as law
from steadytd.engine.learner import Learner as Learner
from steadytd.engine.online import OnlineLearner as OnlineLearner
from steadytd.evaluation.evaluate import evaluate as evaluate
from steadytd.evaluation.judge.recommend import Recommendation as Recommendation
from steadytd.evaluation.result import Evaluation as Evaluation
from steadytd.evaluation.value_function import ValueFunction as ValueFunction
from steadytd.evaluation.value_function import load_value_function as load_value_function
from steadytd.features import FeatureMap as FeatureMap
from steadytd.features import feature_map as feature_map
from steadytd.learners import learner as learner
from steadytd.learners import learners as learners
from steadytd.learners import load_learner as load_learner
from steadytd.logs.batch import LogBatch as LogBatch
from steadytd.logs.log import Log as Log
from steadytd.logs.log import open_log as open_log
from steadytd.logs.write import write_log as write_log
from steadytd.mdp.action_values import ActionValues as ActionValues
from steadytd.mdp.moments import Expectation as Expectation
from steadytd.mdp.moments import Moments as Moments
from steadytd.mdp.problem import Problem as Problem
from steadytd.mdp.problem import load_problem as load_problem
from steadytd.problems import problem as problem
from steadytd.problems import problems as problems
from steadytd.runs.greedy_gq import Control as Control
from steadytd.runs.greedy_gq import greedy_gq as greedy_gq
from steadytd.runs.gym_stream import GymStream as GymStream
from steadytd.runs.gym_stream import gym_stream as gym_stream
from steadytd.runs.nonlinear import Curves as Curves
from steadytd.runs.nonlinear import nonlinear as nonlinear
from steadytd.runs.result import Result as Result
from steadytd.runs.run import run as run
from steadytd.streams.gymnasium_log import gym_log as gym_log
from steadytd.streams.rollouts import Truth as Truth
from steadytd.studies.results import StudyResults as StudyResults
from steadytd.studies.study import Study as Study
from steadytd.studies.study import study as study
from steadytd.theory.assumptions import Assumption as Assumption
from steadytd.theory.certificate import Certificate as Certificate
from steadytd.theory.certificate import certify as certify
from steadytd.theory.cures.table import Treatment as Treatment
from steadytd.theory.mean_square import MeanSquare as MeanSquare
from steadytd.theory.thresholds import Pencil as Pencil
from steadytd.theory.variance import Variance as Variance

__all__: list[str]
__version__: str

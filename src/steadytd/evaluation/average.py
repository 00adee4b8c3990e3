"""Rewards per step in the long run, of logs that never end.

With the reward per step J and values v(s) = x(s).w, known up to a constant, a policy satisfies

    E[ rho (r - J + v(s') - v(s)) | s ] = 0.

So J is the weight of one more feature, which is 1 in every row and 0 at next states. With it the
equations of the first pass are those of differential LSTD, and their adjoint is that of the ratio
omega(s) = d_pi(s) / d_log(s) of visits:

    sum rho (x, 1) (r - J + v(s') - v(s)) = 0,
    sum rho omega (x' - x) = 0,    sum rho omega = n,    omega(s) = (x(s), 1).beta.

Values are known up to a constant, and contiguous folds do not show all that the others do. So the
equations have a penalty on w and beta, but not on J: the mean of x x' over all rows of the log, the
weight of one row (`Equations.one_row`). It gives values the mean 0, and the weight 0 to features
that four folds do not show. The score of a row is, with J, w and beta of the other folds,

    J + U_t rho_t (r_t - J + v(s_t+1) - v(s_t)),    U_t = (1 - lam) omega(s_t) + lam rho_t-1 U_t-1,

and U = omega where a stream begins. Its mean is the true J if J and w are right, whatever beta, or
if omega is, whatever w and J (Kallus and Uehara, 2020; Liao, Qi, Klasnja and Murphy, 2022). A trace
is not needed for that. But where features show less than the state, no omega(s) is right, and the
error that is left after k steps of the target is smaller: so lam = .5, .8 and .95 check each other
(`rule`). There is no lam = 1: the long run has no start from which products could be counted.

The policy that made the log has the same estimate with rho = 1, lam = 0 and weights of the whole
log: in one long stream the mean reward, up to the stream's two ends. Where streams begin anew it is
that of the long run, too. Units are 200 stretches of rows, unless the log has a column of units.
How far their errors depend on each other is in `rule` and `second_pass.joined`.
"""

from __future__ import annotations

import numpy as np

from steadytd.base.errors import InputError
from steadytd.logs.log import Log


def check_average(
    discount: object, learners: object, value_at: str, reward_range: object, horizon: object
) -> None:
    """Refuse what an average reward has no use for."""
    given = {
        "discount": discount not in (None, 1.0),
        "learners": learners is not None,
        "value_at": value_at != "auto",
        "reward_range": reward_range is not None,
        "horizon": horizon is not None,
    }
    for name, wrong in given.items():
        if wrong:
            raise InputError(
                "average_reward is the reward per step in the long run, by one estimator, from any "
                f"state, without rewards that were not logged; leave out {name}."
            )


def require_endless(log: Log) -> None:
    """Refuse a log in which a row terminates or is discounted."""
    for batch in log.batches(columns=()):
        for i in np.flatnonzero(batch.discount != 1.0)[:1].tolist():
            row = log.where(int(batch.rows[i]))
            if batch.discount[i] > 0.0:
                raise InputError(
                    f"{row} (counted from 0): the discount is {batch.discount[i]:g}, and an "
                    "average reward has none (1). Leave the discount out, or average_reward."
                )
            raise InputError(
                f"{row} (counted from 0) terminates, and an average reward is that of a process "
                "without end. Give a discount in place of average_reward. If the process starts "
                "again at once, log its first state as next_obs, without termination."
            )

"""What every certificate has, with a discount or without: learners, cures, one recommendation."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from steadytd.base.display import Displayable
from steadytd.base.errors import InputError
from steadytd.base.files import write_arrays
from steadytd.base.finding import Finding
from steadytd.theory.analysis import LearnersOn
from steadytd.theory.cure import Cure
from steadytd.theory.cures import cures_of
from steadytd.theory.learning_curve import LearningCurve, exact_curve
from steadytd.theory.reading import closes
from steadytd.theory.recommend import CODE, overview, recommended

if TYPE_CHECKING:
    import polars as pl


class Verdicts(Displayable, LearnersOn):
    """The learners and cures of one problem and target policy, and which to use."""

    @property
    def advice(self) -> list[Finding]:
        """Findings in plain words."""
        raise NotImplementedError

    def save(self, path: str | Path) -> Path:
        """Save problem and policy, from which all else follows; see `load_certificate`."""
        content = {**self.problem.content(), "policy": np.array(self.policy)}
        return write_arrays(Path(path), content, compressed=True)

    def recommended(self, *, cures: bool = False) -> Finding | None:
        """The one learner to use, with its reason; with `cures`, every cure takes part.

        >>> import steadytd as st
        >>> c = st.certify("three_state")
        >>> found = c.recommended().numbers
        >>> found["learner"], found["reason"], found["alpha"], found["decay_steps"]
        ('perturbed_td', 'least_error', 0.01, 7235)
        """
        if cures:
            return self._of_all_cures
        return next((finding for finding in self.advice if finding.code == CODE), None)

    def expected(self, *, cures: bool = False) -> LearningCurve | None:
        """The learning curve of the recommended learner, to twice its horizon.

        None where none is recommended or it is solved, and where the curve is not exact or takes
        more than a moment.
        """
        use = self.recommended(cures=cures)
        if use is None or use.numbers["instead_of"] or use.numbers["decay_steps"] is None:
            return None
        found = use.numbers
        learner = self.resolved(found["learner"], **found["params"], alpha=found["alpha"])
        steps = 2 * found["decay_steps"]
        return exact_curve(self.problem, learner, steps, self.policy, quick=True)

    @cached_property
    def _of_all_cures(self) -> Finding | None:
        return recommended(self, self.treatments)

    def findings(self, *, cures: bool = False) -> list[Finding]:
        """The advice, its recommendation made among all cures if that is asked for."""
        use = self.recommended(cures=cures)
        others = [finding for finding in self.advice if finding.code != CODE]
        return others if use is None else [*others, use]

    @cached_property
    def learners(self) -> list[dict[str, Any]]:
        """Every registered learner here: stability, fixed point's error, largest step size."""
        return overview(self)

    def at_alpha(self, alpha: float) -> pl.DataFrame:
        """Every learner at one constant step size: what single runs do around the fixed point.

        Below `largest_alpha` the mean contracts; up to `mean_square_alpha` second moments stay
        bounded (0: not at small step sizes). Where they are `bounded` at `alpha`, a long run is, in
        the root mean square, `spread` away from its fixed point, whose distance from v_pi is
        `error`. Null where not known: with traces, a memory, a system that is too large, or (of
        `largest_alpha`) a closed form to first order in alpha only. `almost_sure`: whether single
        runs forget where they began; where mean squares are bounded, they do, and it is also known
        in one dimension and where the variance of traces is infinite (`c.almost_sure` has all).

        >>> import steadytd as st
        >>> rows = st.certify("three_state").at_alpha(1e-4).to_dicts()
        >>> {r["learner"]: round(r["spread"], 3) for r in rows if r["bounded"]}["perturbed_td"]
        0.043
        """
        import polars as pl

        if not 0.0 < alpha < float("inf"):
            raise InputError(f"alpha must be a positive number, got {alpha}; for example 1e-4.")
        columns = {"learner": pl.String, "stable": pl.Boolean, "error": pl.Float64}
        columns |= {"largest_alpha": pl.Float64, "mean_square_alpha": pl.Float64}
        columns |= {"bounded": pl.Boolean, "spread": pl.Float64, "almost_sure": pl.Boolean}
        rows = []
        for row in self.learners:
            found = self.mean_square(row["learner"], **row["params"])
            moments: dict[str, Any] = {}
            if found is not None:
                spread = found.spread(alpha)
                bounded = bool(np.isfinite(spread))
                moments = {"mean_square_alpha": found.largest_alpha, "bounded": bounded}
                moments |= {"spread": spread if bounded else None}
            moments["almost_sure"] = moments.get("bounded") or self._settles(row, alpha)
            rows.append({name: (row | moments).get(name) for name in columns})
        return pl.DataFrame(rows, schema=columns)

    def _settles(self, row: dict[str, Any], alpha: float) -> bool | None:
        """Whether single runs do, in one dimension and where the variance is infinite."""
        learner = self.resolved(row["learner"], **row["params"])
        followed = not row["finite_variance"] or (self.rank == 1 and closes(learner))
        if followed and "alpha" in learner.values:
            found = self.almost_sure(learner.replace(alpha=alpha), alpha=alpha)
            return None if found is None else found.stable
        return None

    # Cures

    @cached_property
    def treatments(self) -> tuple[Cure, ...]:
        """Every cure on this problem; computed when first asked for."""
        return cures_of(self.problem, self.policy)

    @cached_property
    def cures(self) -> pl.DataFrame:
        """Every way to a stable mean update, one row each, with its price.

        `cure` and `settings` say which, `amount` names its parameter. `unstable` are the values of
        the parameter that are not stable (of whole numbers, with both ends), `smallest` is the
        smallest stabilising one; from `stable_from` on every value is stable (null: never).
        `exact` is false where a scan found them. The rest holds at the `best` value: the fixed
        point's `error`, the `rate` at which a step of the largest size takes away the slowest
        mode, the largest step size in the mean (`largest_alpha`) and in the mean square (null where
        not known), whether the traces and memory have a `finite_variance`, and the `noise` of the
        updates.

        >>> import steadytd as st
        >>> rows = st.certify("three_state").cures.to_dicts()
        >>> {r["cure"]: r["unstable"] for r in rows}["nstep_td"]
        [[1.0, 1.0], [3.0, 3.0]]
        """
        import polars as pl

        return pl.DataFrame([t.row for t in self.treatments], infer_schema_length=None)

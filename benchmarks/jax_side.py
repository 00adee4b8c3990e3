"""JAX's side of `jax_scan.py`: runs in any interpreter that has JAX, and needs nothing else.

Reads a stream from a file, compiles, then takes all steps once for every line on its input, and
answers each with the seconds of the processor that it took. Its weights stand beside the stream.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)  # the same precision as ours
jax.config.update("jax_platforms", "cpu")


def td(c: Any, e: Any, alpha: Any, ratio: float) -> Any:
    """One step of off-policy TD of one learner."""
    (w,), (x, x_next, reward, gamma, rho) = c, e
    delta = reward + gamma * (w @ x_next) - w @ x
    return (w + alpha * delta * rho * x,)


def tdc(c: Any, e: Any, alpha: Any, ratio: float) -> Any:
    """One step of TDC of one learner."""
    (w, h), (x, x_next, reward, gamma, rho) = c, e
    delta = reward + gamma * (w @ x_next) - w @ x
    h_x = h @ x
    w = w + alpha * rho * (delta * x - gamma * h_x * x_next)
    return w, h + ratio * alpha * (rho * delta - h_x) * x


def td_rows(c: Any, e: Any, alpha: Any, ratio: float) -> Any:
    """The same for all learners at once, laid out by hand as our engine does: w[feature, lane]."""
    (w,), (x, x_next, reward, gamma, rho) = c, e
    delta = reward + gamma * (x_next @ w) - x @ w
    return (w + x[:, None] * (alpha * delta * rho)[None, :],)


def tdc_rows(c: Any, e: Any, alpha: Any, ratio: float) -> Any:
    """The same for TDC."""
    (w, h), (x, x_next, reward, gamma, rho) = c, e
    delta = reward + gamma * (x_next @ w) - x @ w
    h_x = x @ h
    w = w + x[:, None] * (alpha * rho * delta) - x_next[:, None] * (alpha * rho * gamma * h_x)
    return w, h + x[:, None] * (ratio * alpha * (rho * delta - h_x))


def main() -> None:
    """Compile, then measure once per line of input."""
    path, law, layout = sys.argv[1:4]
    given = np.load(path)
    Phi, alphas, ratio = jnp.asarray(given["Phi"]), jnp.asarray(given["alphas"]), 10.0
    facts = ("row", "row_next", "reward", "gamma", "rho")
    stream = tuple(jnp.asarray(given[name]) for name in facts)
    vectors, d = (2 if law == "tdc" else 1), Phi.shape[1]
    vmapped = layout == "vmap"
    update = {"td": td, "tdc": tdc} if vmapped else {"td": td_rows, "tdc": tdc_rows}

    def scan(alpha: Any, stream: Any) -> Any:
        def step(c: Any, e: Any) -> Any:
            row, row_next, *rest = e
            return update[law](c, (Phi[row], Phi[row_next], *rest), alpha, ratio), None

        start = jnp.zeros(d if vmapped else (d, len(alphas)))
        return jax.lax.scan(step, (start,) * vectors, stream)[0][0]

    run = jax.jit(jax.vmap(scan, in_axes=(0, None)) if vmapped else scan)
    found = jax.block_until_ready(run(alphas, stream))
    np.save(f"{path}.npy", np.asarray(found).T if vmapped else np.asarray(found))
    print(jax.__version__, flush=True)
    for _ in sys.stdin:
        begin = time.process_time()
        jax.block_until_ready(run(alphas, stream))
        print(time.process_time() - begin, flush=True)


if __name__ == "__main__":
    main()

"""Your own algorithm in ten lines, compiled into the same engine and run beside the others.

The arguments of a law say what it needs; it returns what to add to its vectors. This one clips the
importance ratio, a common cure for variance that changes what is learned. Its mean update is read
off the law, so the certificate knows where it leads before anything is run.
"""

import steadytd as st


@st.law(
    params={"ceiling": st.Param("largest ratio used", default=1.0, low=0.0, above=True)},
    writes={"w": "x"},
    idle_at_rho_zero=True,
)
def clipped_td(reward, rho, gamma_next, w_x, w_x_next, alpha, ceiling):  # type: ignore[no-untyped-def]
    """TD with clipped importance ratios: w += alpha min(rho, ceiling) delta x."""
    delta = reward + gamma_next * w_x_next - w_x
    return alpha * min(rho, ceiling) * delta


clipped = [st.learner(clipped_td, alpha=1e-3, ceiling=c) for c in (1.0, 2.0, 4.0)]
certificate = st.certify("three_state")
for learner in clipped:
    print(f"{learner}: {'stable' if certificate.is_stable(learner) else 'unstable'}")

result = st.run(
    "three_state",
    [*clipped, "perturbed_td:alpha=0.001,eta=0.5"],
    steps=200_000,
    seeds=10,
)
print(result)

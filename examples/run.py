"""Many learners on one stream: curves, a summary, final weights."""

import steadytd as st

penalties = [st.learner("perturbed_td", alpha=1e-3, eta=eta / 20) for eta in range(8, 21)]
result = st.run(
    "three_state",
    [*penalties, "tdc:alpha=1e-3", "td:alpha=1e-3"],
    steps=200_000,
    seeds=10,
    points=201,
)
print(result.summary.select("algorithm", "eta", "final", "final_stderr", "outcome"))
best = result.summary.sort("final")["learner"][0]
print("least error:", best, "with mean weights", result.weights(best).mean(axis=0).round(3))

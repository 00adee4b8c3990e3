"""Learners: a law with its hyper-parameters, from keywords or from text."""

import steadytd as st

for name, summary in st.learners().items():
    print(f"{name:17} {summary}")

learner = st.learner("perturbed_td", alpha=1e-4, eta=1.0)
assert learner == st.learner("perturbed_td:alpha=1e-4,eta=1")
print(learner)

# Immutable and hashable: change a hyper-parameter by making another learner.
print(learner.replace(lam=0.5, penalty="outside"))

# A step size that decays as the convergence theorem asks: alpha / (1 + t/delay)^power.
print(st.learner("td", alpha=0.1, power=0.75, delay=1000))

try:
    st.learner("perturbd_td", alpha=0.1)
except st.InputError as error:
    print("a clear error:", error)

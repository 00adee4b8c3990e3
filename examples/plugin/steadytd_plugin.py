"""An algorithm and a problem of your own, in all lists, studies, certificates and pages."""

import numpy as np

import steadytd as st


def mean_update(m: st.Moments, values: dict[str, float]) -> st.Expectation:
    """E[change of w] = alpha (b - (A + decay I) w): what the certificate asks of a law."""
    return st.Expectation(M=m.A() + values["decay"] * np.eye(len(m.b())), g=m.b())


@st.law(
    params={"decay": st.Param("weight decay", default=0.1, low=0.0)},
    writes={"w": ("x", "w")},
    expectation=mean_update,
)
def decayed_td(reward, rho, gamma_next, w_x, w_x_next, alpha, decay):  # type: ignore[no-untyped-def]
    """TD with weight decay: w += alpha (rho delta x - decay w)."""
    return alpha * rho * (reward + gamma_next * w_x_next - w_x), -alpha * decay


def two_cells(stay: float = 0.5) -> st.Problem:
    """Two cells, one feature: the value of the right one counts twice."""
    P = np.array([[[stay, 1 - stay], [0.0, 1.0]], [[1.0, 0.0], [1 - stay, stay]]])
    mu, pi = np.full((2, 2), 0.5), np.array([[0.1, 0.9], [0.1, 0.9]])
    Phi = np.array([[1.0], [2.0]])
    return st.Problem(name="two_cells", P=P, r=np.ones_like(P), gamma=0.9, mu=mu, pi=pi, Phi=Phi)

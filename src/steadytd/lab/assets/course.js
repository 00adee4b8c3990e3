// The deadly triad in seven steps. Each step sets the page, explains, and asks one question whose
// answer is computed from the exact theory when it is checked, not written here.
"use strict";

const COURSE = [
  {
    title: "On-policy TD works",
    state: { problem: "three_state", onPolicy: true, learners: ["td:alpha=0.01"], steps: 100000, seeds: 3 },
    text: [
      "Temporal-difference learning keeps one number per feature and, after each step, moves its estimate w.x towards r + gamma w.x'. Here data and question belong to the same policy: mu = pi.",
      "All eigenvalues of A = Phi' D (I - gamma P) Phi lie to the right of the axis, so the mean update pulls w to one fixed point. The curves fall and stay there.",
    ],
    question: "What is the error of the fixed point, to which the curves go down? (two digits)",
    answer: (a) => a.error(a.fixedPoint(0)),
    near: 0.06,
    why: (a) => `The fixed point has error ${shortNumber(a.error(a.fixedPoint(0)))}: features that cannot show the values exactly leave an error that no learner removes.`,
  },
  {
    title: "Off-policy, it diverges",
    state: { problem: "theta2theta", learners: ["td:alpha=0.01"], steps: 10000, seeds: 3 },
    text: [
      "Two states with features 1 and 2: one weight, values w and 2w. The behaviour policy goes back and forth, the target policy always moves to the second state. All rewards are 0, so w = 0 is right.",
      "The ratio rho = pi/mu corrects which action was taken, but not how often a state is visited. The update from the first state pulls w up more often than it should, and the error grows without end.",
    ],
    question: "What is A for eta = 0? It is one number: minus it is the rate at which the error grows per unit of alpha.",
    answer: (a) => a.A0[0][0],
    near: 0.03,
    why: (a) => `A = ${shortNumber(a.A0[0][0])}. Each step multiplies w by about 1 ${a.A0[0][0] < 0 ? "+" : "−"} ${shortNumber(Math.abs(a.A0[0][0]))} alpha in the mean.`,
  },
  {
    title: "Why: the eigenvalue",
    state: { problem: "baird", learners: ["td:alpha=0.005"], steps: 100000, seeds: 3 },
    text: [
      "Baird's counterexample: seven states, eight weights, all values 0. In the mean, w changes by alpha (b - A w). A mode of A with eigenvalue l changes by the factor 1 - alpha l: it shrinks if the real part of l is positive, and grows if it is negative.",
      "The picture of the eigenvalues shows a pair to the left of the axis. Function approximation, bootstrapping and off-policy data together allow that; each two of them do not (in the usual setting). That is the deadly triad.",
    ],
    question: "How many eigenvalues of A(0) lie to the left of the axis?",
    answer: (a) => a.spectrum(0).filter(([re]) => re < -1e-12).length,
    near: 0.001,
    why: (a) => `${a.spectrum(0).filter(([re]) => re < -1e-12).length}: a complex pair. Its imaginary part makes the weights swing while they grow.`,
  },
  {
    title: "What the penalty does",
    state: { problem: "baird", learners: ["td:alpha=0.005", "perturbed_td:alpha=0.005,eta=0.2"], steps: 100000, seeds: 3 },
    text: [
      "The paper adds a penalty: delta = r + gamma w.x' - (1 + eta) w.x. In the mean it adds eta G to A, with G = Phi' D Phi. Drag eta of perturbed TD and watch the pair cross the axis.",
      "The theorem asks for a positive definite matrix. To converge, less is enough: all eigenvalues to the right.",
    ],
    question: "From which eta on is the mean update stable? Drag, or read the picture of the path.",
    answer: (a) => a.eta_hurwitz,
    near: 0.03,
    why: (a) => `From ${shortNumber(a.eta_hurwitz)} on. Positive definite from ${shortNumber(a.eta_pd)} on, and the paper's bound asks for ${shortNumber(a.paper)}.`,
  },
  {
    title: "What it costs",
    state: { problem: "three_state", learners: ["perturbed_td:alpha=0.001,eta=0.6", "td:alpha=0.001"], steps: 300000, seeds: 3 },
    text: [
      "The penalty changes the question: its fixed point is the TD fixed point of a problem with discount gamma/(1 + eta) and smaller rewards. A large eta pulls all values to 0.",
      "A small one is not always better. Here an eigenvalue passes through 0, and there the fixed point has a pole: just above it the error is larger than that of predicting 0 everywhere, and values can have the wrong sign. Drag eta towards the pole and look at the values.",
    ],
    question: "At which eta is the pole?",
    answer: (a) => a.poles[0],
    near: 0.02,
    why: (a) => `At ${shortNumber(a.poles[0])}. The least error lies above it, not at it: that is why auto keeps away from poles.`,
  },
  {
    title: "What the others do",
    state: { problem: "three_state", learners: ["perturbed_td:alpha=0.001,eta=0.6", "tdc:alpha=0.001,ratio=10", "etd:alpha=0.001", "td:alpha=0.001,lam=0.9"], steps: 1000000, seeds: 3 },
    text: [
      "TDC has a second vector that corrects the direction: it goes to TD's own fixed point, stable or not. Emphatic TD weights states by how often the target policy would come from elsewhere: stable in the mean, but its weights are products of ratios, and they come in bursts.",
      "Longer traces (lam) look further ahead and rely less on their own estimate. Each cure has its price: bias, variance, or a second step size.",
    ],
    question: "TDC ends at TD's fixed point. What is the error there?",
    answer: (a) => a.error(a.fixedPoint(0)),
    near: 0.05,
    why: (a) => `${shortNumber(a.error(a.fixedPoint(0)))}, although predicting 0 everywhere has error ${shortNumber(a.error_of_zero)}: stable is not the same as good.`,
  },
  {
    title: "Choose for your own problem",
    state: { problem: "nonmonotone", learners: ["td:alpha=0.01", "perturbed_td:alpha=0.01,eta=0.5", "tdc:alpha=0.01,ratio=10"], steps: 300000, seeds: 3 },
    text: [
      "Stability need not be monotone in eta: in this problem more penalty destroys what less had. So look at the whole path before you choose, or let certify do it.",
      "Now open the editor, change probabilities, rewards or features, and see what happens. \"Copy as Python\" gives the line that makes the same numbers in the package.",
    ],
    question: "From which eta on is every larger penalty stable here?",
    answer: (a) => Math.max(0, a.eta_hurwitz),
    near: 0.03,
    why: (a) => `From ${shortNumber(Math.max(0, a.eta_hurwitz))} on. Unstable penalties: ${a.unstable.map(([x, y]) => `${shortNumber(x)} to ${shortNumber(y)}`).join(", ") || "none"}.`,
  },
];

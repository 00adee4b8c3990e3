// The exact theory of a small problem: matrices, thresholds, fixed points, errors; and the tables
// that the learners run on. The same statements as steadytd.theory, which the tests compare.
"use strict";

const BUCKETS = 64;

// What is wrong with a model, in sentences; an empty list if nothing is.
function faults(model) {
  const found = [];
  const S = model.P.length;
  const A = S ? model.P[0].length : 0;
  const near = (x, y) => Math.abs(x - y) <= 1e-9;
  if (S < 1 || S > 10) found.push(`A chain of 1 to 10 states, not ${S}.`);
  const all = [model.P, model.r, model.gamma, model.mu, model.pi, model.Phi].flat(4);
  if (!all.every(Number.isFinite)) found.push("Every entry must be a number.");
  for (let s = 0; s < S; s++) {
    for (let a = 0; a < A; a++) {
      if (model.P[s][a].some((p) => p < 0)) found.push(`P: state ${s}, action ${a} has a probability below 0.`);
      const sum = model.P[s][a].reduce((x, y) => x + y, 0);
      if (!near(sum, 1)) found.push(`P: state ${s}, action ${a} sums to ${shortNumber(sum)}, not 1.`);
    }
    for (const name of ["mu", "pi"]) {
      if (model[name][s].some((p) => p < 0)) found.push(`${name}: state ${s} has a probability below 0.`);
      const sum = model[name][s].reduce((x, y) => x + y, 0);
      if (!near(sum, 1)) found.push(`${name}: state ${s} sums to ${shortNumber(sum)}, not 1.`);
    }
    model.pi[s].forEach((p, a) => {
      if (p > 0 && !(model.mu[s][a] > 0))
        found.push(`pi takes action ${a} in state ${s}, which mu never takes: the ratio pi/mu is infinite.`);
    });
  }
  if (model.gamma.flat(2).some((g) => g < 0 || g > 1)) found.push("Discounts lie between 0 and 1.");
  if (!found.length && closedClasses(chainOf(model)).length > 1)
    found.push("mu's chain has two closed classes of states, so its long run is not unique; connect them.");
  if (!found.length && !matrices(model).v) found.push("The values of pi are not finite; use a discount below 1.");
  return found;
}

const chainOf = (m) =>
  m.P.map((rows, s) => rows[0].map((_, t) => rows.reduce((sum, row, a) => sum + m.mu[s][a] * row[t], 0)));

function closedClasses(P) {
  const n = P.length;
  const reach = P.map((row, i) => row.map((p, j) => p > 0 || i === j));
  for (let k = 0; k < n; k++)
    for (let i = 0; i < n; i++) if (reach[i][k]) for (let j = 0; j < n; j++) reach[i][j] = reach[i][j] || reach[k][j];
  const classes = [];
  for (let i = 0; i < n; i++) {
    const closed = reach[i].every((yes, j) => !yes || reach[j][i]);
    if (closed && !classes.some((c) => c.includes(i))) classes.push([...reach[i].keys()].filter((j) => reach[i][j]));
  }
  return classes;
}

// The stationary distribution: Grassmann, Taksar and Heyman's elimination, which never subtracts.
function stationary(P) {
  const states = closedClasses(P)[0];
  const A = states.map((i) => states.map((j) => P[i][j]));
  const n = A.length;
  for (let k = n - 1; k > 0; k--) {
    const out = A[k].slice(0, k).reduce((x, y) => x + y, 0);
    for (let i = 0; i < k; i++) A[i][k] /= out;
    for (let i = 0; i < k; i++) for (let j = 0; j < k; j++) A[i][j] += A[i][k] * A[k][j];
  }
  const d = new Array(n).fill(1);
  for (let k = 1; k < n; k++) {
    d[k] = 0;
    for (let i = 0; i < k; i++) d[k] += d[i] * A[i][k];
  }
  const sum = d.reduce((x, y) => x + y, 0);
  const whole = new Array(P.length).fill(0);
  states.forEach((s, i) => (whole[s] = d[i] / sum));
  return whole;
}

// d, P_gamma, r_pi, v_pi and the error's weights of a model.
function matrices(m) {
  const S = m.P.length;
  const d = stationary(chainOf(m));
  const flow = zeros(S, S);
  const r = new Array(S).fill(0);
  for (let s = 0; s < S; s++)
    m.P[s].forEach((row, a) =>
      row.forEach((p, t) => {
        flow[s][t] += m.pi[s][a] * p * m.gamma[s][a][t];
        r[s] += m.pi[s][a] * p * m.r[s][a][t];
      }),
    );
  const v = solveOne(added(identity(S), flow, -1), r);
  const interest = m.interest || new Array(S).fill(1);
  const raw = d.map((x, s) => x * interest[s]);
  const total = raw.reduce((x, y) => x + y, 0);
  return { d, flow, r, v, weight: raw.map((x) => x / total) };
}

// What `certify` says of the penalty: thresholds, poles, unstable penalties, bounds.
function analyse(model) {
  const { d, flow, r, v, weight } = matrices(model);
  const Phi = model.Phi;
  const S = Phi.length;
  const visited = [...d.keys()].filter((s) => d[s] > 0);
  const Q = rowSpace(visited.map((s) => Phi[s]));
  const X = times(Phi, Q); // features in the row space
  const Xt = transposed(X);
  const D = d.map((x, i) => identity(S)[i].map((one) => one * x));
  const G = times(times(Xt, D), X);
  const A0 = times(times(times(Xt, D), added(identity(S), flow, -1)), X);
  const b = apply(Xt, r.map((x, s) => x * d[s]));
  const L = cholesky(G);
  const white = whitened(A0, L);
  const symmetric = symmetricEigenvalues(added(white, transposed(white)).map((row) => row.map((x) => x / 2)));
  const low = -symmetric[symmetric.length - 1];
  const high = -symmetric[0];
  const poles = realOnes(eigenvalues(white).map(([re, im]) => [-re, -im])).sort((x, y) => x - y);
  let crossings = [...poles];
  if (G.length > 1) {
    const pairs = solve(bialternate(G), bialternate(A0));
    crossings = crossings.concat(realOnes(eigenvalues(pairs).map(([re, im]) => [-re, -im])));
  }
  const slack = 1e-9 * (1 + Math.abs(low) + Math.abs(high));
  crossings = crossings.filter((c) => low - slack <= c && c <= high + slack).sort((x, y) => x - y);
  const A = (eta) => added(A0, G, eta);
  const slowest = (eta) => Math.min(...eigenvalues(A(eta)).map(([re]) => re));
  const margin = 1 + Math.abs(low) + Math.abs(high);
  const ends = [low - margin, ...crossings, ...(low < 0 && high > 0 ? [0] : []), Math.max(high, ...crossings)];
  ends.sort((x, y) => x - y);
  const unstable = [];
  for (let i = 0; i + 1 < ends.length; i++) {
    const [left, right] = [ends[i], ends[i + 1]];
    if (right - left <= 1e-12 * margin || slowest((left + right) / 2) > 0) continue;
    const last = unstable[unstable.length - 1];
    if (last && left - last[1] <= 1e-12 * margin) last[1] = right;
    else unstable.push([left, right]);
  }
  const usable = unstable.filter(([, hi]) => hi > 0).map(([lo, hi]) => [Math.max(0, lo), hi]);
  const columns = visited.map((t) => flow.reduce((sum, row, s) => sum + d[s] * row[t], 0) / d[t]);
  const atPole = (eta) => poles.some((p) => Math.abs(eta - p) <= 1e-12 * (1 + Math.abs(p)));
  const stable = (eta) =>
    !atPole(eta) && !usable.some(([lo, hi]) => (lo < eta && eta <= hi) || (lo === 0 && eta === 0));
  const fixedPoint = (eta) => {
    if (atPole(eta)) return null;
    const y = solveOne(A(eta), b);
    return y && apply(Q, y);
  };
  const norm = (values) => Math.sqrt(values.reduce((sum, x, s) => sum + weight[s] * x * x, 0));
  const error = (w) => (w ? norm(apply(Phi, w).map((x, s) => x - v[s])) : Infinity);
  return {
    d, v, weight, rank: G.length, G, A0, b, Q, poles: poles.filter((p) => p >= 0), unstable: usable,
    eta_pd: high, eta_hurwitz: unstable.length ? unstable[unstable.length - 1][1] : low - margin,
    paper: Math.max(Math.max(...columns) - 1, 0), td_stable: stable(0), stable, fixedPoint, error,
    error_of_zero: norm(v), spectrum: (eta) => eigenvalues(A(eta)), slowest,
    values: (w) => apply(Phi, w),
  };
}

// What the theory says of a model, its analysis and a penalty (null: none is chosen), in sentences.
function sentences(model, a, eta) {
  const found = [];
  const td = JSON.stringify(model.pi) === JSON.stringify(model.mu) ? "On-policy TD" : "Off-policy TD";
  if (a.rank < model.Phi[0].length) found.push(`The features of the visited states have rank ${a.rank} of ${model.Phi[0].length}: all statements are about the values.`);
  found.push(a.td_stable
    ? `${td} is stable in the mean, with small enough steps. Its fixed point has error ${shortNumber(a.error(a.fixedPoint(0)))}; predicting 0 everywhere has ${shortNumber(a.error_of_zero)}.`
    : `${td}'s mean update is unstable: a mode ${-a.slowest(0) > 1e-12 ? `grows at rate ${shortNumber(-a.slowest(0))} per unit of α` : "does not decay"}.`);
  if (a.unstable.length) {
    const sets = a.unstable.map(([lo, hi]) => `${shortNumber(lo)} to ${shortNumber(hi)}`).join(", and ");
    found.push(`Perturbed TD is unstable for η from ${sets}, and stable in the mean for every η above ${shortNumber(a.eta_hurwitz)}.`);
  } else found.push("Perturbed TD is stable in the mean for every η >= 0.");
  if (a.eta_pd > 0) found.push(`A(η) is positive definite, as the theorem asks, above ${shortNumber(a.eta_pd)}; the paper's bound asks for ${shortNumber(a.paper)}.`);
  for (const p of a.poles) found.push(`At η = ${shortNumber(p)} the matrix is singular and the fixed point has a pole.`);
  if (eta !== null) {
    const w = a.fixedPoint(eta);
    found.push(w === null
      ? `η = ${shortNumber(eta)} is a pole: there is no fixed point.`
      : `At η = ${shortNumber(eta)} the mean update is ${a.stable(eta) ? "stable" : "unstable"}, and its fixed point has error ${shortNumber(a.error(w))}.`);
  }
  return found;
}

function realOnes(values) {
  return values.filter(([re, im]) => Math.abs(im) <= 1e-7 * (1 + Math.hypot(re, im))).map(([re]) => re);
}

// The matrix whose eigenvalues are the sums of two eigenvalues of A; see theory/thresholds.py.
function bialternate(A) {
  const pairs = [];
  for (let i = 1; i < A.length; i++) for (let j = 0; j < i; j++) pairs.push([i, j]);
  const same = (x, y) => (x === y ? 1 : 0);
  return pairs.map(([p, q]) =>
    pairs.map(
      ([r, s]) => A[p][r] * same(q, s) + A[q][s] * same(p, r) - A[p][s] * same(q, r) - A[q][r] * same(p, s),
    ),
  );
}

// The tables that learners run on, as steadytd.lab.tables makes them in Python.
function tablesOf(m) {
  const { d, v, weight } = matrices(m);
  const S = m.P.length;
  const t = { row: [], row_next: [], next_state: [], cumulative: [], facts: [], guide: [] };
  const peaks = m.pi.flatMap((row, s) => row.map((p, a) => [Math.max(p, m.mu[s][a]), m.mu[s][a]]));
  const taken = peaks.filter(([, mu]) => mu > 0).map(([peak]) => peak);
  const [low, high] = [Math.min(...taken), Math.max(...taken)];
  const interest = m.interest || new Array(S).fill(1);
  for (let s = 0; s < S; s++) {
    const begin = t.row.length;
    let sum = 0;
    m.P[s].forEach((row, a) =>
      row.forEach((p, next) => {
        const probability = m.mu[s][a] * p;
        if (probability === 0) return;
        sum += probability;
        const [pi, mu] = [m.pi[s][a], m.mu[s][a]];
        const gamma = m.gamma[s][a][next];
        t.row.push(s);
        t.row_next.push(next);
        t.next_state.push(next);
        t.cumulative.push(sum);
        t.facts.push(m.r[s][a][next], gamma, gamma, pi / mu, pi, mu, interest[s], low, high);
      }),
    );
    t.cumulative[t.cumulative.length - 1] = 1;
    for (let k = 0; k < BUCKETS; k++) {
      let e = begin;
      while (t.cumulative[e] <= k / BUCKETS) e++;
      t.guide.push(e);
    }
  }
  let total = 0;
  const chances = m.start || d;
  t.start = chances.map((p) => (total += p));
  const last = chances.reduce((found, p, s) => (p > 0 ? s : found), 0);
  for (let s = last; s < S; s++) t.start[s] = 1;
  const rows = { first: [], length: [], offset: [], feature: [], value: [] };
  m.Phi.forEach((row) => {
    rows.first.push(rows.value.length);
    rows.offset.push(0);
    row.forEach((x, k) => {
      if (x === 0) return;
      rows.feature.push(k);
      rows.value.push(x);
    });
    rows.length.push(rows.value.length - rows.first[rows.first.length - 1]);
  });
  const w0 = m.w0 || new Array(m.Phi[0].length).fill(0);
  return { n_states: S, n_features: m.Phi[0].length, ...t, ...rows, w0, weight, target: v };
}

// A number for people: four digits.
function shortNumber(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  const text = size >= 1e5 || size < 1e-3 ? x.toExponential(2) : String(Number(x.toPrecision(4)));
  return text.replace("e+", "e").replace("-", "−");
}

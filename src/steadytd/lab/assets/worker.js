// Runs learners beside the page: in slices of some milliseconds, so that a newer wish is heard.
// What comes before this file in the worker: LOOPS (see steadytd.lab.page), engine.js, algebra.js, theory.js.
"use strict";

const SLICE = 12; // milliseconds
const QUICK = 100000; // steps that are shown first, for all seeds
let newest = 0;

const pause = () => new Promise((done) => setTimeout(done, 0));

// One learner on seed 0 with its weights, its error and the visits of the states every so many steps.
function watched(wish) {
  const bench = new Bench(wish.tables);
  const one = bench.add({ ...wish.learner, advance: LOOPS[wish.learner.loop] });
  bench.begin(0);
  const frames = [];
  let visits = new Array(wish.tables.n_states).fill(0);
  for (;;) {
    frames.push({ weights: bench.weights(one), error: bench.error(one), visits });
    if (bench.step >= wish.steps) return frames;
    bench.run(bench.step + wish.watch, [], null);
    visits = new Array(wish.tables.n_states).fill(0);
    for (const e of bench.at.event.subarray(0, wish.watch)) visits[wish.tables.next_state[e]] += 1;
  }
}

// wish: {id, tables, learners, seeds, points, expected}
async function carryOut(wish) {
  newest = wish.id;
  const { tables, seeds, points } = wish;
  const learners = wish.learners.map((one) => ({ ...one, advance: LOOPS[one.loop] }));
  const steps = points[points.length - 1];
  const benches = seeds.map((seed) => {
    const bench = new Bench(tables);
    bench.own = learners.map((one) => bench.add(one));
    bench.errors = learners.map(() => []);
    bench.begin(seed);
    return bench;
  });
  let told = performance.now();
  const tell = (done) => {
    postMessage({ id: wish.id, done, errors: benches.map((b) => b.errors), weights: benches.map((b) => b.own.map((o) => b.weights(o))) });
    told = performance.now();
  };
  const stages = steps > QUICK ? [QUICK, steps] : [steps];
  for (const until of stages) {
    for (const bench of benches) {
      const record = () => bench.own.forEach((one, i) => bench.errors[i].push(bench.error(one)));
      const fresh = bench.step === 0;
      let rate = 20000;
      while (bench.step < until || (fresh && bench.errors[0].length === 0)) {
        const begun = performance.now();
        const to = Math.min(until, bench.step + rate);
        bench.run(to, points.filter((p) => p >= bench.step && p <= to && (p > bench.step || bench.step === 0)), record);
        const spent = performance.now() - begun;
        rate = Math.max(8192, Math.min(1e6, Math.round((rate * SLICE) / Math.max(spent, 0.5))));
        if (performance.now() - told > 60) {
          tell(share(benches, steps));
          await pause();
          if (newest !== wish.id) return;
        }
      }
    }
    tell(share(benches, steps));
    await pause();
    if (newest !== wish.id) return;
  }
  if (!wish.expected) return;
  for (let i = 0; i < learners.length; i++) {
    const found = expectation(tables, learners[i], points);
    postMessage({ id: wish.id, learner: i, expected: found });
    await pause();
    if (newest !== wish.id) return;
  }
  for (let i = 0; i < learners.length; i++) {
    const found = await largestStep(tables, learners[i], wish.rowSpace, () => newest === wish.id);
    if (newest !== wish.id) return;
    postMessage({ id: wish.id, learner: i, limit: found });
  }
}

const share = (benches, steps) => benches.reduce((sum, b) => sum + b.step / steps, 0) / benches.length;

// A step changes the vectors y by an affine map J y + c that depends on the transition: all of these maps.
// Null where a law's step is not affine in its vectors, or where it carries more than them (traces, memory).
function affineMaps(tables, spec) {
  if (!spec.affine) return null;
  const bench = new Bench({ ...tables, w0: new Array(tables.n_features).fill(0) });
  const one = bench.add(spec);
  bench.begin(0);
  const names = spec.arrays.filter((n) => n.startsWith("V_"));
  const d = tables.n_features;
  const size = names.length * d;
  const vectors = names.map((n) => one.own[n]);
  const image = (e, y) => {
    bench.at.event[0] = e;
    one.own.carry.fill(0);
    vectors.forEach((v, i) => v.set(y.slice(i * d, (i + 1) * d)));
    bench.advance(one, 0, 1);
    return [].concat(...vectors.map((v) => Array.from(v)));
  };
  const maps = [];
  for (let e = 0; e < tables.row.length; e++) {
    const [s, t] = [tables.row[e], tables.next_state[e]];
    const p = tables.cumulative[e] - (e > 0 && tables.row[e - 1] === s ? tables.cumulative[e - 1] : 0);
    const origin = image(e, new Array(size).fill(0));
    const twice = image(e, new Array(size).fill(2));
    const columns = [...Array(size).keys()].map((k) => {
      const unit = new Array(size).fill(0);
      unit[k] = 1;
      return image(e, unit).map((x, i) => x - origin[i]);
    });
    const sum = origin.map((x, i) => columns.reduce((total, column) => total + 2 * column[i], x));
    if (sum.some((x, i) => !(Math.abs(x - twice[i]) <= 1e-9 * (1 + Math.abs(x))))) return null;
    maps.push({ s, t, p, origin, J: transposed(columns) });
  }
  return { maps, names, size, bench, one };
}

// The map S -> L S L' of symmetric matrices, on their entries at these pairs i >= j.
const squared = (L, pairs) => pairs.map(([i, j]) => pairs.map(([k, l]) => L[i][k] * L[j][l] + (k === l ? 0 : L[i][l] * L[j][k])));
const pairsOf = (n) => [].concat(...Array.from({ length: n }, (_, i) => Array.from({ length: i + 1 }, (_, j) => [i, j])));

// What to expect at some points, exactly: the error of the mean weights, and the root mean square error. With z = (y, 1)
// a step takes z to L z, and z z' to L z z' L'. The means of z z' on "the state is s", one matrix for each s, follow a
// linear recursion, whose powers lead from point to point. Where they are too many, only the means of z are followed.
const [MOST_SECOND, MOST_FIRST] = [330, 200];
function expectation(tables, spec, points) {
  const found = affineMaps(tables, spec);
  if (!found) return null;
  const { maps, names, size, bench, one } = found;
  const [d, S, pairs] = [tables.n_features, tables.n_states, pairsOf(size + 1)];
  const second = S * pairs.length <= MOST_SECOND;
  const each = second ? pairs.length : size + 1;
  const N = S * each;
  if (!second && N > MOST_FIRST) return null;
  const K = new Float64Array(N * N);
  for (const { s, t, p, origin, J } of maps) {
    const L = [...J.map((row, i) => [...row, origin[i]]), [...new Array(size).fill(0), 1]];
    (second ? squared(L, pairs) : L).forEach((row, i) => row.forEach((x, k) => (K[(t * each + i) * N + s * each + k] += p * x)));
  }
  const z = [];
  names.forEach((name, i) => {
    const by = i === 0 ? 1 : (spec.starts[name.slice(2)] !== undefined ? spec.params[spec.starts[name.slice(2)]] : 0);
    for (let k = 0; k < d; k++) z.push(by * tables.w0[k]);
  });
  z.push(1);
  const first = second ? pairs.map(([i, j]) => z[i] * z[j]) : z;
  let state = new Float64Array(N);
  tables.start.forEach((total, s) => first.forEach((x, i) => (state[s * each + i] = (total - (s ? tables.start[s - 1] : 0)) * x)));
  const of = (s, k) => { // entry k of (x_s, 0, -v_s), so that its product with z is the error in state s
    for (let q = tables.first[s]; q < tables.first[s] + tables.length[s]; q++) if (tables.feature[q - tables.offset[s]] === k) return tables.value[q];
    return k === size ? -tables.target[s] : 0;
  };
  const errors = [...Array(S).keys()].map((s) => [...Array(size + 1).keys()].map((k) => of(s, k)));
  const expected = { bias: [], error: second ? [] : null };
  const powers = [K]; // K, K^2, K^4, ...
  let now = 0;
  for (const point of points) {
    let gap = point - now;
    for (let bit = 0; gap > 0; bit++, gap = Math.floor(gap / 2)) {
      if (powers.length <= bit) powers.push(product(powers[bit - 1], powers[bit - 1], N));
      if (gap % 2 === 1) state = applied(powers[bit], state, N);
    }
    now = point;
    const total = first.map((_, i) => [...Array(S).keys()].reduce((sum, s) => sum + state[s * each + i], 0));
    const last = second ? pairs.length - 1 - size : 0; // where the products with the entry 1 begin
    one.own.V_w.set(total.slice(last, last + d));
    expected.bias.push(bench.error(one));
    if (!second) continue;
    const square = errors.reduce((sum, x, s) => sum + (tables.weight[s] ? tables.weight[s] * dot(pairs.map(([i, j]) => (i === j ? 1 : 2) * x[i] * x[j]), total) : 0), 0);
    expected.error.push(Math.sqrt(Math.max(0, square)));
  }
  return expected;
}

// Whether the mean square of the weights stays bounded at a step size, as a function of it; null where it is not
// computed here. With C_s = E[y y'; state s], a step takes C to L(C), with L(C)_t = sum of p J C_s J'. All powers
// of L shrink if and only if C = L(C) + I has a positive solution. Features in their row space Q.
const MOST_UNKNOWNS = 450;
function meanSquare(tables, spec, Q) {
  const known = affineMaps(tables, spec);
  const r = Q[0].length;
  const blocks = known ? known.names.length : 0;
  const n = blocks * r;
  const pairs = pairsOf(n);
  const [S, each] = [tables.n_states, pairs.length];
  if (!known || S * each > MOST_UNKNOWNS) return null;
  const d = tables.n_features;
  const wide = zeros(blocks * d, n); // Q for every vector
  Q.forEach((row, k) => row.forEach((x, j) => [...Array(blocks).keys()].forEach((b) => (wide[b * d + k][b * r + j] = x))));
  const narrow = transposed(wide);
  return (alpha) => {
    const { maps } = affineMaps(tables, { ...spec, params: { ...spec.params, alpha } });
    const M = identity(S * each);
    for (const { s, t, p, J } of maps) {
      const F = times(times(narrow, J), wide);
      squared(F, pairs).forEach((entries, row) => entries.forEach((x, column) => (M[t * each + row][s * each + column] -= p * x)));
    }
    const ones = [].concat(...new Array(S).fill(pairs.map(([i, j]) => (i === j ? 1 : 0))));
    const found = solveOne(M, ones);
    if (!found || !found.every(Number.isFinite)) return false;
    for (let s = 0; s < S; s++) {
      const C = zeros(n, n);
      pairs.forEach(([i, j], k) => (C[i][j] = C[j][i] = found[s * each + k]));
      if (!cholesky(C).every((row, i) => row[i] > 0)) return false;
    }
    return true;
  };
}

// The largest step size with a bounded mean square, to half a percent; 0 if none is, null if it is not known.
async function largestStep(tables, spec, Q, current) {
  const stable = meanSquare(tables, spec, Q);
  if (!stable) return null;
  let [low, high] = [0, 1e-7];
  while (high < 1e3 && stable(high)) [low, high] = [high, 10 * high];
  while (low > 0 && high / low > 1.005) {
    const middle = Math.sqrt(low * high);
    if (stable(middle)) low = middle;
    else high = middle;
    await pause();
    if (!current()) return null;
  }
  return low;
}

function product(A, B, n) {
  const C = new Float64Array(n * n);
  for (let i = 0; i < n; i++)
    for (let k = 0; k < n; k++) {
      const a = A[i * n + k];
      if (a !== 0) for (let j = 0; j < n; j++) C[i * n + j] += a * B[k * n + j];
    }
  return C;
}

function applied(A, x, n) {
  const y = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let sum = 0;
    for (let j = 0; j < n; j++) sum += A[i * n + j] * x[j];
    y[i] = sum;
  }
  return y;
}

if (typeof onmessage !== "undefined" || typeof self !== "undefined")
  self.onmessage = ({ data: wish }) => {
    if (wish.watch) return postMessage({ id: wish.id, frames: watched(wish) });
    return carryOut(wish).catch((error) => postMessage({ id: wish.id, fault: String(error) }));
  };

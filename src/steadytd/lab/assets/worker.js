// Runs learners beside the page: in slices of some milliseconds, so that a newer wish is heard.
// What comes before this file in the worker: LOOPS (see steadytd.lab.page), engine.js, algebra.js, theory.js.
"use strict";

const SLICE = 12; // milliseconds
const QUICK = 100000; // steps that are shown first, for all seeds
let newest = 0;

const pause = () => new Promise((done) => setTimeout(done, 0));

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
}

const share = (benches, steps) => benches.reduce((sum, b) => sum + b.step / steps, 0) / benches.length;

// The error of the mean weights, exactly: a step changes the vectors y by an affine map that depends
// on the transition. So the means of y on "the state is s", one vector for each s, and the chances
// of s follow a linear recursion, which is squared from point to point. Null where a law's step is
// not affine in its vectors, or where it carries more than them (traces, memory).
function expectation(tables, spec, points) {
  if (!spec.affine) return null;
  const bench = new Bench({ ...tables, w0: new Array(tables.n_features).fill(0) });
  const one = bench.add(spec);
  bench.begin(0);
  const names = spec.arrays.filter((n) => n.startsWith("V_"));
  const d = tables.n_features;
  const size = names.length * d;
  const S = tables.n_states;
  const N = S * (size + 1);
  if (N > 200) return null;
  const vectors = names.map((n) => one.own[n]);
  const image = (e, y) => {
    bench.at.event[0] = e;
    one.own.carry.fill(0);
    vectors.forEach((v, i) => v.set(y.slice(i * d, (i + 1) * d)));
    bench.advance(one, 0, 1);
    return [].concat(...vectors.map((v) => Array.from(v)));
  };
  let K = new Float64Array(N * N);
  const at = (s, k) => s * (size + 1) + k;
  for (let e = 0; e < tables.row.length; e++) {
    const s = tables.row[e];
    const t = tables.next_state[e];
    const p = tables.cumulative[e] - (e > 0 && tables.row[e - 1] === s ? tables.cumulative[e - 1] : 0);
    const origin = image(e, new Array(size).fill(0));
    const twice = image(e, new Array(size).fill(2));
    let sum = [...origin];
    for (let k = 0; k < size; k++) {
      const unit = new Array(size).fill(0);
      unit[k] = 1;
      const moved = image(e, unit);
      for (let i = 0; i < size; i++) {
        K[at(t, i) * N + at(s, k)] += p * (moved[i] - origin[i]);
        sum[i] += 2 * (moved[i] - origin[i]);
      }
    }
    if (sum.some((x, i) => !(Math.abs(x - twice[i]) <= 1e-9 * (1 + Math.abs(x))))) return null;
    for (let i = 0; i < size; i++) K[at(t, i) * N + at(s, size)] += p * origin[i];
    K[at(t, size) * N + at(s, size)] += p;
  }
  let state = new Float64Array(N);
  let before = 0;
  tables.start.forEach((total, s) => {
    const p = total - before;
    before = total;
    names.forEach((name, i) => {
      const by = i === 0 ? 1 : (spec.starts[name.slice(2)] !== undefined ? spec.params[spec.starts[name.slice(2)]] : 0);
      for (let k = 0; k < d; k++) state[at(s, i * d + k)] = p * by * tables.w0[k];
    });
    state[at(s, size)] = p;
  });
  const errors = [];
  const powers = [K]; // K, K^2, K^4, ...
  let now = 0;
  for (const point of points) {
    let gap = point - now;
    for (let bit = 0; gap > 0; bit++, gap = Math.floor(gap / 2)) {
      if (powers.length <= bit) powers.push(product(powers[bit - 1], powers[bit - 1], N));
      if (gap % 2 === 1) state = applied(powers[bit], state, N);
    }
    now = point;
    const w = new Array(d).fill(0);
    for (let s = 0; s < S; s++) for (let k = 0; k < d; k++) w[k] += state[at(s, k)];
    one.own.V_w.set(w);
    errors.push(bench.error(one));
  }
  return errors;
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
  self.onmessage = (event) => carryOut(event.data).catch((error) => postMessage({ id: event.data.id, fault: String(error) }));

// Learners of the engine in the browser: one stream of transitions, and learners that follow it.
// Their loops are written by steadytd.engine.step, from the statements that Numba compiles; this file
// lays out their arrays, draws the stream and says how far to run. See docs/lab.md.
"use strict";

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9E3779B97F4A7C15n;
const GOLDEN_HIGH = 0x9E3779B9, GOLDEN_LOW = 0x7F4A7C15;
const CHUNK = 8192; // steps whose transitions are drawn at a time

// The output function of SplitMix64 (docs/streams.md), for the key of a seed.
function mix(z) {
  z = ((z ^ (z >> 30n)) * 0xBF58476D1CE4E5B9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94D049BB133111EBn) & MASK;
  return z ^ (z >> 31n);
}

// The upper half of the product of two words of 32 bits, from products of 16 bits.
function upper(a, b) {
  const a_low = a & 0xFFFF, a_high = a >>> 16, b_low = b & 0xFFFF, b_high = b >>> 16;
  const middle = Math.imul(a_high, b_low) + (Math.imul(a_low, b_low) >>> 16) >>> 0;
  const other = Math.imul(a_low, b_high) + (middle & 0xFFFF) >>> 0;
  return Math.imul(a_high, b_high) + (middle >>> 16) + (other >>> 16) | 0;
}

// mix of a word given as two halves, as a number in [0, 1). Halves, because 64-bit integers are slow.
function uniform(high, low) {
  low ^= (high << 2) | (low >>> 30);
  high ^= high >>> 30;
  high = upper(low, 0x1CE4E5B9) + Math.imul(high, 0x1CE4E5B9) + Math.imul(low, 0xBF58476D) | 0;
  low = Math.imul(low, 0x1CE4E5B9);
  low ^= (high << 5) | (low >>> 27);
  high ^= high >>> 27;
  high = upper(low, 0x133111EB) + Math.imul(high, 0x133111EB) + Math.imul(low, 0x94D049BB) | 0;
  low = Math.imul(low, 0x133111EB);
  low ^= (high << 1) | (low >>> 31);
  high ^= high >>> 31;
  return ((high >>> 0) * 0x200000 + (low >>> 11)) * 2 ** -53;
}

// A problem's tables (tablesOf in theory.js), the stream of a seed, and learners that follow it.
class Bench {
  constructor(tables) {
    this.tables = tables;
    this.at = { features: tables.n_features, event: new Int32Array(CHUNK), factor: new Float64Array(CHUNK).fill(1) };
    for (const name of ["guide", "row", "row_next", "next_state", "first", "length", "offset", "feature"])
      this.at[name] = Int32Array.from(tables[name]);
    for (const name of ["cumulative", "facts", "value"]) this.at[name] = Float64Array.from(tables[name]);
    this.learners = [];
  }

  // spec: {advance, arrays, memory, windows, starts, params}
  add(spec) {
    const d = this.tables.n_features;
    const own = { carry: new Float64Array(4) };
    for (const name of spec.arrays) {
      const bare = name.replace(/^(V_|Z_|_)/, "");
      const isNumber = name.startsWith("_");
      const [param, more] = spec.windows[bare] || [];
      own[name] = new Float64Array((isNumber ? 1 : d) * (param ? spec.params[param] + more : 1));
    }
    const one = { spec, own };
    this.learners.push(one);
    return one;
  }

  begin(seed) {
    const { start, w0 } = this.tables;
    const first = (mix(BigInt(seed)) + GOLDEN) & MASK;
    this.high = Number(first >> 32n) | 0;
    this.low = Number(first & 0xFFFFFFFFn) | 0;
    this.step = 0;
    const u = uniform(this.high, this.low);
    this.state = start.findIndex((sum) => sum > u);
    for (const { spec, own } of this.learners)
      for (const [name, place] of Object.entries(own)) {
        const bare = name.replace(/^(V_|_)/, "");
        const by = name === "V_w" || name === "average" ? 1 : spec.params[spec.starts[bare]];
        place.fill(0);
        if (name.startsWith("_") && !spec.memory.includes(bare)) place[0] = spec.params[bare];
        else if (!name.startsWith("_") && by !== undefined) w0.forEach((w, k) => (place[k] = w * by));
      }
  }

  // The transitions of the next `count` steps, as docs/streams.md says.
  walk(count) {
    const { event, guide, cumulative, next_state } = this.at;
    let { high, low, state } = this;
    for (let i = 0; i < count; i++) {
      const sum = (low >>> 0) + GOLDEN_LOW;
      low = sum | 0;
      high = high + GOLDEN_HIGH + (sum > 0xFFFFFFFF ? 1 : 0) | 0;
      const u = uniform(high, low);
      let e = guide[state * BUCKETS + (u * BUCKETS | 0)];
      while (u >= cumulative[e]) e++;
      event[i] = e;
      state = next_state[e];
    }
    Object.assign(this, { high, low, state });
  }

  // Run all learners up to a step, and call `record(step)` at each of the points on the way.
  run(until, points, record) {
    let next = 0;
    while (next < points.length && points[next] < this.step) next++;
    if (next < points.length && points[next] === this.step) record(points[next++]);
    while (this.step < until) {
      const count = Math.min(CHUNK, until - this.step);
      this.walk(count);
      let begin = 0;
      while (begin < count) {
        const stop = next < points.length ? Math.min(points[next] - this.step, count) : count;
        for (const one of this.learners) this.advance(one, begin, stop);
        begin = stop;
        if (next < points.length && points[next] === this.step + stop) record(points[next++]);
      }
      this.step += count;
    }
  }

  advance({ spec, own }, begin, end) {
    spec.advance(own, this.at, this.step, begin, end);
  }

  weights({ own }) {
    return Array.from(own.average || own.V_w);
  }

  // sqrt(sum_s weight_s (x_s.w - v_s)^2), in the engine's order; infinite where it is not finite.
  error({ own }) {
    const t = this.tables;
    const w = own.average || own.V_w;
    let total = 0;
    let largest = 0;
    const apart = [];
    for (let s = 0; s < t.n_states; s++) {
      let v = 0;
      for (let q = t.first[s]; q < t.first[s] + t.length[s]; q++) v += w[t.feature[q - t.offset[s]]] * t.value[q];
      v -= t.target[s];
      apart.push(v);
      if (t.weight[s] === 0) continue;
      total += t.weight[s] * (v * v);
      largest = Math.max(largest, Math.abs(v));
    }
    if (largest >= 1e140) {
      total = 0;
      for (let s = 0; s < t.n_states; s++) if (t.weight[s] !== 0) total += t.weight[s] * (apart[s] / largest) ** 2;
      total = largest * Math.sqrt(total);
    } else total = Math.sqrt(total);
    return Number.isNaN(total) ? Infinity : total;
  }
}

if (typeof module !== "undefined") module.exports = { Bench };

// Learners of the engine in the browser: one memory, one stream of transitions, one module per law.
// The modules are made by steadytd.lab.module from the text that the engine compiles; this file only
// lays out the memory and says how far to run. See docs/lab.md.
"use strict";

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9E3779B97F4A7C15n;
const CHUNK = 8192; // steps whose transitions are drawn at a time
const PAGE = 65536;

function mix(z) {
  z = ((z ^ (z >> 30n)) * 0xBF58476D1CE4E5B9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94D049BB133111EBn) & MASK;
  return z ^ (z >> 31n);
}

function uniform(key, n) {
  return Number(mix((key + (BigInt(n) + 1n) * GOLDEN) & MASK) >> 11n) * 2 ** -53;
}

// All numbers stand in one WebAssembly memory; `take` gives the address of room for n numbers.
class Room {
  constructor() {
    this.memory = new WebAssembly.Memory({ initial: 1 });
    this.end = 64;
  }

  take(bytes) {
    const at = this.end;
    this.end += Math.ceil(bytes / 64) * 64;
    const missing = this.end - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
    return at;
  }

  floats(numbers) {
    const at = this.take(8 * numbers.length);
    new Float64Array(this.memory.buffer, at, numbers.length).set(numbers);
    return at;
  }

  ints(numbers) {
    const at = this.take(4 * numbers.length);
    new Int32Array(this.memory.buffer, at, numbers.length).set(numbers);
    return at;
  }
}

// A problem's tables (see steadytd.lab.tables), the stream of a seed, and learners that follow it.
class Bench {
  constructor(tables, streamModule) {
    this.tables = tables;
    this.room = new Room();
    this.at = {};
    for (const name of ["guide", "row", "row_next", "next_state", "first", "length", "offset", "feature"])
      this.at[name] = this.room.ints(tables[name]);
    for (const name of ["cumulative", "facts", "value"]) this.at[name] = this.room.floats(tables[name]);
    this.at.event = this.room.take(4 * CHUNK);
    this.at.factor = this.room.floats(new Float64Array(CHUNK).fill(1));
    this.walk = new WebAssembly.Instance(streamModule, { lab: { memory: this.room.memory } }).exports.walk;
    this.learners = [];
  }

  // spec: {module, arguments, vectors, traces, memory, windows, starts, params, power, delay}
  add(spec) {
    const d = this.tables.n_features;
    const at = {}, size = { carry: 4 };
    for (const name of spec.arguments)
      if (/^(V_|Z_|average$)/.test(name)) size[name] = d;
    for (const name of spec.memory) size["_" + name] = 1;
    for (const [name, [param, more]] of Object.entries(spec.windows)) // so many of them
      for (const array of ["Z_" + name, "_" + name])
        if (array in size) size[array] *= spec.params[param] + more;
    for (const name of Object.keys(size)) at[name] = this.room.take(8 * size[name]);
    const instance = new WebAssembly.Instance(spec.module, { lab: { memory: this.room.memory } });
    const one = { spec, at, size, advance: instance.exports.advance };
    this.learners.push(one);
    return one;
  }

  numbers(at, n) {
    return new Float64Array(this.room.memory.buffer, at, n);
  }

  begin(seed) {
    const { start, w0, n_features: d } = this.tables;
    this.key = mix(BigInt(seed));
    this.step = 0;
    const u = uniform(this.key, 0);
    this.state = start.findIndex((sum) => sum > u);
    for (const { spec, at, size } of this.learners) {
      for (const [name, address] of Object.entries(at)) {
        const isVector = name.startsWith("V_") || name === "average";
        const place = this.numbers(address, size[name]);
        place.fill(0);
        if (name === "V_w" || name === "average") place.set(w0);
        else if (isVector && spec.starts[name.slice(2)] !== undefined) {
          const by = spec.params[spec.starts[name.slice(2)]];
          for (let k = 0; k < d; k++) place[k] = w0[k] * by;
        }
      }
    }
  }

  // Run all learners up to a step, and call `record(step)` at each of the points on the way.
  run(until, points, record) {
    let next = 0;
    while (next < points.length && points[next] < this.step) next++;
    if (next < points.length && points[next] === this.step) record(points[next++]);
    while (this.step < until) {
      const count = Math.min(CHUNK, until - this.step);
      this.state = this.walk(
        this.key, this.step, this.state, this.at.guide, this.at.cumulative, this.at.next_state,
        this.at.event, count,
      );
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

  advance(one, begin, end) {
    const { spec, at } = one;
    const power = spec.params.power || 0;
    if (power !== 0) {
      const factor = this.numbers(this.at.factor, CHUNK);
      const delay = spec.params.delay;
      for (let t = begin; t < end; t++) factor[t] = Math.pow(1 + (this.step + t) / delay, -power);
    } else if (this.scaled) this.numbers(this.at.factor, CHUNK).fill(1);
    this.scaled = power !== 0;
    const given = spec.arguments.map((name) => {
      if (name in at) return at[name];
      if (name in this.at) return this.at[name];
      if (name === "features") return this.tables.n_features;
      if (name === "first_step") return this.step;
      if (name === "begin") return begin;
      if (name === "end") return end;
      return spec.params[name.slice(1)];
    });
    one.advance(...given);
  }

  weights(one) {
    const name = "average" in one.at ? "average" : "V_w";
    return Array.from(this.numbers(one.at[name], this.tables.n_features));
  }

  // sqrt(sum_s weight_s (x_s.w - v_s)^2), in the engine's order; infinite where it is not finite.
  error(one) {
    const t = this.tables;
    const w = this.numbers("average" in one.at ? one.at.average : one.at.V_w, t.n_features);
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

if (typeof module !== "undefined") module.exports = { Bench, mix, uniform };

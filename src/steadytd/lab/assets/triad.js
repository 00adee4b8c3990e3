// The deadly triad as three switches: Baird's star with and without each of its three parts, a real run
// played back as a picture of the states, and the paper's penalty as a slider.
"use strict";

const TRIAD = { problem: "baird", steps: 4000, every: 10, alpha: 0.01, seconds: 4 };
const PARTS = [
  ["approximation", "Function approximation", "seven states share eight weights", "every state has a weight of its own"],
  ["bootstrapping", "Bootstrapping", "learns from its own estimate of the next state", "learns from whole returns"],
  ["off_policy", "Off-policy", "the data come from another policy than π", "the data come from π itself"],
];
const triad = { on: { approximation: true, bootstrapping: true, off_policy: true }, eta: 0 };

// The problem without the parts that are switched off; it begins at the same values.
function triadModel(base, on) {
  const found = { ...base };
  if (!on.off_policy) found.pi = base.mu;
  if (!on.approximation) Object.assign(found, { Phi: identity(base.Phi.length), w0: apply(base.Phi, base.w0) });
  if (!on.bootstrapping) {
    const { v } = matrices(found);
    const each = (f) => base.P.map((rows, s) => rows.map((row, a) => row.map((_, t) => f(s, a, t))));
    found.r = each((s, a, t) => base.r[s][a][t] + base.gamma[s][a][t] * v[t]); // the whole return, in the mean
    found.gamma = each(() => 0);
  }
  return found;
}

// What theory says of the switches and the penalty.
function triadVerdict(a, on, eta) {
  const rate = a.slowest(eta);
  const apart = PARTS.filter(([key]) => !on[key]).map(([, name]) => name.toLowerCase());
  const left = PARTS.length - apart.length;
  const pace = `tenfold in ${Number((Math.LN10 / (TRIAD.alpha * Math.abs(rate))).toPrecision(2)).toLocaleString("en")} steps`;
  if (!a.stable(eta)) return { stable: false, text: `${eta ? `η = ${shortNumber(eta)} is not enough` : "All three together: unstable"}. In the mean, the error grows ${pace}.${eta ? ` The mean update is stable above η = ${shortNumber(a.eta_hurwitz)}.` : ""}` };
  const why = eta ? `Stable with the penalty η = ${shortNumber(eta)}` : `Stable without ${apart.join(" and ")}`;
  const others = eta || left !== 2 ? "" : " Any two of the three are safe.";
  return { stable: true, text: `${why}. In the mean, the slowest mode shrinks ${pace}.${others}` };
}

function startTriad() {
  const base = data.problems.find((p) => p.name === TRIAD.problem);
  const law = data.learners.find((one) => one.penalty);
  $("triad").hidden = asFigure || !base || !law || Boolean(data.first);
  if ($("triad").hidden) return;
  const source = $("lab-worker").textContent;
  const runner = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  let wish = 0;
  let playing = 0;
  const star = new Star($("triad-star"), base.model);
  $("triad-switches").replaceChildren(...PARTS.map(([key, name, yes, no]) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "switch" });
    const note = document.createElement("small");
    button.append(name, note);
    button.setAttribute("role", "switch");
    const show = () => {
      button.setAttribute("aria-checked", String(triad.on[key]));
      note.textContent = triad.on[key] ? yes : no;
    };
    button.onclick = () => {
      triad.on[key] = !triad.on[key];
      show();
      again();
    };
    show();
    return button;
  }));
  const slider = $("triad-eta");
  slider.oninput = () => {
    triad.eta = Number(slider.value);
    again();
  };
  $("triad-again").onclick = again;

  function again() {
    const model = triadModel(base.model, triad.on);
    const theory = analyse(model);
    const verdict = triadVerdict(theory, triad.on, triad.eta);
    $("triad-verdict").textContent = verdict.text;
    $("triad-verdict").className = verdict.stable ? "right" : "fault";
    const next = triad.on.bootstrapping ? "r + γ w·x′" : "G";
    $("triad-update").textContent = `δ = ${next} − ${triad.eta ? `(1 + ${shortNumber(triad.eta)}) ` : ""}w·x\nw ← w + ${TRIAD.alpha} ρ δ x${triad.on.bootstrapping ? "" : "     G: the whole return"}`;
    $("triad-eta-text").textContent = triad.eta ? shortNumber(triad.eta) : "0: plain TD";
    const params = { ...Object.fromEntries(law.params.map((p) => [p.name, p.default ?? p.start])), alpha: TRIAD.alpha, [law.penalty]: triad.eta };
    wish += 1;
    document.body.dataset.triad = "0";
    runner.postMessage({ id: wish, watch: TRIAD.every, steps: TRIAD.steps, tables: tablesOf(model), learner: specOf({ law, params }) });
    star.prepare(model);
  }

  runner.onmessage = ({ data: run }) => {
    if (run.id !== wish) return;
    const model = triadModel(base.model, triad.on);
    const errors = run.frames.map((frame, i) => [i * TRIAD.every, frame.error]);
    const finite = errors.map(([, e]) => e).filter((e) => Number.isFinite(e) && e > 0);
    const high = 2 * Math.max(100, ...finite);
    const low = Math.max(1e-4, Math.min(1, ...finite)) / 2;
    cancelAnimationFrame(playing);
    const begun = performance.now();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const show = (now) => {
      const last = run.frames.length - 1;
      const i = still ? last : Math.max(0, Math.min(last, Math.floor(((now - begun) / 1000 / TRIAD.seconds) * last)));
      star.show(apply(model.Phi, run.frames[i].weights), i < last ? run.frames[i].visits : null);
      draw($("triad-error"), {
        label: "error over steps, logarithmic", height: 280, lines: [{ colour: errors[i][1] > 10 * errors[0][1] ? "var(--warn)" : "var(--accent)", wide: 2.2, points: errors.slice(0, i + 1) }],
        x: { low: 0, high: TRIAD.steps, title: "step" }, y: { low, high, log: true, title: "error" },
      });
      document.body.dataset.triad = i >= last ? "1" : "0";
      if (i < last) playing = requestAnimationFrame(show);
    };
    show(begun);
  };
  again();
}

// The states as a picture: a column for each value, a disc that grows with visits, an arrow for each action.
class Star {
  constructor(place, model) {
    const [width, height] = [560, 330];
    const S = model.P.length;
    this.tall = 105; // pixels of the highest column
    this.svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Baird's star: the value of each state as a column, visits as the size of its disc" });
    const centre = S - 1;
    this.at = [...Array(S).keys()].map((s) => (s === centre ? [width / 2, height - 46] : [50 + (s * (width - 100)) / (S - 2), 150 + 26 * Math.sin((Math.PI * s) / (S - 2))]));
    const [cx, cy] = this.at[centre];
    this.at.slice(0, centre).forEach(([x, y], s) => {
      make("path", { d: `M${cx} ${cy}Q${(x + cx) / 2 + 22} ${(y + cy) / 2 + 16} ${x} ${y}`, class: "arrow away" }, this.svg);
      const [dx, dy] = [cx - x, cy - y];
      const long = Math.hypot(dx, dy);
      make("path", { d: `M${x} ${y}L${cx - (18 * dx) / long} ${cy - (18 * dy) / long}`, class: "arrow", "marker-end": "url(#triad-head)" }, this.svg);
      this.label(s, x + 0.45 * dx, y + 0.45 * dy);
    });
    make("path", { d: `M${cx + 10} ${cy + 6}c46 30 46 -42 6 -18`, class: "arrow", "marker-end": "url(#triad-head)" }, this.svg);
    this.label(centre, cx + 62, cy + 4);
    const head = make("marker", { id: "triad-head", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, make("defs", {}, this.svg));
    make("path", { d: "M0 0L8 4L0 8z", class: "head" }, head);
    this.columns = this.at.map(([x, y]) => make("rect", { x: x - 7, width: 14, y, height: 0, rx: 2 }, this.svg));
    this.discs = this.at.map(([x, y]) => make("circle", { cx: x, cy: y, r: 9, class: "state" }, this.svg));
    this.numbers = this.at.map(([x]) => make("text", { x, "text-anchor": "middle", class: "note" }, this.svg));
    make("text", { x: 8, y: height - 26, class: "note" }, this.svg, "Solid arrow: always to the last state.");
    this.dashed = make("text", { x: 8, y: height - 10, class: "note" }, this.svg);
    place.replaceChildren(this.svg);
  }

  label(s, x, y) {
    this.ratios = this.ratios || [];
    this.ratios[s] = make("text", { x, y, "text-anchor": "middle", class: "ratio" }, this.svg);
  }

  prepare(model) {
    const ratio = (s, a) => shortNumber(model.pi[s][a] / model.mu[s][a]);
    this.ratios.forEach((text, s) => (text.textContent = `ρ ${ratio(s, 0)}`));
    this.dashed.textContent = `Dashed: to one of the others, ρ ${ratio(0, 1)}.`;
  }

  // Heights are logarithmic beyond 1, so that small and huge values are both seen.
  show(values, visits) {
    const limit = 1e6;
    values.forEach((v, s) => {
      const [, y] = this.at[s];
      const size = Number.isFinite(v) ? Math.min(Math.abs(v), limit) : limit;
      const h = (this.tall * Math.log10(1 + size)) / Math.log10(1 + limit);
      const up = v >= 0;
      const column = this.columns[s];
      column.setAttribute("y", up ? y - h : y);
      column.setAttribute("height", h);
      column.setAttribute("class", size > 100 ? "column wild" : "column");
      const seen = visits ? visits[s] : 0;
      this.discs[s].setAttribute("r", 9 + 2.4 * Math.sqrt(seen));
      this.numbers[s].setAttribute("y", up ? y - h - 5 : y + Math.max(h, 9) + 14);
      this.numbers[s].textContent = `${size >= limit ? (up ? "▲ " : "▼ ") : ""}${Math.abs(v) < 0.005 ? "0" : shortNumber(Number(v.toPrecision(2)))}`;
    });
  }
}

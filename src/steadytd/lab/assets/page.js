// The page: controls, charts, sentences, the course. All numbers come from theory.js and the worker.
"use strict";

const data = JSON.parse(document.getElementById("lab-data").textContent);
const $ = (id) => document.getElementById(id);
const POINTS = 201;
const OPENING = ["perturbed_td:alpha=0.001,eta=0.6", "td:alpha=0.001"];
const state = { problem: "three_state", learners: [], steps: 300000, seeds: 3, step: 0, onPolicy: false, own: null, answers: [] };
const asFigure = new URLSearchParams(location.hash.slice(1)).has("small"); // a figure in another page
const asSlides = new URLSearchParams(location.hash.slice(1)).has("slides");
let model, tables, analysis, worker, wishes = 0, wished = 0;
var curves; // also for whoever looks at the page from outside: a property of the window

// Greek letters as they stand in equations

const SYMBOLS = { alpha: "α", beta: "β", eta: "η", lam: "λ", zeta: "ζ" };
const symbol = (name) => SYMBOLS[name] || name;

// The update of a learner's text with the numbers that it has now.
function updateText({ law, params }) {
  const numbers = Object.entries(params).filter(([name, value]) => SYMBOLS[name] && Number.isFinite(value));
  return numbers.reduce((text, [name, value]) => text.replaceAll(SYMBOLS[name], plainNumber(value)), law.equations);
}

// learners as text

function parseLearner(text) {
  const [name, rest = ""] = text.split(/:(.*)/s);
  const law = data.learners.find((l) => l.name === name);
  if (!law) throw new Error(`There is no learner ${name} here.`);
  const params = Object.fromEntries(law.params.map((p) => [p.name, p.start]));
  for (const part of rest.split(",").filter(Boolean)) {
    const [key, value] = part.split("=");
    const param = law.params.find((p) => p.name === key);
    if (!param) throw new Error(`${name} has no parameter ${key}.`);
    params[key] = param.words.length ? value : Number(value);
    if (!param.words.length && !(params[key] >= param.low && params[key] <= param.high)) throw new Error(`${name}: ${key} = ${value} is outside its range.`);
    if (param.words.length && !param.words.includes(value)) throw new Error(`${name}: ${key} is one of ${param.words.join(", ")}.`);
  }
  return { law, params };
}

function plainNumber(x) {
  return String(x).replace("e+", "e");
}

function learnerText({ law, params }) {
  const shown = law.params.filter((p) => params[p.name] !== p.default).map((p) => `${p.name}=${plainNumber(params[p.name])}`);
  return shown.length ? `${law.name}:${shown.join(",")}` : law.name;
}

function specOf({ law, params }) {
  const variant = law.variant ? params[law.variant] : "";
  const traced = law.trace !== null && (params[law.trace] || 0) !== 0;
  const form = law.forms.find((f) => f.variant === variant && f.traced === traced);
  return { ...form, params };
}

// the address

function toAddress() {
  const parts = new URLSearchParams();
  parts.set("p", state.own ? "own" : state.problem);
  if (state.onPolicy) parts.set("on", "1");
  parts.set("l", state.learners.map(learnerText).join(";"));
  parts.set("n", state.steps);
  parts.set("k", state.seeds);
  if (state.step) parts.set("step", state.step);
  if (asFigure) parts.set("small", "1");
  if (asSlides) parts.set("slides", "1");
  if (state.answers.some(Boolean)) parts.set("a", answersText());
  if (state.own) parts.set("m", JSON.stringify(state.own));
  history.replaceState(null, "", "#" + parts);
}

function fromAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (!parts.has("p")) return false;
  try {
    const own = parts.has("m") ? JSON.parse(parts.get("m")) : null;
    if (own) {
      const wrong = faults(own);
      if (wrong.length) throw new Error(wrong[0]);
    }
    const known = data.problems.some((p) => p.name === parts.get("p"));
    if (!own && !known) throw new Error(`There is no problem ${parts.get("p")} here.`);
    const learners = parts.get("l").split(";").filter(Boolean).slice(0, 8).map(parseLearner);
    Object.assign(state, {
      own, problem: own ? state.problem : parts.get("p"), onPolicy: parts.has("on"), learners,
      steps: limited(Number(parts.get("n")), 1000, 1e7), seeds: limited(Number(parts.get("k")), 1, 10),
      step: limited(Number(parts.get("step") || 0), 0, data.course.length), answers: answersFrom(parts.get("a") || ""),
    });
    return true;
  } catch (error) {
    say(`This address cannot be read: ${error.message}`);
    return false;
  }
}

const limited = (x, low, high) => (Number.isFinite(x) ? Math.max(low, Math.min(high, Math.round(x))) : low);

// the problem

function modelNow() {
  const found = state.own || data.problems.find((p) => p.name === state.problem).model;
  return state.onPolicy ? { ...found, pi: found.mu } : found;
}

function takeProblem() {
  model = modelNow();
  tables = tablesOf(model);
  analysis = analyse(model);
  curves = null;
}

// runs

function startWorker() {
  const source = $("lab-worker").textContent;
  worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
  worker.onmessage = ({ data: news }) => {
    if (news.id !== wishes) return;
    if (news.fault) return say(news.fault);
    if (news.limit !== undefined) curves.limits[news.learner] = news.limit;
    else if (news.learner !== undefined) curves.expected[news.learner] = news.expected;
    else {
      Object.assign(curves, { errors: news.errors, weights: news.weights, done: news.done });
      $("progress").value = news.done;
      document.body.dataset.done = news.done >= 1 ? "1" : "0";
      if (curves.first === undefined && news.errors[news.errors.length - 1][0].length > 1) {
        curves.first = performance.now() - wished;
        document.body.dataset.first = curves.first.toFixed(0);
      }
    }
    drawCurves();
    drawValues();
    drawTable();
    showNotes();
  };
}

function run() {
  wishes += 1;
  wished = performance.now();
  const steps = state.steps;
  const points = [...new Set(Array.from({ length: POINTS }, (_, i) => rint((i * steps) / (POINTS - 1))))];
  const old = curves;
  curves = { points, errors: null, weights: null, expected: state.learners.map(() => null), limits: [], done: 0 };
  if (old && old.errors && old.errors[0].length === state.learners.length) curves.before = old;
  document.body.dataset.done = "0";
  worker.postMessage({
    id: wishes, tables, learners: state.learners.map(specOf), points, expected: true, rowSpace: analysis.Q,
    seeds: Array.from({ length: state.seeds }, (_, i) => i),
  });
}

// Round half to even, as NumPy does, so that points are the engine's.
function rint(x) {
  const r = Math.round(x);
  return Math.abs(x % 1) === 0.5 && r % 2 !== 0 ? r - 1 : r;
}

// charts

// A law has the colour that it has in every page and figure; where another line has it already, a shade of it.
function colourOf(i) {
  const used = new Set();
  for (let j = 0; ; j++) {
    const shades = data.colours[state.learners[j].law.name];
    const colour = shades.find((one) => !used.has(one)) || shades[0];
    if (j === i) return colour;
    used.add(colour);
  }
}

function nameOf(one) {
  return Object.entries(SYMBOLS).reduce((text, [name, letter]) => text.replace(`${name}=`, `${letter} = `), learnerText(one).replace(":", " ").replaceAll(",", ", "));
}

// The learner whose penalty the path shows, and that penalty.
const penalised = () => state.learners.find((l) => l.law.penalty && !(l.params.lam > 0));
function presentEta() {
  const found = penalised();
  return found ? found.params[found.law.penalty] : null;
}

function drawCurves() {
  if (!curves.errors) return;
  const lines = [];
  const all = [];
  curves.errors.forEach((seed, k) =>
    seed.forEach((errors, i) => {
      all.push(...errors.filter(Number.isFinite));
      lines.push({ colour: colourOf(i), faint: k > 0, wide: k ? 1 : 1.9, last: k ? "" : shortNumber(errors[errors.length - 1]), points: errors.map((e, j) => [curves.points[j], e]) });
    }),
  );
  curves.expected.forEach((found, i) => {
    for (const [errors, dash] of found ? [[found.bias, "5 4"], [found.error || [], "1.5 2.5"]] : [])
      lines.push({ colour: colourOf(i), dash, wide: 1.3, points: errors.map((e, j) => [curves.points[j], e > 1e-9 * errors[0] ? e : NaN]) });
  });
  const high = Math.min(1e12, Math.max(1e-12, ...all)) * 2;
  const low = Math.max(1e-15, Math.min(...all.filter((x) => x > 0), high / 100)) / 2;
  draw($("chart-curves"), {
    label: "error of each learner over steps, logarithmic", lines,
    x: { low: 0, high: state.steps, title: "step" }, y: { low, high, log: true, title: "error" },
    tip: (x) => {
      const j = curves.points.reduce((best, p, i) => (Math.abs(p - x) < Math.abs(curves.points[best] - x) ? i : best), 0);
      const rows = state.learners.map((one, i) => [nameOf(one), shortNumber(curves.errors[0][i][j]), colourOf(i)]);
      return { x: curves.points[j], rows: [["step", String(curves.points[j])], ...rows] };
    },
  });
}

// The penalties that slider and picture offer; a larger one can be typed.
function etaTop() {
  const near = Math.max(1, 2 * analysis.eta_pd);
  const usual = analysis.paper <= 3 * near ? Math.max(near, 1.1 * analysis.paper) : near;
  return Math.max(usual, presentEta() || 0);
}

// Drag the dot in the picture: the penalty goes where the pointer is.
function dragEta(eta) {
  const one = penalised();
  if (!one) return;
  const top = etaTop();
  one.params[one.law.penalty] = Number(Math.max(0, Math.min(top, eta)).toPrecision(4));
  showLearners();
  changed();
}

function drawPath() {
  const eta = presentEta();
  const top = etaTop();
  const grid = Array.from({ length: 400 }, (_, i) => (i / 399) * top).filter((e) => !analysis.poles.includes(e));
  const points = grid.map((e) => [e, analysis.error(analysis.fixedPoint(e))]);
  const shown = points.map(([, y]) => y).filter((y) => Number.isFinite(y) && y > 0);
  const middle = [...shown].sort((x, y) => x - y)[Math.floor(shown.length / 2)] || 1;
  const high = Math.max(Math.min(Math.max(...shown, 1e-12), 30 * Math.max(middle, analysis.error_of_zero)), 1e-12) * 1.3;
  const low = Math.max(Math.min(...shown, high / 10), high * 1e-6) / 1.3;
  const flat = !shown.length || Math.max(...shown) < 1e-9;
  const marks = [[analysis.paper, "paper's bound"], [analysis.eta_pd, "positive definite"], [analysis.eta_hurwitz, "stable"], ...analysis.poles.slice(0, 2).map((p) => [p, "pole"])];
  const rules = [];
  for (const [x, text] of marks.filter(([x]) => x > 0 && x <= top)) {
    const same = rules.find((rule) => Math.abs(rule.x - x) <= 1e-6 * (1 + x));
    if (same) same.texts.push(text);
    else rules.push({ x, texts: [text] });
  }
  for (const rule of rules) rule.text = `${rule.texts.join(", ")}: ${shortNumber(rule.x)}`;
  if (eta !== null) rules.push({ x: eta, strong: true, text: `η = ${shortNumber(eta)}: drag` });
  const here = eta === null ? [] : [[eta, analysis.error(analysis.fixedPoint(eta))]];
  draw($("chart-path"), {
    label: "error of perturbed TD's fixed point over the penalty", headroom: rules.length,
    x: { low: 0, high: top, title: "penalty η" },
    y: flat ? { low: -0.1, high: 1, title: "error of the fixed point" } : { low, high, log: true, title: "error of the fixed point" },
    bands: analysis.unstable.map(([from, to]) => ({ from, to })), rules,
    lines: [{ colour: "var(--ink)", points }],
    dots: here.filter(([, y]) => Number.isFinite(y)).map(([x, y]) => ({ x, y: flat ? y : Math.max(y, low), colour: "var(--accent)", size: 8 })),
    tip: (x) => ({ x, rows: [["η", shortNumber(x)], ["error", shortNumber(analysis.error(analysis.fixedPoint(x)))], [analysis.stable(x) ? "stable" : "unstable", ""]] }),
  });
  $("path-rows").textContent = analysis.paper > top ? ` The paper's bound, ${shortNumber(analysis.paper)}, lies to the right.` : "";
}

function drawSpectrum() {
  const eta = presentEta() || 0;
  const trail = Array.from({ length: 25 }, (_, i) => analysis.spectrum((i / 24) * eta)).flat();
  const now = analysis.spectrum(eta);
  const zero = analysis.spectrum(0);
  const all = [...trail, ...now, ...zero];
  const reach = Math.max(...all.map(([re]) => Math.abs(re)), 1e-9);
  const tall = Math.max(...all.map(([, im]) => Math.abs(im)), reach / 3);
  draw($("chart-spectrum"), {
    label: "eigenvalues of A(eta) in the complex plane",
    x: { low: Math.min(-0.25 * reach, 1.15 * Math.min(...all.map(([re]) => re))), high: 1.15 * reach, title: "real part" },
    y: { low: -1.2 * tall, high: 1.2 * tall, title: "imaginary part" },
    bands: [{ from: -1e9, to: 0 }], rules: [{ x: 0, strong: true }],
    dots: [
      ...trail.map(([x, y]) => ({ x, y, colour: "var(--soft)", size: 1.6, faint: true })),
      ...zero.map(([x, y]) => ({ x, y, colour: "var(--soft)", hollow: true, text: `η 0: ${shortNumber(x)} ${shortNumber(y)}i` })),
      ...now.map(([x, y]) => ({ x, y, colour: x > 0 ? "var(--good)" : "var(--warn)", size: 5, text: `η ${shortNumber(eta)}: ${shortNumber(x)} ${shortNumber(y)}i` })),
    ],
  });
}

function drawValues() {
  const S = analysis.v.length;
  const dots = [];
  const states = [...Array(S).keys()];
  if (curves && curves.weights)
    state.learners.forEach((one, i) => {
      analysis.values(curves.weights[0][i]).forEach((y, s) =>
        dots.push({ x: s + (i - (state.learners.length - 1) / 2) * 0.12, y, colour: colourOf(i), text: `${nameOf(one)}, state ${s}: ${shortNumber(y)}` }),
      );
    });
  const sizes = [...analysis.v, 0];
  const known = [...sizes, ...analysis.values(tables.w0)].map(Math.abs);
  const visible = (d) => Math.abs(d.y) <= 4 * Math.max(...known, 1e-9);
  const heights = [...sizes, ...dots.filter(visible).map((d) => d.y)];
  const [low, high] = [Math.min(...heights), Math.max(...heights)];
  const space = 0.12 * (high - low || 1);
  draw($("chart-values"), {
    label: "values of the states: true ones as lines, learned ones as dots",
    x: { low: -0.6, high: S - 0.4, title: "state", text: (v) => (Number.isInteger(v) ? String(v) : "") },
    y: { low: low - space, high: high + space, title: "value" },
    lines: states.map((s) => ({ colour: "var(--ink)", wide: 2.4, points: [[s - 0.38, analysis.v[s]], [s + 0.38, analysis.v[s]]] })),
    dots: dots.filter(visible),
    signs: dots.filter((d) => !visible(d)).map((d) => ({ ...d, up: !(d.y < 0), note: S <= 4 ? shortNumber(d.y) : "" })),
  });
  $("values-note").textContent = dots.every(visible) ? "" : " Triangles: values beyond the picture; point at one for its number.";
}

function drawTable() {
  if (!curves.errors) return;
  const rows = state.learners.map((one, i) => {
    const last = curves.errors.map((seed) => seed[i][seed[i].length - 1]);
    const mean = last.reduce((x, y) => x + y, 0) / last.length;
    const start = curves.errors[0][i][0];
    const word = last.some((x) => !Number.isFinite(x)) ? "overflowed" : mean > 10 * start ? "growing" : "";
    const spread = Math.sqrt(last.reduce((sum, x) => sum + (x - mean) ** 2, 0) / Math.max(1, last.length - 1) / last.length);
    return [nameOf(one), shortNumber(start), shortNumber(mean), last.length > 1 ? `± ${shortNumber(spread)}` : "", word];
  });
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const text of ["learner", "error at the start", "error now", "standard error", "ended"]) head.appendChild(Object.assign(document.createElement("th"), { textContent: text, scope: "col" }));
  const body = table.createTBody();
  rows.forEach((row, i) => {
    const line = body.insertRow();
    row.forEach((text) => (line.insertCell().textContent = text));
    line.cells[0].style.borderLeft = `6px solid ${colourOf(i)}`;
  });
  $("numbers").replaceChildren(table);
}

function say(text) {
  $("fault").textContent = text || "";
}

function showSentences() {
  $("sentences").replaceChildren(...sentences(model, analysis, presentEta()).map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

// controls

function knob(one, param, place) {
  const label = document.createElement("label");
  label.className = "knob";
  label.title = param.doc;
  label.append(symbol(param.name));
  if (param.words.length) {
    const choice = document.createElement("select");
    for (const word of param.words) choice.add(new Option(word, word, false, word === one.params[param.name]));
    choice.onchange = () => {
      one.params[param.name] = choice.value;
      changed();
    };
    label.append(choice, document.createElement("span"));
  } else {
    const log = param.low === 0 && param.above;
    const [low, high] = log ? [-6, param.name === "alpha" ? 0 : 3] : [param.low, param.name === one.law.penalty ? etaTop() : Number.isFinite(param.high) && param.high < 1e6 ? param.high : 3];
    const slider = Object.assign(document.createElement("input"), { type: "range", min: low, max: high, step: log ? 0.01 : (high - low) / 1000, value: log ? Math.log10(one.params[param.name]) : one.params[param.name] });
    slider.setAttribute("aria-label", `${one.law.name} ${param.name}`);
    slider.dataset.param = param.name;
    const field = Object.assign(document.createElement("input"), { type: "text", inputMode: "decimal", value: plainNumber(one.params[param.name]) });
    field.setAttribute("aria-label", `${one.law.name} ${param.name}, number`);
    slider.oninput = () => {
      const raw = Number(slider.value);
      one.params[param.name] = Number((log ? 10 ** raw : raw).toPrecision(log ? 2 : 4));
      field.value = plainNumber(one.params[param.name]);
      changed();
    };
    field.onchange = () => {
      const value = Number(field.value);
      const good = field.value.trim() !== "" && value >= param.low && value <= param.high && !(param.above && value === param.low);
      wrong.textContent = good ? "" : `${param.name} must be a number ${param.rule}, not '${field.value}'.`;
      field.setAttribute("aria-invalid", String(!good));
      if (!good) return;
      one.params[param.name] = value;
      if (param.name === one.law.penalty) slider.max = etaTop();
      slider.value = log ? Math.log10(value) : value;
      changed();
    };
    const wrong = Object.assign(document.createElement("em"), { className: "fault" });
    wrong.setAttribute("aria-live", "polite");
    label.append(slider, field, wrong);
  }
  place.append(label);
}

function showLearners() {
  $("learners").replaceChildren(...state.learners.map((one, i) => {
    const box = document.createElement("fieldset");
    box.className = "learner";
    const legend = document.createElement("legend");
    const mark = document.createElement("i");
    mark.style.background = colourOf(i);
    legend.append(mark, one.law.name);
    legend.title = one.law.summary;
    box.append(legend);
    for (const param of one.law.params) knob(one, param, box);
    const limit = Object.assign(document.createElement("p"), { className: "limit" });
    const update = Object.assign(document.createElement("pre"), { className: "update" });
    box.append(limit, update);
    const away = Object.assign(document.createElement("button"), { type: "button", textContent: "remove" });
    away.setAttribute("aria-label", `remove ${one.law.name}`);
    away.onclick = () => {
      state.learners.splice(i, 1);
      showLearners();
      changed();
    };
    if (state.learners.length > 1) box.append(away);
    return box;
  }));
}

// Below each learner: its update with the present numbers, and up to which step size it is stable.
function showNotes() {
  document.querySelectorAll("#learners .learner").forEach((box, i) => {
    const one = state.learners[i];
    box.querySelector(".update").textContent = updateText(one);
    const note = box.querySelector(".limit");
    const known = curves && curves.limits ? curves.limits[i] : undefined;
    const beyond = known !== undefined && known !== null && one.params.alpha >= known;
    note.classList.toggle("fault", beyond);
    if (known === undefined) note.textContent = "Largest stable α: …";
    else if (known === null) note.textContent = "Largest stable α: see steadytd certify.";
    else if (known === 0) note.textContent = "No α is stable: the mean squared error grows without bound.";
    else note.textContent = `Largest stable α: ${shortNumber(Number(known.toPrecision(2)))}. Beyond it the mean squared error grows without bound${beyond ? ", as here" : ""}.`;
  });
}

function changed(newProblem = false) {
  if (newProblem) takeProblem();
  toAddress();
  drawPath();
  drawSpectrum();
  showSentences();
  showCode();
  run();
  showNotes();
}

function showCode() {
  const texts = state.learners.map((l) => JSON.stringify(learnerText(l)));
  const name = state.own || state.onPolicy ? "problem" : JSON.stringify(state.problem);
  const lines = ["import steadytd as st", ""];
  if (state.own) lines.push(ownInPython(state.own));
  if (state.onPolicy && !state.own) lines.push(`p = st.problem(${JSON.stringify(state.problem)})`, 'problem = st.Problem(name="on_policy", P=p.P, r=p.r, gamma=p.gamma, mu=p.mu, pi=p.mu, Phi=p.Phi, w0=p.w0, start=p.start)');
  lines.push(`r = st.run(${name}, [${texts.join(", ")}], steps=${state.steps}, seeds=${state.seeds}, points=${POINTS})`, "print(r.summary)");
  $("python").textContent = lines.join("\n");
  document.body.classList.toggle("pathless", presentEta() === null);
  $("whole").href = location.href.replace("&small=1", "");
  $("command").textContent = state.own || state.onPolicy
    ? "A problem of your own needs a file: save it in Python with problem.save(\"mine.npz\"), then\nsteadytd run mine.npz " + state.learners.map(learnerText).join(" ") + ` --steps ${state.steps} --seeds ${state.seeds}`
    : `steadytd run ${state.problem} ${state.learners.map(learnerText).join(" ")} --steps ${state.steps} --seeds ${state.seeds} --points ${POINTS}`;
}

function ownInPython(m) {
  const parts = ["P", "r", "gamma", "mu", "pi", "Phi", "w0", "start"].filter((k) => m[k]).map((k) => `    ${k}=${JSON.stringify(m[k])},`);
  return ["problem = st.Problem(", '    name="mine",', ...parts, ")"].join("\n");
}

function fillControls() {
  $("problem").replaceChildren(...data.problems.map((p) => new Option(p.name, p.name, false, !state.own && p.name === state.problem)));
  if (state.own) $("problem").add(new Option("your own", "own", true, true));
  const found = data.problems.find((p) => p.name === state.problem);
  $("about").textContent = state.own ? "A chain of your own." : found.summary;
  $("on-policy").checked = state.onPolicy;
  $("steps-slider").value = Math.log10(state.steps);
  $("steps-text").textContent = state.steps.toLocaleString("en");
  $("seeds").value = state.seeds;
  $("add").replaceChildren(new Option("add a learner …", ""), ...data.learners.map((l) => new Option(l.name, l.name)));
  showLearners();
}

// the editor

const NUMBERS = /[^\d.eE+\-/\s]/;
function matrixText(rows) {
  return rows.map((row) => row.map((x) => plainNumber(x)).join(" ")).join("\n");
}

function openEditor() {
  const m = modelNow();
  $("edit-P").value = m.P[0].map((_, a) => matrixText(m.P.map((rows) => rows[a]))).join("\n\n");
  $("edit-r").value = m.r[0].map((_, a) => matrixText(m.r.map((rows) => rows[a]))).join("\n\n");
  $("edit-gamma").value = m.gamma[0].map((_, a) => matrixText(m.gamma.map((rows) => rows[a]))).join("\n\n");
  for (const name of ["mu", "pi", "Phi"]) $("edit-" + name).value = matrixText(m[name]);
}

function parseMatrix(name, text) {
  if (NUMBERS.test(text)) throw new Error(`${name}: only numbers, one row per line.`);
  const number = (t) => (t.includes("/") ? Number(t.split("/")[0]) / Number(t.split("/")[1]) : Number(t));
  const rows = text.trim().split("\n").map((line) => line.trim().split(/\s+/).map(number));
  if (rows.some((row) => row.length !== rows[0].length)) throw new Error(`${name}: all rows must have the same length.`);
  return rows;
}

function parseBlocks(name, text, S, A) {
  const blocks = text.trim().split(/\n\s*\n/).map((block) => parseMatrix(name, block));
  if (blocks.length !== A || blocks.some((b) => b.length !== S || b[0].length !== S)) throw new Error(`${name}: one block of ${S} rows of ${S} numbers for each of the ${A} actions, an empty line between blocks.`);
  return blocks[0].map((_, s) => blocks.map((b) => b[s]));
}

function takeEditor() {
  try {
    const mu = parseMatrix("mu", $("edit-mu").value);
    const pi = parseMatrix("pi", $("edit-pi").value);
    const Phi = parseMatrix("Phi", $("edit-Phi").value);
    const [S, A] = [mu.length, mu[0].length];
    if (pi.length !== S || pi[0].length !== A) throw new Error(`pi: ${S} rows of ${A} numbers, like mu.`);
    if (Phi.length !== S) throw new Error(`Phi: one row for each of the ${S} states.`);
    const own = { P: parseBlocks("P", $("edit-P").value, S, A), r: parseBlocks("r", $("edit-r").value, S, A), gamma: parseBlocks("gamma", $("edit-gamma").value, S, A), mu, pi, Phi };
    const base = state.own || data.problems.find((p) => p.name === state.problem).model;
    if (base.w0 && base.w0.length === Phi[0].length) own.w0 = base.w0;
    const wrong = faults(own);
    if (wrong.length) throw new Error(wrong.join(" "));
    state.own = own;
    state.onPolicy = false;
    $("edit-fault").textContent = "";
    fillControls();
    changed(true);
  } catch (error) {
    $("edit-fault").textContent = error.message;
  }
}

// the course: predict, then see, then measure

function showStep() {
  $("steps").replaceChildren(...data.course.map((one, i) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: one.name });
    button.setAttribute("aria-label", `step ${i + 1}: ${one.name}`);
    if (state.step === i + 1) button.setAttribute("aria-current", "step");
    button.onclick = () => goTo(i + 1);
    return button;
  }));
  const free = Object.assign(document.createElement("button"), { type: "button", textContent: "free" });
  if (!state.step) free.setAttribute("aria-current", "step");
  free.onclick = () => {
    state.step = 0;
    toAddress();
    showStep();
  };
  $("steps").append(free);
  const one = data.course[state.step - 1];
  $("lesson").hidden = !one;
  document.body.classList.toggle("predicting", Boolean(one) && !predicted());
  showSheet();
  if (!one) return;
  $("lesson-title").textContent = `${state.step}. ${predicted() ? one.title : one.name}`;
  $("claim").textContent = one.predict.question;
  $("choices").replaceChildren(...one.predict.choices.map((text, i) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    button.setAttribute("aria-pressed", String(predicted() && state.answers[state.step - 1].predicted === i));
    button.onclick = () => predict(i);
    return button;
  }));
  const seen = predicted();
  $("after").hidden = !seen;
  if (seen) {
    const right = state.answers[state.step - 1].predicted === one.predict.right;
    $("predicted").className = right ? "right" : "fault";
    $("predicted").textContent = `${right ? "You predicted it" : "Not so"}: ${one.predict.choices[one.predict.right]}. See it below.`;
  }
  $("lesson-text").replaceChildren(...one.text.map((text) => Object.assign(document.createElement("p"), { textContent: text })));
  $("question").textContent = one.question;
  const given = seen ? state.answers[state.step - 1].given : "";
  $("answer").value = given;
  showVerdict(one, given);
  $("next").hidden = state.step >= data.course.length;
}

const predicted = () => Boolean(state.answers[state.step - 1]);

function predict(choice) {
  const before = state.answers[state.step - 1];
  state.answers[state.step - 1] = { predicted: choice, given: before ? before.given : "" };
  toAddress();
  showStep();
  [drawCurves, drawPath, drawSpectrum, drawValues].forEach((f) => curves && f());
}

function goTo(step) {
  const { state: wanted } = data.course[step - 1];
  Object.assign(state, { own: null, onPolicy: false, ...wanted, learners: wanted.learners.map(parseLearner), step });
  fillControls();
  showStep();
  changed(true);
}

function isRight(one, text) {
  const given = Number(text.replace(",", ".").replace("−", "-"));
  return text.trim() !== "" && Math.abs(given - one.answer) <= one.near * Math.abs(one.answer);
}

function showVerdict(one, given) {
  const right = isRight(one, given);
  $("verdict").className = right ? "right" : "fault";
  $("verdict").textContent = !given ? "" : right ? `Yes. ${one.why}` : "Not yet. Look at the pictures and the sentences below.";
}

function checkAnswer() {
  const one = data.course[state.step - 1];
  state.answers[state.step - 1].given = $("answer").value.trim().slice(0, 20);
  showVerdict(one, state.answers[state.step - 1].given);
  toAddress();
  showSheet();
}

// What was answered, as text for the address: `step.choice.answer` for each step that has a prediction.
const answersText = () => state.answers.map((a, i) => a && `${i + 1}.${a.predicted}.${a.given}`).filter(Boolean).join("~");

function answersFrom(text) {
  const found = [];
  for (const part of text.split("~").filter(Boolean)) {
    const [step, choice, ...given] = part.split(".");
    const at = Number(step) - 1;
    if (data.course[at] && Number(choice) in data.course[at].predict.choices) found[at] = { predicted: Number(choice), given: given.join(".").slice(0, 20) };
  }
  return found;
}

// The worksheet: all steps with what was predicted and measured, to print or to hand in by its address.
function showSheet() {
  const done = data.course.filter((one, i) => state.answers[i] && isRight(one, state.answers[i].given)).length;
  $("sheet-sum").textContent = `${done} of ${data.course.length} questions answered rightly.`;
  $("sheet-rows").replaceChildren(...data.course.map((one, i) => {
    const item = document.createElement("li");
    const a = state.answers[i];
    const line = (text, tag = "p") => item.append(Object.assign(document.createElement(tag), { textContent: text }));
    line(one.name, "b");
    line(`${one.predict.question} ${one.predict.choices.map((text, k) => `${a && a.predicted === k ? "☑" : "☐"} ${text}`).join("   ")}`);
    line(`${one.question} ${a && a.given ? `${a.given} (${isRight(one, a.given) ? "right" : "not yet right"})` : "____________"}`);
    return item;
  }));
}

async function copy(id, button) {
  const frame = `<iframe src="${location.href.replace(/"/g, "%22").replace("#", "#small=1&")}" width="100%" height="560" title="The lab: off-policy TD"></iframe>`;
  const text = id === "link" ? location.href : id === "embed" ? frame : $(id).textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    const range = document.createRange();
    if ($(id)) range.selectNodeContents($(id));
    getSelection().removeAllRanges();
    if ($(id)) getSelection().addRange(range);
    button.textContent = id === "link" ? "copy it from the address bar" : id === "embed" ? "not allowed here" : "selected: press Ctrl-C";
  }
  setTimeout(() => (button.textContent = button.dataset.text), 1500);
}

function start() {
  document.body.classList.toggle("small", asFigure);
  document.body.classList.toggle("slides", asSlides);
  startWorker();
  draggable($("chart-path"), dragEta);
  $("course").hidden = !data.course.length;
  if (!fromAddress()) Object.assign(state, { problem: data.first || state.problem, learners: OPENING.map(parseLearner) });
  $("problem").onchange = () => {
    if ($("problem").value === "own") return;
    Object.assign(state, { own: null, problem: $("problem").value });
    takeProblem();
    fillControls();
    changed(true);
  };
  $("on-policy").onchange = () => {
    state.onPolicy = $("on-policy").checked;
    changed(true);
  };
  $("steps-slider").oninput = () => {
    state.steps = Math.round(Number((10 ** Number($("steps-slider").value)).toPrecision(2)));
    $("steps-text").textContent = state.steps.toLocaleString("en");
    changed();
  };
  $("seeds").onchange = () => {
    state.seeds = limited(Number($("seeds").value), 1, 10);
    $("seeds").value = state.seeds;
    changed();
  };
  $("add").onchange = () => {
    const law = data.learners.find((l) => l.name === $("add").value);
    if (law && state.learners.length < 8) state.learners.push({ law, params: Object.fromEntries(law.params.map((p) => [p.name, p.start])) });
    else if (law) say("At most eight learners at a time; remove one first.");
    $("add").value = "";
    showLearners();
    changed();
  };
  $("editor").ontoggle = () => $("editor").open && openEditor();
  $("take").onclick = takeEditor;
  $("check").onsubmit = (event) => {
    event.preventDefault();
    checkAnswer();
  };
  $("next").onclick = () => goTo(state.step + 1);
  $("print-sheet").onclick = () => window.print();
  $("as-slides").onclick = () => {
    location.href = location.href.replace(/#.*/, "") + "#slides=1";
    location.reload();
  };
  window.onkeydown = (event) => {
    const by = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
    const step = state.step + by;
    if (!asSlides || event.target !== document.body || !(step >= 1 && step <= data.course.length)) return;
    event.preventDefault();
    goTo(step);
  };
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.dataset.text = button.textContent;
    button.onclick = () => copy(button.dataset.copy, button);
  }
  window.onhashchange = () => {
    if (fromAddress()) {
      takeProblem();
      fillControls();
      showStep();
      changed();
    }
  };
  let waiting;
  window.onresize = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => [drawCurves, drawPath, drawSpectrum, drawValues].forEach((f) => f()), 100);
  };
  takeProblem();
  fillControls();
  showStep();
  changed();
  if (asSlides && data.course.length) goTo(state.step || 1);
  startTriad();
}

start();

// Small charts in SVG, drawn anew whenever numbers change. No library.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const FLOOR = 1e-16; // the least number on a logarithmic axis

function make(name, attributes, parent, text) {
  const found = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  if (text !== undefined) found.textContent = text;
  if (parent) parent.appendChild(found);
  return found;
}

function ticks(low, high, log, count) {
  if (log) {
    const [a, b] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const by = Math.max(1, Math.ceil((b - a + 1) / count));
    const found = [];
    for (let k = a; k <= b; k++) if ((k - a) % by === 0) found.push(10 ** k);
    return found;
  }
  const raw = (high - low) / count;
  const size = 10 ** Math.floor(Math.log10(raw));
  const by = [1, 2, 5, 10].map((m) => m * size).find((m) => m >= raw);
  const found = [];
  for (let k = Math.ceil(low / by - 1e-9); k * by <= high + 1e-9 * by; k++) found.push(k * by);
  return found;
}

function tickText(x, log) {
  if (log) {
    const k = Math.round(Math.log10(x));
    return k >= -3 && k <= 4 ? String(Number(x.toPrecision(1))) : `1e${k}`;
  }
  if (x === 0) return "0";
  if (Math.abs(x) >= 1e6) return `${Number((x / 1e6).toPrecision(3))}M`;
  if (Math.abs(x) >= 1e3) return `${Number((x / 1e3).toPrecision(3))}k`;
  return String(Number(x.toPrecision(3))).replace("-", "−");
}

// spec: {label, x: {low, high, log, title}, y: {...}, lines: [{name, colour, points, dash, wide}],
//        bands: [{from, to, text}], rules: [{x | y, text, strong}], dots: [{x, y, colour, text, hollow}], tip}
function draw(place, spec) {
  const width = Math.max(280, place.clientWidth || 480);
  const height = spec.height || Math.round(Math.min(300, Math.max(210, width * 0.58)));
  const pad = { left: 54, right: 18, top: 12 + 14 * (spec.headroom || 0), bottom: 40 };
  const inner = { w: width - pad.left - pad.right, h: height - pad.top - pad.bottom };
  const scale = (axis, from, to) => {
    const f = axis.log ? (v) => Math.log10(Math.max(v, FLOOR)) : (v) => v;
    const [a, b] = [f(axis.low), f(axis.high)];
    return (v) => from + ((f(v) - a) / (b - a || 1)) * (to - from);
  };
  const X = scale(spec.x, pad.left, pad.left + inner.w);
  const Y = scale(spec.y, pad.top + inner.h, pad.top);
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": spec.label });
  const clip = `clip-${place.id}`;
  const box = make("clipPath", { id: clip }, make("defs", {}, svg));
  make("rect", { x: pad.left, y: pad.top, width: inner.w, height: inner.h }, box);
  const inside = (x) => Math.max(pad.left, Math.min(pad.left + inner.w, x));
  for (const band of spec.bands || []) {
    const [a, b] = [inside(X(band.from)), inside(X(band.to))];
    if (b > a) make("rect", { x: a, y: pad.top, width: b - a, height: inner.h, class: "unstable" }, svg);
  }
  for (const v of ticks(spec.x.low, spec.x.high, spec.x.log, Math.max(3, Math.floor(inner.w / 70)))) {
    make("line", { x1: X(v), x2: X(v), y1: pad.top, y2: pad.top + inner.h, class: "grid" }, svg);
    make("text", { x: X(v), y: pad.top + inner.h + 15, "text-anchor": "middle", class: "tick" }, svg, (spec.x.text || tickText)(v, spec.x.log));
  }
  for (const v of ticks(spec.y.low, spec.y.high, spec.y.log, Math.max(3, Math.floor(inner.h / 36)))) {
    make("line", { x1: pad.left, x2: pad.left + inner.w, y1: Y(v), y2: Y(v), class: "grid" }, svg);
    make("text", { x: pad.left - 6, y: Y(v) + 4, "text-anchor": "end", class: "tick" }, svg, tickText(v, spec.y.log));
  }
  make("text", { x: pad.left + inner.w / 2, y: height - 6, "text-anchor": "middle", class: "axis" }, svg, spec.x.title);
  make("text", { x: 12, y: pad.top + inner.h / 2, transform: `rotate(-90 12 ${pad.top + inner.h / 2})`, "text-anchor": "middle", class: "axis" }, svg, spec.y.title);
  let level = 0;
  for (const rule of spec.rules || []) {
    if (rule.x !== undefined) {
      if (rule.x < spec.x.low || rule.x > spec.x.high) continue;
      make("line", { x1: X(rule.x), x2: X(rule.x), y1: pad.top, y2: pad.top + inner.h, class: rule.strong ? "rule strong" : "rule" }, svg);
      if (!rule.text) continue;
      const late = X(rule.x) > pad.left + inner.w * 0.6;
      make("text", { x: X(rule.x) + (late ? -3 : 3), y: 11 + 14 * level++, "text-anchor": late ? "end" : "start", class: "note" }, svg, rule.text);
    } else {
      make("line", { x1: pad.left, x2: pad.left + inner.w, y1: Y(rule.y), y2: Y(rule.y), class: "rule" }, svg);
    }
  }
  const ink = make("g", { "clip-path": `url(#${clip})` }, svg);
  const sign = (x, out, colour, text) => {
    const y = pad.top + (out > 0 ? 0 : inner.h);
    const late = x > pad.left + inner.w * 0.7;
    if (text) make("text", { x: x + (late ? -9 : 9), y: y + 11 * out + (out < 0 ? 8 : 0), "text-anchor": late ? "end" : "start", class: "note" }, ink, text);
    return make("path", { d: `M${x} ${y}l-5 ${8 * out}h10z`, fill: colour, class: "sign" }, ink);
  };
  for (const line of spec.lines || []) {
    let path = "";
    let pen = false;
    let before = 0;
    for (const [x, y] of line.points) {
      const out = y > spec.y.high ? 1 : y < spec.y.low ? -1 : 0; // a line that leaves the picture has a sign there
      if (out && out !== before && !line.faint) sign(X(x), out, line.colour, out > 0 ? line.last : "");
      before = out;
      if (!Number.isFinite(y)) {
        pen = false;
        continue;
      }
      path += `${pen ? "L" : "M"}${X(x).toFixed(1)} ${Math.max(-1e4, Math.min(1e4, Y(y))).toFixed(1)}`;
      pen = true;
    }
    make("path", { d: path, fill: "none", stroke: line.colour, "stroke-width": line.wide || 1.8, "stroke-dasharray": line.dash || "", opacity: line.faint ? 0.3 : 1 }, ink);
  }
  for (const dot of spec.dots || []) {
    const shape = make("circle", { cx: X(dot.x), cy: Y(dot.y), r: dot.size || 4.5, fill: dot.hollow ? "none" : dot.colour, stroke: dot.colour, "stroke-width": 1.6, opacity: dot.faint ? 0.35 : 1 }, ink);
    if (dot.text) make("title", {}, shape, dot.text);
  }
  for (const { x, up, colour, text, note } of spec.signs || []) make("title", {}, sign(X(x), up ? 1 : -1, colour, note), text);
  place.replaceChildren(svg);
  place.toValue = (clientX) => {
    const bounds = svg.getBoundingClientRect();
    const x = ((clientX - bounds.left) / bounds.width) * width;
    return spec.x.low + ((x - pad.left) / inner.w) * (spec.x.high - spec.x.low);
  };
  if (spec.tip) tooltip(place, svg, spec, X, pad, inner);
}

// Call `move(x)` while a pointer is dragged over a chart. The chart is drawn anew meanwhile, its place stays.
function draggable(place, move) {
  place.classList.add("draggable");
  place.addEventListener("pointerdown", (event) => {
    place.setPointerCapture(event.pointerId);
    move(place.toValue(event.clientX));
  });
  place.addEventListener("pointermove", (event) => {
    if (place.hasPointerCapture(event.pointerId)) move(place.toValue(event.clientX));
  });
}

function tooltip(place, svg, spec, X, pad, inner) {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  place.appendChild(tip);
  const rule = make("line", { y1: pad.top, y2: pad.top + inner.h, class: "rule", visibility: "hidden" }, svg);
  const show = (event) => {
    const bounds = svg.getBoundingClientRect();
    const v = place.toValue(event.clientX);
    const text = v >= spec.x.low && v <= spec.x.high ? spec.tip(v) : null;
    tip.hidden = !text;
    if (!text) return;
    rule.setAttribute("visibility", "visible");
    rule.setAttribute("x1", X(text.x));
    rule.setAttribute("x2", X(text.x));
    tip.replaceChildren(...text.rows.map(([name, value, colour]) => {
      const row = document.createElement("div");
      const mark = document.createElement("i");
      mark.style.background = colour || "transparent";
      row.append(mark, `${name} `, Object.assign(document.createElement("b"), { textContent: value }));
      return row;
    }));
    tip.style.left = `${Math.min(bounds.width - tip.offsetWidth - 4, Math.max(0, event.clientX - bounds.left + 12))}px`;
    tip.style.top = `${pad.top}px`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerleave", () => {
    tip.hidden = true;
    rule.setAttribute("visibility", "hidden");
  });
}

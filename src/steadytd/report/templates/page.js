"use strict";
// The page's own script: draws figures, switches series, moves the dial, sorts tables.
(() => {
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const wait = [];           // figures not yet drawn
  const config = {
    background: "transparent", font: getComputedStyle(document.body).fontFamily, padding: 4,
    axis: { labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500, labelColor: "#1d2329", titleColor: "#1d2329", gridColor: "#e6e9ed", domainColor: "#9aa5b1", tickColor: "#9aa5b1" },
    axisQuantitative: { labelOverlap: true, labelSeparation: 8 },
    legend: { labelFontSize: 12, titleFontSize: 12, labelColor: "#1d2329", titleColor: "#1d2329", orient: "bottom", columns: 3 }, view: { stroke: "#cfd5db" },
  };
  // Pixels cannot be told apart by a style: grey that is legible on any ground.
  const grey = { ...config, axis: { ...config.axis, labelColor: "#78838f", titleColor: "#78838f", gridColor: "#8a949f33" }, view: { stroke: "#8a949f66" } };

  const rows = (table) => table.rows.map((row) => Object.fromEntries(row.map((v, i) => [table.names[i], v])));

  async function draw(figure) {
    const { views, toggle } = figure.content;
    const places = all(".chart", figure);
    figure.views = [];
    for (const [i, one] of views.entries()) {
      const spec = { ...one.spec, datasets: Object.fromEntries(Object.entries(one.tables).map(([k, t]) => [k, rows(t)])) };
      places[i].replaceChildren();
      const made = await vegaEmbed(places[i], spec, { mode: "vega-lite", actions: false, ast: true, renderer: one.renderer, config: one.renderer === "canvas" ? grey : config, tooltip: { theme: "page", disableDefaultStyle: false } });
      places[i].style.minHeight = "0";
      places[i].view = made.view;
      if (one.near) nearest(places[i], made.view, one.near, spec.datasets[one.near.table], toggle);
      figure.views.push(made.view);
    }
    if (toggle) show(figure);
    if (dial) turn(figure);
    figure.dataset.drawn = "1";
  }

  // The point of a line that is nearest to the pointer, and its numbers beside it.
  const tip = document.createElement("div"), dot = document.createElement("i");
  tip.className = "tip"; dot.className = "dot";
  function nearest(place, view, near, data, toggle) {
    const format = (how, v) => typeof v !== "number" || !how ? String(v) : how === "," ? v.toLocaleString("en") : String(Number(v.toPrecision(4)));
    const move = (event) => {
      const picture = place.querySelector("svg, canvas").getBoundingClientRect(), pad = view.padding();
      const [left, top] = [view.origin()[0] + pad.left, view.origin()[1] + pad.top]; // of the frame in the picture
      const [x, y] = [view.scale("x"), view.scale("y")], [width, height] = [view.width(), view.height()];
      const [px, py] = [event.clientX - picture.left - left, event.clientY - picture.top - top];
      const hidden = toggle ? view.signal("hidden") : [];
      let best = null, least = 40 ** 2;
      for (const row of data) {
        if (row[near.y] === null || hidden.includes(row[toggle])) continue;
        const [a, b] = [x(row[near.x]), y(row[near.y])], apart = (a - px) ** 2 + (b - py) ** 2;
        if (apart < least && a >= 0 && a <= width && b >= 0 && b <= height) [best, least] = [{ row, a, b }, apart];
      }
      tip.hidden = dot.hidden = !best;
      if (!best) return;
      tip.replaceChildren(...near.tips.filter(([key]) => best.row[key] !== null && best.row[key] !== "").map(([key, title, how]) => {
        const line = document.createElement("div"), name = document.createElement("span");
        name.textContent = title + " ";
        line.append(name, format(how, best.row[key]));
        return line;
      }));
      place.append(dot, tip);
      const box = place.getBoundingClientRect(), at = [picture.left - box.left + left + best.a, picture.top - box.top + top + best.b];
      dot.style.transform = `translate(${at[0]}px, ${at[1]}px)`;
      const [wide, tall] = [tip.offsetWidth, tip.offsetHeight];  // beside the dot, or else below it
      const beside = at[0] + 12 + wide <= box.width ? at[0] + 12 : at[0] - 12 - wide;
      const begin = Math.max(0, Math.min(beside, box.width - wide));
      const above = at[1] - tall - 10;
      tip.style.left = `${begin}px`;
      tip.style.top = `${above >= 0 ? above : begin === beside ? 0 : at[1] + 12}px`;
    };
    place.addEventListener("pointermove", move);
    place.addEventListener("pointerdown", move);
    place.addEventListener("pointerleave", () => { tip.hidden = dot.hidden = true; });
  }

  function show(figure) {
    const hidden = all(".legend button[aria-pressed=false]", figure).map((b) => b.dataset.label);
    for (const view of figure.views ?? []) view.signal("hidden", hidden).runAsync();
  }

  // The dial: one step of eta. Every number that it shows is in the page.
  const dial = document.querySelector(".dial input");
  const moves = dial && JSON.parse(document.getElementById("moves").textContent);
  function turn(figure) {
    for (const view of figure.views ?? []) if ("at" in view.getState().signals) view.signal("at", Number(dial.value)).runAsync();
  }
  function said() {
    const here = moves[Number(dial.value)];
    for (const [name, text] of Object.entries(here)) {
      const place = document.getElementById(`dial-${name}`);
      if (place) { place.textContent = text; place.className = text === "stable" ? "good" : text === "unstable" ? "bad" : ""; }
    }
    dial.setAttribute("aria-valuetext", `eta ${here.eta}, ${here.stable}, error ${here.error}`);
  }

  function sortable(table) {
    const body = table.tBodies[0];
    const value = (row, i) => (row.cells[i]?.dataset.value ?? row.cells[i]?.innerText ?? "").trim();
    const plain = (text) => text.replace(/[,\u2009]/g, "").replace(/^[<~]/, "").replace(/^\((\S+) .*\)(e-?\d+)$/, "$1$2");
    const number = (text) => { const n = parseFloat(plain(text)); return Number.isNaN(n) ? null : n; };
    all("thead th", table).forEach((head, i) => {
      if (!head.textContent.trim()) return;
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        all("th", table).forEach((th) => th.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keys = new Map([...body.rows].map((row) => [row, value(row, i)]));
        const compare = (a, b) => {
          const [s, t] = [keys.get(a), keys.get(b)], [x, y] = [number(s), number(t)];
          if (x === null || y === null) return x === y ? s.localeCompare(t) * (down ? -1 : 1) : x === null ? 1 : -1;
          return down ? y - x : x - y;
        };
        body.append(...[...body.rows].sort(compare));
      });
    });
  }

  for (const figure of all("figure.live")) {
    figure.content = JSON.parse(figure.querySelector("script").textContent);
    const buttons = all(".legend button", figure);
    for (const button of buttons) {
      button.addEventListener("click", () => { button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "false"); show(figure); });
      button.addEventListener("dblclick", () => { for (const b of buttons) b.setAttribute("aria-pressed", b === button); show(figure); });
    }
    figure.querySelector(".files button")?.addEventListener("click", async () => {
      for (const view of figure.views ?? []) {
        const link = document.createElement("a");
        link.href = await view.toImageURL("png", 2);
        link.download = `${figure.id}.png`;
        link.click();
      }
    });
    wait.push(figure);
  }
  for (const table of all("table.sort")) sortable(table);
  for (const code of all(".command code")) code.replaceChildren(...code.textContent.split(" ").flatMap((word, i) => {
    const part = document.createElement("span"); // a line may end between two words, and not behind a hyphen
    part.textContent = word;
    return i ? [" ", part] : [part];
  }));
  for (const button of all("button.copy")) button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "copied";
  });
  if (dial) {
    dial.addEventListener("input", () => { said(); all("figure.live").forEach(turn); });
    said();
  }

  // A browser prints as soon as this handler has returned and its promises are kept; drawing needs no more.
  addEventListener("beforeprint", async () => {
    for (const part of all("main details")) part.open = true;
    while (wait.length) await drawFirst();
  });

  // What is in sight is drawn first, the rest as soon as there is time.
  const near = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting && wait.includes(target)) wait.unshift(...wait.splice(wait.indexOf(target), 1));
  }, { rootMargin: "300px" });
  wait.forEach((figure) => near.observe(figure));
  const later = window.requestIdleCallback ?? ((f) => setTimeout(f, 1));
  async function drawFirst() {
    const figure = wait.shift();
    try { await draw(figure); } catch (error) { console.error(figure.id, error); }
  }
  async function next() {
    if (!wait.length) { document.body.dataset.done = "1"; near.disconnect(); return; }
    await drawFirst();
    later(next);
  }
  requestAnimationFrame(() => requestAnimationFrame(next));

  const links = new Map(all(".contents a").map((a) => [a.hash.slice(1), a]));
  const read = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) links.get(target.id)?.classList.toggle("here", isIntersecting);
  }, { rootMargin: "0px 0px -70% 0px" });
  for (const id of links.keys()) { const part = document.getElementById(id); if (part) read.observe(part); }
})();

// Draws the figures of the report. Each has its numbers in a table too, which needs no script.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const NAMESPACE = document.querySelector("svg").namespaceURI;
  const COLORS = ["#3b74c4", "#d1495b", "#2a8a57", "#b8860b", "#8d5fb8", "#0f8b9d", "#c9601f", "#b8478a", "#6f8a2c", "#787878"];
  const color = (i) => COLORS[((i % 10) + 10) % 10];
  const tip = document.getElementById("tip");

  function filled(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  const element = (name, attributes = {}, ...children) => filled(document.createElementNS(NAMESPACE, name), attributes, children);
  const html = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
  const text = (x, y, content, attributes = {}) => element("text", { x, y, ...attributes }, String(content));

  const drawing = (width, height, label) =>
    element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });

  function format(value) {
    if (value === null || value === undefined) return "none";
    if (typeof value !== "number" || Number.isInteger(value)) return String(value);
    return String(Number(value.toPrecision(3)));
  }

  // Names that begin alike often end unlike: both ends stay.
  const short = (words, n) => {
    const end = Math.floor(n / 2) - 1;
    return words.length <= n ? words : words.slice(0, n - 1 - Math.max(end, 0)) + "…" + (end > 0 ? words.slice(-end) : "");
  };

  function showTip(words, x, y) {
    tip.textContent = words;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 4)) + "px";
    tip.style.top = (y + height + 24 > innerHeight ? y - height - 10 : y + 16) + "px";
  }

  const hideTip = () => { tip.hidden = true; };

  function explain(node, words) {
    node.addEventListener("pointermove", (event) => showTip(words, event.clientX, event.clientY));
    node.addEventListener("pointerleave", hideTip);
    return node;
  }

  function ticks(low, high, n = 5) {
    const raw = (high - low) / n || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((k) => k * power >= raw * 0.999);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i++) found.push(Number((i * step).toPrecision(12)));
    return found;
  }

  const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

  function range(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
    if (low > high) return [0, 1];
    return low === high ? [low - 0.5, high + 0.5] : [low, high];
  }

  function leftAxis(svg, y, marks, x, right, name) {
    for (const mark of marks) {
      svg.append(element("line", { class: "axis", x1: x, x2: right, y1: y(mark), y2: y(mark) }));
      svg.append(text(x - 6, y(mark) + 4, format(mark), { class: "soft", "text-anchor": "end" }));
    }
    if (name) svg.append(text(0, 12, name, { class: "soft" }));
  }

  function bars(data, width, label) {
    width = Math.max(220, Math.min(width, 60 + 90 * data.values.length, 760));
    const height = 210, left = 46, bottom = height - 36;
    const svg = drawing(width, height, label);
    const y = scale(0, Math.max(...data.values) || 1, bottom, 24);
    leftAxis(svg, y, ticks(0, Math.max(...data.values) || 1, 4), left, width, data.y);
    const step = (width - left) / data.values.length;
    data.values.forEach((value, i) => {
      const bar = element("rect", {
        class: data.colored || value === Math.max(...data.values) ? "bar" : "bar pale",
        x: left + i * step + step * 0.14, width: step * 0.72, y: y(value), height: Math.max(0, bottom - y(value)), rx: 2,
      });
      if (data.colored) bar.style.fill = color(data.colored[i]);
      svg.append(explain(bar, `${data.x} ${data.labels[i]}: ${format(value)}`));
      if (step > 18 || i % Math.ceil(20 / step) === 0) {
        svg.append(text(left + (i + 0.5) * step, bottom + 16, short(String(data.labels[i]), Math.max(2, step / 7)), { "text-anchor": "middle" }));
      }
    });
    svg.append(text(left + (width - left) / 2, height - 4, data.x, { class: "soft", "text-anchor": "middle" }));
    return [svg];
  }

  // Lines: traces, objectives, reliability.

  function legend(names) {
    return html("ul", { class: "legend" }, ...names.map((name, i) => {
      const mark = element("svg", { width: 12, height: 12, "aria-hidden": "true" }, element("rect", { width: 12, height: 12, rx: 2, fill: color(i) }));
      return html("li", {}, mark, name);
    }));
  }

  function lines(data, width, label) {
    width = Math.min(width, data.square ? 380 : 860);
    const height = data.square ? Math.min(340, width) : 200, left = 56, bottom = height - 36;
    const svg = drawing(width, height, label);
    const xrange = data.xrange ?? range(data.series.flatMap((s) => s.x));
    const x = scale(...xrange, left, width - 10);
    const yrange = data.yrange ?? range(data.series.flatMap((s) => s.y));
    const y = scale(...yrange, bottom, 24);
    leftAxis(svg, y, ticks(...yrange), left, width - 10, data.y);
    for (const mark of ticks(...xrange, Math.max(2, Math.min(6, width / 90)))) {
      svg.append(text(x(mark), bottom + 16, format(mark), { class: "soft", "text-anchor": "middle" }));
    }
    if (data.diagonal) svg.append(element("line", { class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
    data.series.forEach((series, i) => {
      const points = series.x.map((value, j) => [x(value), y(series.y[j])]);
      svg.append(element("polyline", { points: points.join(" "), fill: "none", stroke: color(i), "stroke-width": 1.6, "stroke-linejoin": "round" }));
      points.forEach(([a, b], j) => {
        const dot = element("circle", { cx: a, cy: b, r: data.dots ? 5 : 4, fill: color(i), "fill-opacity": data.dots ? 1 : 0 });
        svg.append(explain(dot, series.tips ? series.tips[j] : `${series.name}\n${data.x} ${format(series.x[j])}: ${format(series.y[j])}`));
      });
    });
    svg.append(text(left + (width - left) / 2, height - 4, data.x, { class: "soft", "text-anchor": "middle" }));
    return data.series.length > 1 ? [legend(data.series.map((s) => s.name)), svg] : [svg];
  }

  // Matrices: confusion, what parts mean, weights. Strong cells are opaque, negative ones orange.

  function matrix(data, width, label) {
    const longest = Math.max(...data.rows.map((r) => r.length));
    const left = Math.min(Math.max(40, longest * 7 + 12), width * 0.36);
    const n = data.columns.length;
    const longestColumn = Math.max(...data.columns.map((c) => c.length));
    const wanted = Math.max(52, Math.min(110, 7 * longestColumn + 12));
    const fitted = (rest) => Math.max(16, Math.min(wanted, (width - left - rest) / n));
    const slanted = longestColumn * 7 > fitted(4) - 4;
    const cell = fitted(slanted ? 50 : 4);  // the last slanted name sticks out
    const tall = Math.min(cell, 34);
    const head = (data.columnsName ? 18 : 0) + (slanted ? 12 + 5.2 * Math.min(18, longestColumn) : 20);
    const full = left + n * cell + (slanted ? 50 : 4);
    const svg = drawing(full, head + data.rows.length * tall + 4, label);
    if (data.columnsName) svg.append(text(left, 12, data.columnsName, { class: "soft" }));
    data.columns.forEach((name, j) => {
      const x = left + (j + 0.5) * cell, shown = short(name, 18);
      svg.append(slanted ? text(x, head - 6, shown, { transform: `rotate(-45 ${x} ${head - 6})` }) : text(x, head - 6, shown, { "text-anchor": "middle" }));
    });
    if (data.rowsName) svg.append(text(0, head - 6, data.rowsName, { class: "soft" }));
    const far = data.max ?? (Math.max(...data.values.flat().map((v) => Math.abs(v ?? 0))) || 1);
    data.values.forEach((row, i) => {
      svg.append(text(left - 8, head + (i + 0.5) * tall + 4, short(data.rows[i], Math.floor((left - 8) / 7)), { "text-anchor": "end" }));
      row.forEach((value, j) => {
        const strength = Math.min(1, Math.abs(value ?? 0) / far);
        const words = data.texts ? data.texts[i][j] : format(value);
        const square = element("rect", { class: value < 0 ? "cell cold" : "cell warm", x: left + j * cell + 0.5, y: head + i * tall + 0.5, width: cell - 1, height: tall - 1, rx: 2, "fill-opacity": 0.04 + 0.56 * strength });
        svg.append(explain(square, `${data.rowsName ?? ""} ${data.rows[i]}\n${data.columnsName ?? ""} ${data.columns[j]}\n${data.valuesName ?? "value"}: ${words}`));
        if (words.length * 7 < cell - 2) svg.append(text(left + (j + 0.5) * cell, head + (i + 0.5) * tall + 4, words, { "text-anchor": "middle", "pointer-events": "none" }));
      });
    });
    return [svg];
  }

  // States and the moves between them: a circle of nodes, as large as their share of the steps.

  function graph(data, width, label) {
    const side = Math.min(width, 460), middle = side / 2, n = data.nodes.length;
    const svg = drawing(side, side, label);
    const largest = Math.max(...data.nodes.map((node) => node.share)) || 1;
    const ring = n > 1 ? middle - 70 : 0;
    const places = data.nodes.map((node, i) => {
      const angle = -Math.PI / 2 + (2 * Math.PI * i) / n;
      return { x: middle + ring * Math.cos(angle), y: middle + ring * Math.sin(angle), r: 13 + 15 * Math.sqrt(node.share / largest), angle };
    });
    const edges = data.edges.map((edge) => {
      const a = places[edge.from], b = places[edge.to];
      const dx = b.x - a.x, dy = b.y - a.y, far = Math.hypot(dx, dy) || 1;
      const bend = 0.16 * far, cx = (a.x + b.x) / 2 - (dy / far) * bend, cy = (a.y + b.y) / 2 + (dx / far) * bend;
      const out = Math.atan2(cy - a.y, cx - a.x), into = Math.atan2(cy - b.y, cx - b.x);
      const x1 = a.x + a.r * Math.cos(out), y1 = a.y + a.r * Math.sin(out);
      const size = 6 + 5 * edge.p, x2 = b.x + (b.r + size) * Math.cos(into), y2 = b.y + (b.r + size) * Math.sin(into);
      const corner = (turn) => `${x2 + size * 0.6 * Math.cos(into + turn)},${y2 + size * 0.6 * Math.sin(into + turn)}`;
      const tipX = b.x + b.r * Math.cos(into), tipY = b.y + b.r * Math.sin(into);
      const group = element("g", { class: "move" },
        element("path", { class: "edge", d: `M${x1},${y1}Q${cx},${cy} ${x2},${y2}`, "stroke-width": 1 + 6 * edge.p }),
        element("polygon", { class: "arrow", points: `${tipX},${tipY} ${corner(Math.PI / 2)} ${corner(-Math.PI / 2)}` }));
      svg.append(explain(group, `from ${data.nodes[edge.from].name} to ${data.nodes[edge.to].name}: ${format(edge.p)}`));
      return { ...edge, group };
    });
    data.nodes.forEach((node, i) => {
      const { x, y, r, angle } = places[i];
      const group = element("g", {}, element("circle", { cx: x, cy: y, r, fill: color(node.color) }),
        text(x, y + 4, node.name, { "text-anchor": "middle", class: "on-color" }));
      if (n > 1) {
        const far = r + 16 + 8 * Math.abs(Math.cos(angle));
        group.append(text(x + far * Math.cos(angle), y + far * Math.sin(angle) + 4, `${Math.round(100 * node.stay)} %`, { class: "soft", "text-anchor": "middle" }));
      }
      group.addEventListener("pointerenter", () => edges.forEach((e) => e.group.classList.toggle("dim", e.from !== i && e.to !== i)));
      group.addEventListener("pointerleave", () => edges.forEach((e) => e.group.classList.remove("dim")));
      svg.append(explain(group, node.tip));
    });
    return [svg];
  }

  // A signal with strips of states and labels under it: zoom, move, read off.

  function signal(data, width, label, memory) {
    memory.view ??= { sequence: 0, from: 0, to: data.sequences[0].n, at: null };
    const view = memory.view, current = () => data.sequences[view.sequence];
    const left = Math.min(92, width * 0.22), right = width - 6;
    const spoken = html("p", { class: "spoken", "aria-live": "polite" });
    const frame = html("div");
    const choose = html("select", { "aria-label": "Sequence" }, ...data.sequences.map((s, i) => html("option", { value: i }, s.name)));
    choose.value = view.sequence;
    choose.addEventListener("change", () => {
      Object.assign(view, { sequence: Number(choose.value), from: 0, at: null });
      view.to = current().n;
      draw();
    });

    function zoom(factor, about = (view.from + view.to) / 2) {
      const n = current().n, size = Math.min(n, Math.max(Math.min(8, n), (view.to - view.from) * factor));
      const part = (about - view.from) / (view.to - view.from || 1);
      view.from = Math.max(0, Math.min(n - size, about - part * size));
      view.to = view.from + size;
      draw();
    }

    function move(share) {
      const size = view.to - view.from;
      view.from = Math.max(0, Math.min(current().n - size, view.from + share * size));
      view.to = view.from + size;
      draw();
    }

    function whole() { view.from = 0; view.to = current().n; draw(); }

    const button = (name, words, action) => {
      const node = html("button", { type: "button", "aria-label": words, title: words, "data-act": words }, name);
      node.addEventListener("click", action);
      return node;
    };
    const tools = html("div", { class: "tools", role: "group", "aria-label": "Zoom" },
      ...(data.sequences.length > 1 ? [choose] : []),
      button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)),
      button("←", "Earlier", () => move(-0.5)), button("→", "Later", () => move(0.5)), button("All", "Whole sequence", whole));

    function describe(t) {
      const s = current();
      return [`step ${t}`, ...s.lines.map((line, i) => `${data.lines[i].name}: ${format(line[t])}`),
        ...s.strips.map((strip, i) => `${data.strips[i].name}: ${strip[t] < 0 ? "none" : data.strips[i].names[strip[t]]}`)].join("\n");
    }

    function draw() {
      const s = current(), high = s.lines.length ? 190 : 8, gap = 26;
      const height = high + s.strips.length * gap + 36;
      const svg = drawing(width, height, label);
      svg.setAttribute("tabindex", "0");
      svg.setAttribute("role", "application");
      svg.setAttribute("aria-roledescription", "zoomable chart; arrow keys read the steps, plus and minus zoom");
      const x = scale(view.from, view.to, left, right);
      const first = Math.max(0, Math.floor(view.from) - 1), last = Math.min(s.n, Math.ceil(view.to) + 1);
      svg.dataset.from = view.from;
      svg.dataset.to = view.to;
      const shown = element("svg", { x: left, y: 0, width: right - left, height, viewBox: `${left} 0 ${right - left} ${height}` });
      if (s.lines.length) {
        const scaled = s.lines.map((line, i) => line.map((v) => (v === null ? null : (v - data.lines[i].center) / data.lines[i].unit)));
        const extent = range(scaled.flat()), y = scale(...extent, high - 12, 12);
        leftAxis(svg, y, ticks(...extent, 4), left, right);
        scaled.forEach((line, i) => {
          let path = "", pen = "M";
          for (let t = first; t < last; t++) {
            if (line[t] === null) { pen = "M"; continue; }
            path += `${pen}${x(t + 0.5).toFixed(1)},${y(line[t]).toFixed(1)}`;
            pen = "L";
          }
          shown.append(element("path", { d: path, fill: "none", stroke: color(i), "stroke-width": 1.4, class: "signal-line" }));
        });
      }
      s.strips.forEach((strip, k) => {
        const top = high + k * gap;
        svg.append(text(left - 6, top + 15, short(data.strips[k].name, Math.floor(left / 7)), { "text-anchor": "end" }));
        for (let t = first; t < last;) {
          let end = t + 1;
          while (end < last && strip[end] === strip[t]) end++;
          const wide = x(end) - x(t);
          if (strip[t] >= 0) {
            const name = data.strips[k].names[strip[t]];
            const from = Math.max(x(t), left), to = Math.min(x(end), right);
            shown.append(element("rect", { class: "run", x: x(t), y: top, width: Math.max(0.5, wide - (wide > 4 ? 1 : 0)), height: gap - 4, fill: color(data.strips[k].colors[strip[t]]) }));
            if (name.length * 8 < to - from) shown.append(text((from + to) / 2, top + 15, name, { "text-anchor": "middle", class: "on-color" }));
          }
          t = end;
        }
      });
      for (const mark of ticks(view.from, view.to, Math.max(2, width / 110))) {
        if (Number.isInteger(mark) && mark < view.to) svg.append(text(x(mark + 0.5), height - 20, mark, { class: "soft", "text-anchor": "middle" }));
      }
      svg.append(text((left + right) / 2, height - 4, "step", { class: "soft", "text-anchor": "middle" }));
      const cursor = element("line", { class: "cursor", y1: 0, y2: height - 34, visibility: "hidden" });
      shown.append(cursor);
      svg.append(shown);

      function read(t, px, py) {
        view.at = Math.max(0, Math.min(s.n - 1, t));
        cursor.setAttribute("x1", x(view.at + 0.5));
        cursor.setAttribute("x2", x(view.at + 0.5));
        cursor.setAttribute("visibility", "visible");
        const box = svg.getBoundingClientRect();
        showTip(describe(view.at), px ?? box.left + x(view.at + 0.5), py ?? box.top + 20);
      }

      const stepAt = (event) => view.from + ((event.clientX - svg.getBoundingClientRect().left - left) / (right - left)) * (view.to - view.from);
      svg.addEventListener("wheel", (event) => {
        event.preventDefault();
        zoom(event.deltaY < 0 ? 0.8 : 1.25, stepAt(event));
      }, { passive: false });
      svg.addEventListener("pointerdown", (event) => { memory.drag = { at: event.clientX, from: view.from, to: view.to }; });
      svg.addEventListener("pointermove", (event) => {
        if (!memory.drag) { read(Math.floor(stepAt(event)), event.clientX, event.clientY); return; }
        const size = memory.drag.to - memory.drag.from;
        const by = ((memory.drag.at - event.clientX) / (right - left)) * size;
        view.from = Math.max(0, Math.min(s.n - size, memory.drag.from + by));
        view.to = view.from + size;
        draw();
      });
      svg.addEventListener("pointerleave", () => { hideTip(); cursor.setAttribute("visibility", "hidden"); });
      svg.addEventListener("blur", hideTip);
      svg.addEventListener("keydown", (event) => {
        const acts = {
          "+": () => zoom(0.5, view.at ?? undefined), "=": () => zoom(0.5, view.at ?? undefined), "-": () => zoom(2, view.at ?? undefined),
          PageUp: () => move(-0.5), PageDown: () => move(0.5), Home: whole,
          ArrowLeft: () => step(-1), ArrowRight: () => step(1), Escape: hideTip,
        };
        if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        acts[event.key]();
      });

      function step(by) {
        const at = Math.max(0, Math.min(s.n - 1, (view.at ?? Math.ceil(view.from) - (by > 0 ? 1 : 0)) + by));
        view.at = at;
        if (at < view.from || at + 1 > view.to) {
          const size = view.to - view.from;
          view.from = Math.max(0, Math.min(s.n - size, at - size / 2));
          view.to = view.from + size;
          draw();
        }
        memory.read(at);
        spoken.textContent = describe(at);
      }

      memory.read = read;
      const focused = frame.contains(document.activeElement);
      frame.replaceChildren(svg);
      if (focused) svg.focus({ preventScroll: true });
    }

    draw();
    return [tools, ...(data.lines.length > 1 ? [legend(data.lines.map((l) => l.name))] : []), frame, spoken];
  }

  const renderers = { bars, lines, matrix, graph, signal };
  const memories = figures.map(() => ({}));
  let lastWidth = 0;

  function render() {
    const width = document.getElementById("content").clientWidth;
    if (width === lastWidth) return;
    lastWidth = width;
    hideTip();
    document.querySelectorAll("figure[data-figure]").forEach((figure) => {
      const i = Number(figure.dataset.figure), { kind, alt, data } = figures[i];
      const box = figure.querySelector(".chart");
      box.replaceChildren(...renderers[kind](data, box.clientWidth, alt, memories[i]));
    });
  }

  addEventListener("pointerup", () => memories.forEach((memory) => { memory.drag = null; }));
  addEventListener("resize", render);
  addEventListener("scroll", hideTip, { passive: true });
  render();

  const theme = document.getElementById("theme"), root = document.documentElement;
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    theme.setAttribute("aria-pressed", String(!dark));
  });

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  document.querySelectorAll("main > section").forEach((section) => watcher.observe(section));
})();

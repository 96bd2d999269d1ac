"use strict";
// Layout as in placing.py, for when a box is folded or unfolded; then pan, zoom, hover and search.
const GAP = 16, ROW_GAP = 26, MARGIN = 14, LABEL = 20, POINT = 8, SWEEPS = 10;

function segments(panel) {
  const found = new Map();
  for (const [start, end, startAt, endAt, route] of panel.edges) {
    const stops = [start, ...route, end];
    for (let i = 0; i + 1 < stops.length; i++) {
      const a = i === 0 ? startAt : 0.5, b = i === stops.length - 2 ? endAt : 0.5;
      found.set([stops[i], stops[i + 1], a, b].join(), [stops[i], stops[i + 1], a, b]);
    }
  }
  return [...found.values()];
}

function apart(wanted, row, sizes, nodes) {
  const offsets = [0];
  for (let i = 1; i < row.length; i++) offsets.push(offsets[i - 1] + (sizes[row[i - 1]][0] + sizes[row[i]][0]) / 2 + GAP);
  const pools = [];
  row.forEach((number, i) => {
    const weight = number < nodes ? 1 : 4;
    pools.push([(wanted[i] - offsets[i]) * weight, weight, 1]);
    while (pools.length > 1) {
      const last = pools[pools.length - 1], before = pools[pools.length - 2];
      if (!(before[0] / before[1] > last[0] / last[1])) break;
      pools.pop();
      before[0] += last[0]; before[1] += last[1]; before[2] += last[2];
    }
  });
  const means = pools.flatMap(([total, weight, members]) => Array(members).fill(total / weight));
  return means.map((mean, i) => mean + offsets[i]);
}

function centresOf(panel, sizes, pieces) {
  const above = sizes.map(() => []), below = sizes.map(() => []);
  for (const [start, end, startAt, endAt] of pieces) {
    const shift = (startAt - 0.5) * sizes[start][0] - (endAt - 0.5) * sizes[end][0];
    above[end].push([start, shift]);
    below[start].push([end, -shift]);
  }
  const centres = sizes.map(() => 0);
  const set = (row, xs) => row.forEach((number, i) => { centres[number] = xs[i]; });
  for (const row of panel.rows) set(row, apart(row.map(() => 0), row, sizes, panel.nodes.length));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const neighbours = sweep % 2 === 0 ? above : below;
    for (const row of sweep % 2 === 0 ? panel.rows : [...panel.rows].reverse()) {
      const wanted = row.map(n => neighbours[n].length === 0 ? centres[n]
        : neighbours[n].reduce((sum, [m, shift]) => sum + centres[m] + shift, 0) / neighbours[n].length);
      set(row, apart(wanted, row, sizes, panel.nodes.length));
    }
  }
  return centres;
}

function placePanel(panels, at) {
  const panel = panels[at], pieces = segments(panel), inner = [], sizes = [];
  for (const node of panel.nodes) {
    const below = node.folded ? [] : node.inner.map(number => placePanel(panels, number));
    let x = MARGIN, height = 0;
    for (const one of below) {
      one.x = x; one.y = node.h;
      x += one.width + MARGIN;
      height = Math.max(height, one.height);
    }
    inner.push(below);
    sizes.push(below.length ? [Math.max(node.w, x), node.h + height + MARGIN] : [node.w, node.h]);
  }
  for (let i = 0; i < panel.points; i++) sizes.push([POINT, 0]);
  let centres = centresOf(panel, sizes, pieces);
  const left = sizes.reduce((least, size, i) => Math.min(least, centres[i] - size[0] / 2), sizes.length ? Infinity : 0);
  centres = centres.map(c => c - left + MARGIN);
  const right = sizes.reduce((most, size, i) => Math.max(most, centres[i] + size[0] / 2), sizes.length ? -Infinity : MARGIN);
  const rowOf = [], widest = panel.rows.map(() => 0), tops = [], bottoms = [];
  panel.rows.forEach((row, r) => row.forEach(n => { rowOf[n] = r; }));
  for (const [start, end] of pieces) widest[rowOf[end]] = Math.max(widest[rowOf[end]], Math.abs(centres[start] - centres[end]));
  let y = MARGIN + (panel.label ? LABEL : 0);
  panel.rows.forEach((row, r) => {
    if (r) y += ROW_GAP + Math.min(60, 0.1 * widest[r]);
    tops.push(y);
    y += Math.max(...row.map(n => sizes[n][1]));
    bottoms.push(y);
  });
  const nodes = panel.nodes.map((_, n) => ({ x: centres[n] - sizes[n][0] / 2, y: tops[rowOf[n]], width: sizes[n][0], height: sizes[n][1] }));
  const paths = panel.edges.map(([start, end, startAt, endAt, route]) => {
    const a = nodes[start], b = nodes[end], x = a.x + startAt * a.width;
    const stops = [[x, a.y + a.height], [x, bottoms[rowOf[start]]]];
    for (const point of route) stops.push([centres[point], tops[rowOf[point]]], [centres[point], bottoms[rowOf[point]]]);
    stops.push([b.x + endAt * b.width, b.y]);
    return stops;
  });
  return { at, x: 0, y: 0, width: Math.max(right + MARGIN, panel.label.length * 7 + 2 * MARGIN), height: y + MARGIN, nodes, paths, inner };
}

function placeAll(model) {
  let y = 0;
  return model.shown.map(at => {
    const placed = placePanel(model.panels, at);
    placed.y = y;
    y += placed.height + GAP;
    return placed;
  });
}

function pathOf(stops) {
  let [x, y] = stops[0], text = `M${x.toFixed(1)} ${y.toFixed(1)}`;
  stops.slice(1).forEach(([toX, toY], i) => {
    const middle = ((y + toY) / 2).toFixed(1);
    text += i % 2 === 0 ? `L${toX.toFixed(1)} ${toY.toFixed(1)}`
      : `C${x.toFixed(1)} ${middle} ${toX.toFixed(1)} ${middle} ${toX.toFixed(1)} ${toY.toFixed(1)}`;
    [x, y] = [toX, toY];
  });
  return text;
}

function start(model) {
  const svg = document.querySelector("svg.picture"), view = document.getElementById("view"), tip = document.getElementById("hover");
  const get = id => document.getElementById(id);
  let scale = 1, moveX = 0, moveY = 0, size = [0, 0], dragged = null;

  function show(placed) {
    const panel = model.panels[placed.at], group = get(`p${placed.at}`), rect = group.firstElementChild;
    group.setAttribute("transform", `translate(${placed.x.toFixed(1)} ${placed.y.toFixed(1)})`);
    rect.setAttribute("width", placed.width.toFixed(1));
    rect.setAttribute("height", placed.height.toFixed(1));
    const edges = [...group.children].filter(child => child.classList.contains("edge"));
    placed.paths.forEach((stops, i) => edges[i].setAttribute("d", pathOf(stops)));
    placed.nodes.forEach((place, i) => {
      const node = panel.nodes[i], drawn = get(`n${panel.first + i}`), box = drawn.querySelector(":scope > .box");
      drawn.setAttribute("transform", `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})`);
      drawn.classList.toggle("folded", node.folded);
      box.setAttribute("width", place.width.toFixed(1));
      box.setAttribute("height", place.height.toFixed(1));
      for (const child of drawn.children) if (child.classList.contains("holder")) child.style.display = node.folded ? "none" : "";
      placed.inner[i].forEach(show);
    });
  }
  function draw() {
    const placed = placeAll(model);
    placed.forEach(show);
    size = [Math.max(...placed.map(p => p.width)), Math.max(...placed.map(p => p.y + p.height))];
  }
  function move() { view.setAttribute("transform", `translate(${moveX} ${moveY}) scale(${scale})`); }
  function fit() {
    const width = svg.clientWidth, height = svg.clientHeight;
    scale = Math.max(0.05, Math.min(1.25, (width - 40) / size[0], Math.max((height - 40) / size[1], 0.45)));
    moveX = (width - size[0] * scale) / 2;
    moveY = Math.max(20, (height - size[1] * scale) / 2);
    move();
  }
  function zoom(factor, x, y) {
    const next = Math.min(8, Math.max(0.03, scale * factor));
    moveX = x - (x - moveX) * next / scale;
    moveY = y - (y - moveY) * next / scale;
    scale = next;
    move();
  }
  function foldable(node) { return node.inner.length > 0; }
  function foldAll(folded) {
    for (const panel of model.panels) for (const node of panel.nodes) if (foldable(node)) node.folded = folded;
    draw();
    fit();
  }
  function toggle(group) {
    const number = Number(group.id.slice(1));
    const panel = model.panels.find(p => p.first <= number && number < p.first + p.nodes.length);
    const node = panel.nodes[number - panel.first], before = group.getBoundingClientRect();
    if (!foldable(node)) return;
    node.folded = !node.folded;
    draw();
    const after = group.getBoundingClientRect();  // what was clicked stays where it was
    moveX += before.left - after.left;
    moveY += before.top - after.top;
    move();
  }

  // Titles become one text of our own, shown at once.
  for (const title of [...svg.querySelectorAll("title")]) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
  svg.addEventListener("pointermove", event => {
    if (dragged) {
      moveX += event.clientX - dragged[0];
      moveY += event.clientY - dragged[1];
      dragged = [event.clientX, event.clientY, dragged[2] + Math.abs(event.movementX) + Math.abs(event.movementY)];
      move();
    }
    const about = event.target.closest("[data-tip]");
    tip.hidden = !about || !!dragged;
    if (tip.hidden) return;
    tip.textContent = about.dataset.tip;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8) + "px";
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("pointerdown", event => { dragged = [event.clientX, event.clientY, 0]; svg.setPointerCapture(event.pointerId); });
  svg.addEventListener("pointerup", event => {
    const clicked = dragged && dragged[2] < 5;
    dragged = null;
    if (!clicked) return;
    const under = document.elementFromPoint(event.clientX, event.clientY);
    const group = under && under.closest(".node");
    if (group && group.classList.contains("folds")) toggle(group);
  });
  svg.addEventListener("wheel", event => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.clientX, event.clientY);
  }, { passive: false });
  get("fit").onclick = fit;
  get("fold").onclick = () => foldAll(true);
  get("unfold").onclick = () => foldAll(false);
  get("find").oninput = event => {
    const wanted = event.target.value.trim().toLowerCase();
    for (const node of svg.querySelectorAll(".node")) {
      const own = [...node.children].filter(child => child.tagName === "text").map(child => child.textContent).join(" ");
      node.classList.toggle("found", wanted !== "" && (own + " " + (node.dataset.tip || "")).toLowerCase().includes(wanted));
    }
  };
  addEventListener("keydown", event => {
    if (event.target.tagName === "INPUT") return;
    if (event.key === "+" || event.key === "=") zoom(1.25, innerWidth / 2, innerHeight / 2);
    if (event.key === "-") zoom(0.8, innerWidth / 2, innerHeight / 2);
    if (event.key === "0") fit();
  });
  addEventListener("resize", fit);
  draw();
  fit();
}

if (typeof document !== "undefined") start(JSON.parse(document.getElementById("model").textContent));

/* The graph of a function: boxes that fold and unfold, nodes that are looked at; by mouse, touch and keys. */
const graph = (() => {
  const { format } = model;
  const root = document.getElementById("graph");
  const view = { f: null, scene: null, mode: "layer", selected: null, lit: null, litBoxes: new Set(), x: 0, y: 0, scale: 1,
    options: { constants: false, movement: false, far: true } };
  let canvas, map, legend, facts, wanted = false, app;

  const paint = () => {
    wanted = false;
    if (!canvas || canvas.clientWidth === 0 || !view.scene) return;
    draw.paint(canvas, view);
    draw.paintMap(map, canvas, view);
  };

  const repaint = () => {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(paint);
  };

  // ---- places ----

  const place = (scale) => {
    const w = canvas.clientWidth || 800, h = canvas.clientHeight || 600;
    view.scale = scale;
    view.x = (w - view.scene.width * scale) / 2;
    view.y = Math.max(8, (h - view.scene.height * scale) / 2);
    repaint();
  };

  const fitScale = () => {
    const w = canvas.clientWidth || 800, h = canvas.clientHeight || 600, s = view.scene;
    return Math.max(0.004, Math.min(1.1, (w - 30) / s.width, (h - 30) / s.height));
  };

  const fit = () => place(fitScale());

  // Large enough to be read, from its beginning on.
  const begin = () => {
    const whole = fitScale(), wide = (canvas.clientWidth - 30) / view.scene.width;
    place(Math.max(whole, Math.min(0.85, Math.max(wide, 0.4))));
  };

  const zoom = (factor, cx, cy) => {
    const next = Math.max(0.004, Math.min(4, view.scale * factor));
    view.x = cx - (cx - view.x) * next / view.scale;
    view.y = cy - (cy - view.y) * next / view.scale;
    view.scale = next;
    repaint();
  };

  const show = (it) => { // in the middle, unless it is to be seen already
    const w = canvas.clientWidth, h = canvas.clientHeight;
    if (view.scale < 0.5) view.scale = 0.8;
    const x = it.ax * view.scale + view.x, y = it.ay * view.scale + view.y;
    if (x < 20 || y < 20 || x + it.w * view.scale > w - 20 || y + Math.min(it.h, 60) * view.scale > h - 20) {
      view.x = w / 2 - (it.ax + it.w / 2) * view.scale;
      view.y = h / 2 - (it.ay + Math.min(it.h, 200) / 2) * view.scale;
    }
    repaint();
  };

  const itemAt = (px, py) => {
    const x = (px - view.x) / view.scale, y = (py - view.y) / view.scale;
    const inside = (it) => x >= it.ax && x <= it.ax + it.w && y >= it.ay && y <= it.ay + it.h;
    const nodes = view.scene.nodes, boxes = view.scene.boxes;
    for (let i = nodes.length - 1; i >= 0; i--) if (inside(nodes[i])) return { it: nodes[i] };
    for (let i = boxes.length - 1; i > 0; i--)
      if (inside(boxes[i])) return { it: boxes[i], head: y <= boxes[i].ay + scene.HEAD };
    return null;
  };

  // ---- what is seen ----

  const rebuild = (anchor) => {
    const before = anchor && anchor.item && { x: anchor.item.ax, y: anchor.item.ay };
    view.scene = scene.build(view.f, view.options, format);
    view.mostNs = Math.max(...view.scene.nodes.map((it) => it.node ? it.node.ns : it.of.ns), 0);
    const it = anchor && anchor.item;
    if (it && before && it.ax !== undefined) { // it stays where it was on the screen
      view.x += (before.x - it.ax) * view.scale;
      view.y += (before.y - it.ay) * view.scale;
    }
    lightBoxes();
    tell();
    repaint();
  };

  const lightBoxes = () => {
    view.litBoxes = new Set();
    if (view.lit)
      for (const id of view.lit) for (const b of layers.around(view.f, id)) view.litBoxes.add(b);
  };

  const tell = () => {
    const s = view.scene, edges = s.edges.length;
    facts.textContent = `${view.f.nodes.length} nodes, ${s.nodes.length} shown, ${edges} edges` +
      (s.hiddenCount > 0 ? `, ${s.hiddenCount} constants, scalars and moves hidden` : "") +
      (view.f.exact || view.f.interpreted ? "" : " · kernels of nodes are not known");
    legend.replaceChildren(...legendRows());
  };

  const legendRows = () => {
    const row = (colour, name, click) => make("button.key", { onclick: click },
      make("i", { style: `background:${colour}` }), name);
    if (view.mode === "time")
      return [0, 0.05, 0.25, 1].map((s) => row(colours.heat(s), s === 0 ? "none" : format.time(view.mostNs * s)));
    if (view.mode === "kernel")
      return [...view.f.kernels].sort((a, b) => b.ns - a.ns).slice(0, 14).map((k) =>
        row(colours.of(k.id), `${k.name}  ${format.percent(k.ns, view.f.ns)}`, () => app.select({ kind: "kernel", f: view.f, kernel: k })));
    if (view.mode === "class") {
      const found = new Set(view.f.nodes.map((n) => n.cls).filter((c) => c !== "input"));
      return [...found].map((c) => row(colours.of(colours.named("class " + c)), c));
    }
    const tops = new Map();
    const tree = layers.of(view.f);
    layers.each(tree.root, (b) => {
      const own = layers.layerOf(tree, b), k = draw.layerKey(tree, b);
      if (k >= 0 && own === b && (b.depth === tree.level || b.plain > 0) && !tops.has(k)) tops.set(k, b);
    });
    return [...tops].slice(0, 18).map(([k, b]) => row(colours.of(k), layers.label(b), () => { choose(b); if (b.item) show(b.item); }));
  };

  // ---- folding ----

  const toggle = (box, open = !box.open) => {
    if (!box.parent) return;
    box.open = open;
    rebuild(box);
  };

  const foldAll = (open) => {
    layers.each(layers.of(view.f).root, (b) => { if (b.parent) b.open = open; });
    rebuild();
    begin();
  };

  const reveal = (id) => {
    let changed = false;
    for (const b of layers.around(view.f, id)) if (!b.open) { b.open = true; changed = true; }
    if (view.scene.hidden[id]) {
      view.options.constants = view.options.movement = true;
      root.querySelectorAll("input[type=checkbox]").forEach((c) => { c.checked = view.options[c.name]; });
      changed = true;
    }
    if (changed) rebuild();
  };

  // ---- choosing ----

  const choose = (what, quiet) => {
    view.selected = what;
    if (!quiet && what && what.op) app.select({ kind: "node", f: view.f, node: what });
    else if (!quiet && what) app.select({ kind: "box", f: view.f, box: what });
    repaint();
  };

  const light = (ids) => {
    view.lit = ids && ids.length > 0 ? new Set(ids) : null;
    if (view.scene) lightBoxes();
    repaint();
  };

  const goTo = (f, id) => {
    app.showFunction(f);
    reveal(id);
    const n = f.nodes[id];
    choose(n, true);
    const it = view.scene.item[id];
    if (it) show(it);
  };

  const step = (key) => { // to an operand, a user, a neighbour
    const it = view.selected && (view.scene.item[view.selected.id] || view.selected.item);
    if (!it) return false;
    const next = key === "ArrowUp" ? it.ins?.[0]?.a : key === "ArrowDown" ? it.outs?.[0]?.b : beside(it, key === "ArrowLeft");
    if (!next) return true;
    choose(next.node || next.of);
    show(next);
    return true;
  };

  const beside = (it, left) => view.scene.nodes
    .filter((o) => o !== it && o.box === it.box && Math.abs(o.ay - it.ay) < 40 && (left ? o.ax < it.ax : o.ax > it.ax))
    .sort((a, b) => Math.abs(a.ax - it.ax) - Math.abs(b.ax - it.ax))[0];

  const onKey = (e) => {
    const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
    const w = canvas.clientWidth / 2, h = canvas.clientHeight / 2;
    if (pan && !e.shiftKey && step(e.key)) { e.preventDefault(); return; }
    if (pan) { view.x += pan[0]; view.y += pan[1]; repaint(); }
    else if (e.key === "+" || e.key === "=") zoom(1.25, w, h);
    else if (e.key === "-") zoom(0.8, w, h);
    else if (e.key === "0") fit();
    else if (e.key === "[") foldAll(false);
    else if (e.key === "]") foldAll(true);
    else if (e.key === "Enter" && view.selected && !view.selected.op) toggle(view.selected);
    else if (e.key === "Enter" && view.selected) toggle(layers.of(view.f).home[view.selected.id], false);
    else return;
    e.preventDefault();
  };

  // ---- pointers ----

  const watch = () => {
    const down = new Map();
    let moved = 0, pinch = 0;
    const at = (e) => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
    canvas.addEventListener("pointerdown", (e) => {
      if (e.isTrusted) canvas.setPointerCapture(e.pointerId);
      down.set(e.pointerId, at(e));
      moved = 0;
      tip.hide();
    });
    canvas.addEventListener("pointermove", (e) => {
      const p = at(e);
      if (!down.has(e.pointerId)) { hover(e, p); return; }
      const before = down.get(e.pointerId);
      down.set(e.pointerId, p);
      if (down.size === 2) {
        const [a, b] = [...down.values()], d = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (pinch > 0) zoom(d / pinch, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        pinch = d;
        moved = 99;
        return;
      }
      moved += Math.abs(p[0] - before[0]) + Math.abs(p[1] - before[1]);
      view.x += p[0] - before[0];
      view.y += p[1] - before[1];
      repaint();
    });
    const up = (e) => {
      const p = down.get(e.pointerId);
      down.delete(e.pointerId);
      pinch = 0;
      if (!p || moved > 5 || e.type === "pointercancel") return;
      const hit = itemAt(...p);
      if (!hit) { choose(null); light(null); app.select(null); }
      else if (hit.it.node) choose(hit.it.node);
      else if (hit.it.closed || hit.head) { choose(hit.it.of); toggle(hit.it.of); }
      else choose(hit.it.of);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", tip.hide);
    canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      zoom(Math.exp(-Math.max(-60, Math.min(60, e.deltaY)) * (e.ctrlKey ? 0.012 : 0.004)), ...at(e));
    }, { passive: false });
    canvas.addEventListener("keydown", onKey);
  };

  const hover = (e, p) => {
    const hit = view.scene && itemAt(...p);
    canvas.style.cursor = hit && (hit.it.node || hit.it.closed || hit.head) ? "pointer" : "grab";
    if (!hit || (hit.it.open && !hit.head)) { tip.hide(); return; }
    const { node, of } = hit.it;
    if (node)
      tip.show(e, make("b", {}, node.op), " " + node.type, make("div", {}, [node.attributes, node.origins[0]?.where,
        node.ns > 0 ? format.time(node.ns) : ""].filter((s) => s).join(" · ")));
    else
      tip.show(e, make("b", {}, of.name), " " + of.detail, make("div", {}, `${of.count} nodes · ${format.time(of.ns)} · ` +
        (of.open ? "click to fold" : "click to unfold")));
  };

  // ---- the view ----

  const setMode = (mode) => {
    view.mode = mode;
    root.querySelectorAll("[data-mode]").forEach((b) => b.setAttribute("aria-pressed", b.dataset.mode === mode));
    tell();
    repaint();
  };

  const option = (name, label, title) => make("label.check", { title }, make("input", { type: "checkbox", name,
    checked: view.options[name], onchange: (e) => { view.options[name] = e.target.checked; rebuild(); } }), label);

  const start = (controller) => {
    app = controller;
    canvas = make("canvas", { tabindex: "0", "aria-label": "graph; arrows move, plus and minus zoom, Enter folds" });
    legend = make("div.legend");
    map = make("canvas.map", { "aria-hidden": "true" });
    const jump = (e) => {
      if (e.type === "pointermove" && e.buttons === 0) return;
      const r = map.getBoundingClientRect(), k = draw.mapScale(map, view);
      view.x = canvas.clientWidth / 2 - (e.clientX - r.left - k.x) / k.scale * view.scale;
      view.y = canvas.clientHeight / 2 - (e.clientY - r.top - k.y) / k.scale * view.scale;
      repaint();
    };
    map.addEventListener("pointerdown", jump);
    map.addEventListener("pointermove", jump);
    facts = make("div.facts");
    const modes = ["layer", "kernel", "time", "class"].map((m) =>
      make("button", { "data-mode": m, "aria-pressed": m === view.mode, onclick: () => setMode(m) }, m));
    root.append(
      make("div.tools", {},
        make("span.group", {}, make("span.label", {}, "colour"), modes),
        make("span.group", {}, make("button", { onclick: () => foldAll(false), title: "Fold all ([)" }, "fold all"),
          make("button", { onclick: () => foldAll(true), title: "Unfold all (])" }, "unfold all")),
        make("span.group", {}, make("button", { onclick: () => zoom(0.8, canvas.clientWidth / 2, canvas.clientHeight / 2), title: "Zoom out (-)" }, "−"),
          make("button", { onclick: () => zoom(1.25, canvas.clientWidth / 2, canvas.clientHeight / 2), title: "Zoom in (+)" }, "+"),
          make("button", { onclick: fit, title: "Fit (0)" }, "fit")),
        option("movement", "moves", "reshape, permute, expand ... that no kernel stores"),
        option("constants", "constants", "numbers, and inputs that are one number"),
        option("far", "far edges", "edges that go a long way, as to the gradient")),
      make("div.stage", {}, canvas, map, legend, facts));
    watch();
    new ResizeObserver(paint).observe(canvas); // at once: else it would be seen stretched
  };

  let fitted = null;
  const render = (f) => {
    if (view.f !== f) {
      view.f = f;
      view.selected = null;
      view.lit = null;
      rebuild();
      fitted = null;
    }
    if (fitted !== f && canvas.clientWidth > 0) { begin(); fitted = f; }
    repaint();
  };

  return { start, render, repaint, goTo, light, choose, toggle, foldAll, setMode, fit, view, itemAt, tell };
})();

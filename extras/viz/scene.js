/* What of a function's boxes and nodes is to be seen, laid out: items with places, edges with points. */
const scene = (() => {
  const HEAD = 26, PAD = 14, NODE_H = 36;
  const FONT = "600 12px system-ui, sans-serif", SMALL = "11px ui-monospace, Menlo, 'DejaVu Sans Mono', monospace";
  const pen = document.createElement("canvas").getContext("2d"), widths = new Map();

  const widthOf = (font, s) => {
    const key = font + s;
    let w = widths.get(key);
    if (w === undefined) {
      pen.font = font;
      w = pen.measureText(s).width;
      widths.set(key, w);
    }
    return w;
  };

  // ---- which nodes ----

  const isScalarInput = (n) => n.cls === "input" && !n.type.includes(",") && /\[\]$/.test(n.type);

  const isHidden = (n, options) => {
    if (n.results.length > 0 && n.cls !== "input" && n.op !== "const") return false;
    if (n.cls === "input" && n.users.length === 0) return true;
    if (!options.constants && (n.op === "const" || isScalarInput(n))) return true;
    return !options.movement && n.cls === "movement" && n.commands.every((c) => n.home !== c);
  };

  // The nodes that n reads, through hidden ones.
  const operandsOf = (f, n, hidden, out) => {
    for (const u of n.ins) {
      if (!hidden[u]) out.add(u);
      else if (f.nodes[u].cls === "movement") operandsOf(f, f.nodes[u], hidden, out);
    }
    return out;
  };

  // ---- items ----

  const titleOf = (f, n) => {
    if (n.cls === "input") return n.label || n.role;
    if (n.op === "const") return n.attributes;
    const times = n.op === "loop" && n.home >= 0 ? f.commands[n.home].grid : 0;
    if (times > 0) return times < 2147483647 ? `loop × ${times}` : "loop";
    const constant = n.cls === "element-wise" && n.ins.map((u) => scalarOf(f, u)).find((s) => s !== null);
    return constant ? `${n.op} ${constant}` : n.op;
  };

  // What is the same number everywhere, looked at through movement.
  const scalarOf = (f, u) => {
    let n = f.nodes[u];
    while (n.cls === "movement" && n.ins.length === 1) n = f.nodes[n.ins[0]];
    return n.op === "const" ? n.attributes : isScalarInput(n) && n.label ? n.label : null;
  };

  const nodeItem = (f, n, box) => {
    const title = titleOf(f, n), tag = n.results.filter((r) => r.role !== "check").map((r) => r.what).join(", ");
    const type = n.op === "loop" || n.op === "branch" ? "" : n.type; // which are their picks'
    const w = Math.max(widthOf(FONT, title), widthOf(SMALL, type), tag ? widthOf(SMALL, tag) + 14 : 0) + 22;
    return { node: n, box, title, type, tag, w: Math.min(Math.max(w, 58), 300), h: NODE_H + (tag ? 15 : 0) };
  };

  const closedItem = (b, format, whole) => {
    const facts = `${b.count} nodes` + (b.ns > 0 ? ` · ${format.time(b.ns)} · ${format.percent(b.ns, whole)}` : "");
    const w = Math.max(widthOf(FONT, b.name) + 18, widthOf(SMALL, facts), widthOf(SMALL, b.detail)) + 26;
    return { of: b, box: b.parent, title: b.name, type: b.detail, facts, closed: true,
      w: Math.min(Math.max(w, 110), 380), h: b.detail ? 60 : 46 };
  };

  const build = (f, options, format) => {
    const { root, home } = layers.of(f);
    const hidden = f.nodes.map((n) => isHidden(n, options));
    const item = new Array(f.nodes.length), items = [];

    // Items by box, from the outermost on; nodes of a closed box are that box.
    const fill = (box) => {
      box.item = { of: box, box: box.parent, open: true, children: [] };
      for (const id of box.nodes) {
        if (hidden[id]) continue;
        item[id] = nodeItem(f, f.nodes[id], box);
        box.item.children.push(item[id]);
      }
      for (const b of box.boxes.values()) {
        if (b.open) {
          fill(b);
          if (b.item.children.length > 0) box.item.children.push(b.item);
        } else if (takes(b)) {
          const it = closedItem(b, format, f.ns);
          b.item = it;
          mark(b, it);
          box.item.children.push(it);
        }
      }
    };
    const takes = (b) => b.nodes.some((id) => !hidden[id]) || [...b.boxes.values()].some(takes);
    const mark = (b, it) => {
      for (const id of b.nodes) if (!hidden[id]) item[id] = it;
      for (const inner of b.boxes.values()) mark(inner, it);
    };
    fill(root);

    // ---- edges, each in the innermost box that has both ends ----
    const edges = [], byPair = new Map();
    const chain = (it) => {
      const list = [it];
      for (let b = it.box; b; b = b.parent) list.push(b.item);
      return list.reverse();
    };
    const connect = (a, b, u) => {
      if (a === b) return;
      a.number = a.number ?? items.push(a) - 1;
      b.number = b.number ?? items.push(b) - 1;
      const key = a.number * 1e6 + b.number;
      const known = byPair.get(key);
      if (known) { known.values.add(u); return; }
      const e = { a, b, values: new Set([u]) };
      byPair.set(key, e);
      edges.push(e);
    };
    for (const n of f.nodes)
      if (item[n.id])
        for (const u of operandsOf(f, n, hidden, new Set())) if (item[u]) connect(item[u], item[n.id], u);
    layers.each(root, (b) => {
      if (b.control !== undefined && item[b.control] && b.item && (b.open || b.item.closed))
        connect(item[b.control], b.item, b.control);
    });
    const local = new Map();
    for (const e of edges) {
      const up = chain(e.a), to = chain(e.b);
      let k = 0;
      while (k < up.length && k < to.length && up[k] === to[k]) k++;
      if (k === 0 || k >= up.length || k >= to.length) { e.points = []; continue; } // one is inside the other
      const at = up[k - 1];
      const inner = local.get(at) || new Map();
      local.set(at, inner);
      const key = idOf(up[k]) * 1e6 + idOf(to[k]);
      const own = inner.get(key) || { a: up[k], b: to[k], all: [] };
      own.all.push(e);
      inner.set(key, own);
    }

    // ---- places, from the inside out, then from the outside in ----
    const measure = (box) => {
      for (const it of box.children) if (it.open) measure(it);
      const place = new Map(box.children.map((it, i) => [it, i]));
      const list = [...(local.get(box) || new Map()).values()].map((o) => ({ from: place.get(o.a), to: place.get(o.b), o }));
      const size = layout(box.children, list);
      for (const e of list) for (const whole of e.o.all) { whole.inside = box; whole.points = e.points; }
      box.w = Math.max(size.w + 2 * PAD, widthOf(FONT, box.of.name) + widthOf(SMALL, box.of.detail) + 80);
      box.h = size.h + HEAD + 2 * PAD;
      box.inset = (box.w - size.w) / 2;
    };
    measure(root.item);
    const boxes = [], nodes = [];
    const settle = (box, x, y) => {
      box.ax = x;
      box.ay = y;
      boxes.push(box);
      for (const it of box.children) {
        const ax = x + box.inset + it.x, ay = y + HEAD + PAD + it.y;
        if (it.open) settle(it, ax, ay);
        else { it.ax = ax; it.ay = ay; nodes.push(it); }
      }
    };
    settle(root.item, 0, 0);
    for (const e of edges) {
      const dx = e.inside ? e.inside.ax + e.inside.inset : 0, dy = e.inside ? e.inside.ay + HEAD + PAD : 0;
      e.line = [[e.a.ax + e.a.w / 2, e.a.ay + e.a.h], ...(e.points || []).map((p) => [p[0] + dx, p[1] + dy]),
        [e.b.ax + e.b.w / 2, e.b.ay]];
      (e.a.outs = e.a.outs || []).push(e);
      (e.b.ins = e.b.ins || []).push(e);
    }
    return { boxes, nodes, edges, item, hidden, width: root.item.w, height: root.item.h,
      hiddenCount: hidden.filter((h) => h).length };
  };

  let ids = 0;
  const idOf = (it) => { it.id = it.id ?? ++ids % 1e6; return it.id; };

  return { build, widthOf, FONT, SMALL, HEAD };
})();

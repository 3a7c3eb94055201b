/* Where the time went: script, typed function, layer, line, kernel; as wide as their time. */
const flame = (() => {
  const { format, data } = model;
  const root = document.getElementById("flame");
  const ROW = 22;
  let app, top = null, zoomed = null, box = null, whole = null;

  const node = (name, kind, parent) => ({ name, kind, parent, ns: 0, children: new Map(), depth: parent ? parent.depth + 1 : 0 });
  const child = (at, key, name, kind) => {
    let c = at.children.get(kind + key);
    if (!c) {
      c = node(name, kind, at);
      at.children.set(kind + key, c);
    }
    return c;
  };

  const add = (at, ns) => { for (let n = at; n; n = n.parent) n.ns += ns; };

  const build = () => {
    const script = node(data.script || "script", "script", null);
    for (const f of model.functions) {
      const own = child(script, f.id, f.title, "function");
      own.f = f;
      for (const c of f.commands) {
        const label = c.kernel !== undefined ? f.kernels[c.kernel].name : c.label || c.kind;
        let rest = c.ns;
        c.nodes.forEach((id, k) => {
          const ns = c.ns * c.shares[k], n = f.nodes[id], origins = n.origins.length > 0 ? n.origins : [{ where: "", path: "" }];
          if (ns === 0) return;
          for (const o of origins) {
            let at = own;
            if (o.path) {
              const paren = o.path.indexOf(" (");
              for (const name of (paren < 0 ? o.path : o.path.slice(0, paren)).split(".")) at = child(at, name, name, "layer");
              at.detail = o.path.replace("->", "→");
              if (paren > 0) at.about = o.path.slice(paren + 2, -1).replace("->", "→");
            }
            if (o.where) { at = child(at, o.where, o.where.replace(/^.*\//, ""), "line"); at.where = o.where; }
            at = child(at, label, label, "kernel");
            at.f = f;
            at.kernel = c.kernel;
            add(at, ns / origins.length);
          }
          rest -= ns;
        });
        if (rest > c.ns * 1e-9 && rest > 0) add(child(own, label, label, "command"), rest);
      }
      if (f.outside > 0) add(child(own, "", "between commands", "rest"), f.outside);
    }
    return script;
  };

  const hues = { script: 215, function: 260, layer: 205, line: 150, kernel: 28, command: 45, rest: 0 };
  const colourOf = (n) => {
    const dark = colours.dark();
    if (n.kind === "rest") return dark ? "hsl(215 8% 30%)" : "hsl(215 8% 84%)";
    let h = 0;
    for (const c of n.name) h = (h * 31 + c.charCodeAt(0)) % 997;
    return `hsl(${hues[n.kind] + h % 22 - 11} ${dark ? 38 : 62}% ${(dark ? 30 : 76) + h % 8}%)`;
  };

  const click = (n) => {
    zoomed = n;
    paint();
    if (n.kind === "line") app.select({ kind: "line", where: n.where });
    else if (n.kind === "kernel" && n.kernel !== undefined) app.select({ kind: "kernel", f: n.f, kernel: n.f.kernels[n.kernel] });
    else if (n.kind === "function") app.select({ kind: "function", f: n.f });
  };

  const frame = (n, left, width, level, faded) => make("button.frame" + (faded ? ".faded" : ""), {
    style: `left:${left}%;width:${width}%;top:${level * ROW}px;background:${colourOf(n)}` + (width > 1.5 ? "" : ";padding:0"), "data-kind": n.kind,
    onclick: () => click(n), onmouseleave: tip.hide,
    onmousemove: (e) => tip.show(e, make("b", {}, n.detail || n.name), make("div", {}, `${n.kind} · ${format.time(n.ns)} · ${format.percent(n.ns, top.ns)}`)) },
    width > 1.5 ? n.name + (n.about ? "  " + n.about : "") : "");

  const paint = () => {
    const frames = [];
    let deep = 0;
    const up = [];
    for (let n = zoomed.parent; n; n = n.parent) up.unshift(n);
    up.forEach((n, i) => frames.push(frame(n, 0, 100, i, true)));
    const walk = (n, left, width, level) => {
      if (width < 0.08) return;
      deep = Math.max(deep, level);
      frames.push(frame(n, left, width, level, false));
      let at = left;
      for (const c of [...n.children.values()].sort((a, b) => b.ns - a.ns)) {
        const w = width * c.ns / n.ns;
        walk(c, at, w, level + 1);
        at += w;
      }
    };
    if (zoomed.ns > 0) walk(zoomed, 0, 100, up.length);
    box.style.height = (deep + 1) * ROW + "px";
    box.replaceChildren(...frames);
    whole.hidden = zoomed === top;
  };

  const start = (controller) => { app = controller; };

  const render = () => {
    if (!top) {
      top = zoomed = build();
      box = make("div.flame");
      whole = make("button", { onclick: () => { zoomed = top; paint(); } }, "whole");
      root.append(make("h2", {}, "Flame graph"), make("p.muted", {}, "From the script down: typed functions, layers, lines, kernels. As wide as their time; a click zooms."),
        make("div.tools", {}, whole), top.ns > 0 ? make("div.card", {}, box) : make("p.note", {}, "Nothing was timed."));
    }
    paint();
  };

  return { start, render, get top() { return top; } };
})();

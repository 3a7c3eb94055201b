/* The panel beside the views: a node, a kernel, a line, a box of the graph or a function. */
const details = (() => {
  const { format } = model;
  const panel = document.getElementById("details");
  let app;

  const facts = (rows) => make("dl", {}, rows.filter(([, v]) => v !== "" && v !== null && v !== undefined && v !== false && !(Array.isArray(v) && v.length === 0))
    .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

  const MOST = 40;
  const nodeList = (title, f, ids) => ids.length === 0 ? "" : make("section", {}, make("h4", {}, title, make("span.muted", {}, ` ${ids.length}`)),
    make("ul.links", {}, ids.slice(0, MOST).map((id) => make("li", {}, nodeLink(f, f.nodes[id])))),
    ids.length > MOST ? make("p.muted", {}, `and ${ids.length - MOST} more`) : "");

  const nodeLink = (f, n) => make("button.link", { onclick: () => app.showNode(f, n) },
    make("b", {}, n.cls === "input" ? n.label || n.role : n.op === "const" ? n.attributes : n.op), " ", make("code.muted", {}, n.type));

  const kernelLink = (f, k) => make("button.link", { onclick: () => { app.show("kernels", f); app.select({ kind: "kernel", f, kernel: k }); } },
    make("i.swatch", { style: `background:${colours.strong(k.id)}` }), make("code", {}, k.name), " ", make("span.muted", {}, format.time(k.ns)));

  const kernelsOf = (f, n) => [...new Set(n.commands.map((c) => f.commands[c].kernel).filter((k) => k !== undefined))].map((k) => f.kernels[k]);

  const byUse = (ids, f) => [...ids].sort((a, b) => f.nodes[b].ns - f.nodes[a].ns);

  const ofNode = ({ f, node: n }) => {
    const list = kernelsOf(f, n), path = n.origins.map((o) => o.path).filter((p) => p);
    const others = n.commands.filter((c) => f.commands[c].kernel === undefined).map((c) => f.commands[c].label || f.commands[c].kind);
    return [
      make("h3", {}, n.cls === "input" ? n.label || n.role : n.op, " ", make("code", {}, n.type)),
      facts([
        ["is", n.cls === "input" ? n.role : n.cls],
        ["attributes", n.attributes],
        ["becomes", n.results.map((r) => r.what).join(", ")],
        ["line", model.wheresOf(n).map((w) => make("div", {}, app.link("line", w)))],
        ["layer", [...new Set(path)].map((p) => make("div", {}, p.replace("->", "→")))],
        ["time", n.ns > 0 ? `${format.time(n.ns)}, ${format.percent(n.ns, f.ns)} of the function` : ""],
        ["size", format.bytes(n.bytes)],
        ["arithmetic", n.work > 0 ? `about ${format.count(n.work)} operations` : ""],
        ["stored", n.home >= 0 ? `by command ${n.home}` : n.cls === "input" || n.op === "const" ? "" : n.commands.length > 0 ? "no: it lives inside its kernel" : ""],
        ["computed by", others.join(", ")],
      ]),
      list.length > 0 ? make("section", {}, make("h4", {}, list.length > 1 ? "Kernels that compute it" : "Kernel"), make("ul.links", {}, list.map((k) => make("li", {}, kernelLink(f, k))))) : "",
      nodeList("Operands", f, n.ins), nodeList("Users", f, n.users),
    ];
  };

  const ofKernel = ({ f, kernel: k }) => [
    make("h3", {}, make("i.swatch", { style: `background:${colours.strong(k.id)}` }), make("code", {}, k.name)),
    make("p.muted", {}, `${k.ops} · ${f.title}`),
    facts([
      ["time", `${format.time(k.ns)}, ${format.percent(k.ns, f.ns)} of the function`],
      ["calls", format.count(k.runs)],
      ["a call", k.each >= 0 ? format.time(k.each) : ""],
      ["rate", k.gflops > 0 || k.gbs > 0 ? `${format.digits(k.gflops)} GFLOP/s, ${format.digits(k.gbs)} GB/s` : ""],
      ["roofline", k.roof !== null ? format.percent(k.roof, 1) : ""],
      ["intensity", k.intensity > 0 ? `${format.digits(k.intensity)} FLOP a byte` : ""],
      ["lines", k.lineList.map((w) => make("div", {}, app.link("line", w)))],
    ]),
    make("div.tools", {}, make("button", { onclick: () => app.showKernel(f, k) }, "show in the graph"),
      make("button", { onclick: () => { app.show("kernels", f); app.select({ kind: "kernel", f, kernel: k }); } }, "source")),
    nodeList("Nodes", f, byUse(k.nodes.filter((id) => f.nodes[id].op !== "const"), f)),
  ];

  const ofLine = ({ where }) => {
    const line = model.lines.get(where);
    if (!line) return [make("h3", {}, make("code", {}, where)), make("p.muted", {}, "No node comes from this line.")];
    const found = new Map();
    for (const c of line.commands) if (c.kernel !== undefined) found.set(c.f.id + " " + c.kernel, [c.f, c.f.kernels[c.kernel]]);
    const list = [...found.values()].sort((a, b) => b[1].ns - a[1].ns), byFunction = new Map();
    for (const { f, n } of line.nodes) if (n.op !== "const") byFunction.set(f, [...(byFunction.get(f) || []), n.id]);
    return [
      make("h3", {}, make("code", {}, where)), make("pre.snippet", {}, lines.colour(lines.textOf(where).trim())),
      facts([["time", `${format.time(line.ns)}, ${format.percent(line.ns, model.total)} of all`],
        ["arithmetic", line.flops > 0 ? format.atMost(line.most, format.flop(line.flops)) : ""],
        ["bytes", line.bytes > 0 ? format.atMost(line.most, format.bytes(line.bytes)) : ""]]),
      make("div.tools", {}, make("button", { onclick: () => app.showLine(where) }, "show its nodes in the graph"),
        make("button", { onclick: () => { app.show("lines"); lines.goTo(where); } }, "show in the script")),
      list.length > 0 ? make("section", {}, make("h4", {}, "Kernels", make("span.muted", {}, ` ${list.length}`)), make("ul.links", {}, list.slice(0, MOST).map(([f, k]) => make("li", {}, kernelLink(f, k))))) : "",
      ...[...byFunction].map(([f, ids]) => nodeList("Nodes of " + f.title, f, byUse(ids, f))),
    ];
  };

  const ofBox = ({ f, box }) => {
    const ids = [];
    layers.each(box, (b) => ids.push(...b.nodes));
    return [
      make("h3", {}, box.name), box.detail ? make("p.muted", {}, box.detail) : "",
      facts([["nodes", String(box.count)], ["time", box.ns > 0 ? `${format.time(box.ns)}, ${format.percent(box.ns, f.ns)} of the function` : ""],
        ["line", box.where ? app.link("line", box.where) : ""]]),
      make("div.tools", {}, make("button", { onclick: () => { graph.toggle(box); graph.choose(box); } }, box.open ? "fold" : "unfold")),
      nodeList("Nodes", f, byUse(ids.filter((id) => f.nodes[id].op !== "const"), f)),
    ];
  };

  const ofFunction = ({ f }) => [
    make("h3", {}, f.title), make("p", {}, make("code", {}, f.signature)),
    facts([["defined", f.where ? app.link("line", f.where) : ""], ["device", f.device], ["calls", format.count(f.calls)], ["time", `${format.time(f.ns)}, ${format.percent(f.ns, model.total)} of all`],
      ["a call", format.time(f.ns / Math.max(1, f.calls))], ["between commands", f.interpreted ? "" : `${format.time(f.outside)}, ${format.percent(f.outside, f.ns)}`],
      ["launches", f.interpreted ? "run by the reference interpreter" : `${f.launches} a call, of ${f.kernels.length} kernels; ${f.copies} copies`],
      ["nodes", String(f.nodes.length)], ["temporaries", f.interpreted ? "" : format.bytes(f.arena)],
      ["derived values", f.derived.length > 0 ? `${f.derived.length}, computed ${f.prologues} times` : ""]]),
    make("div.tools", {}, ["graph", "kernels", "memory"].map((v) => make("button", { onclick: () => app.show(v, f) }, v))),
  ];

  const makers = { node: ofNode, kernel: ofKernel, line: ofLine, box: ofBox, function: ofFunction };

  const show = (what) => {
    panel.hidden = !what;
    if (!what) return;
    panel.replaceChildren(make("button.quiet.close", { "aria-label": "close", onclick: () => app.select(null) }, "✕"), ...makers[what.kind](what));
    panel.scrollTop = 0;
  };

  return { start: (controller) => { app = controller; }, show };
})();

/* Search over nodes, kernels, lines and tensors; "/" begins. */
const search = (() => {
  const { format } = model;
  const input = document.getElementById("search"), box = document.getElementById("found");
  const MOST = 12;
  let app, rows = [], at = 0, index = null;

  const build = () => {
    index = [];
    const add = (kind, name, about, weight, go) => index.push({ kind, name, about, weight, key: (name + " " + about).toLowerCase(), go });
    for (const f of model.functions) {
      add("function", f.title, (f.where || "") + " " + f.signature, 4, () => app.select({ kind: "function", f }));
      for (const k of f.kernels)
        add("kernel", k.name, `${k.ops} · ${f.title} · ${format.time(k.ns)}`, 3, () => { app.show("kernels", f); app.select({ kind: "kernel", f, kernel: k }); });
      for (const p of f.parameters) {
        const n = p.name && f.nodes.find((x) => x.label === p.name);
        if (n) add("tensor", p.name, `${p.type} · ${p.role} of ${f.title}`, 2, () => app.showNode(f, n));
      }
      for (const n of f.nodes)
        if (n.cls !== "input")
          add("node", `${n.op} ${n.type}`, [n.attributes, n.origins[0]?.path, n.origins[0]?.where, f.title].filter((s) => s).join(" · "), 0, () => app.showNode(f, n));
    }
    for (const s of lines.sources)
      s.text.forEach((t, i) => {
        if (t.trim()) add("line", `${s.name}:${i + 1}`, t.trim(), model.lines.has(`${s.name}:${i + 1}`) ? 1 : 0.2,
          () => { app.show("lines"); app.select({ kind: "line", where: `${s.name}:${i + 1}` }); });
      });
  };

  const find = (query) => {
    if (!index) build();
    const words = query.toLowerCase().split(/\s+/).filter((w) => w), found = new Map();
    for (const x of index) {
      if (!words.every((w) => x.key.includes(w))) continue;
      const score = x.weight + (x.name.toLowerCase().startsWith(words[0]) ? 2 : 0) + (x.name.toLowerCase() === words.join(" ") ? 4 : 0);
      const list = found.get(x.kind) || [];
      found.set(x.kind, list);
      list.push({ x, score });
    }
    return found;
  };

  const names = { function: "Functions", kernel: "Kernels", tensor: "Tensors", line: "Lines", node: "Nodes" };

  const mark = (to) => {
    at = Math.max(0, Math.min(rows.length - 1, to));
    rows.forEach((r, i) => r.element.setAttribute("aria-selected", i === at));
    rows[at]?.element.scrollIntoView({ block: "nearest" });
  };

  const go = (row) => {
    close();
    row.x.go();
  };

  const close = () => { box.hidden = true; };

  const update = () => {
    const query = input.value.trim();
    rows = [];
    if (!query) { close(); return; }
    const found = find(query), parts = [];
    for (const kind of Object.keys(names)) {
      const list = (found.get(kind) || []).sort((a, b) => b.score - a.score);
      if (list.length === 0) continue;
      parts.push(make("div.kind", {}, names[kind], make("span.muted", {}, ` ${list.length}`)));
      for (const r of list.slice(0, MOST)) {
        r.element = make("div.hit", { role: "option", onmousedown: (e) => { e.preventDefault(); go(r); } }, make("code", {}, r.x.name), make("span.muted", {}, r.x.about));
        rows.push(r);
        parts.push(r.element);
      }
    }
    box.replaceChildren(...(parts.length > 0 ? parts : [make("div.kind", {}, "nothing found")]));
    box.hidden = false;
    mark(0);
  };

  const start = (controller) => {
    app = controller;
    input.addEventListener("input", update);
    input.addEventListener("focus", update);
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (e) => {
      if (e.key === "ArrowDown") mark(at + 1);
      else if (e.key === "ArrowUp") mark(at - 1);
      else if (e.key === "Enter" && rows[at]) { go(rows[at]); input.blur(); }
      else if (e.key === "Escape") { input.value = ""; close(); input.blur(); }
      else return;
      e.preventDefault();
    });
    document.addEventListener("keydown", (e) => {
      if (e.key !== "/" || /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
      e.preventDefault();
      input.focus();
      input.select();
    });
  };

  return { start, find };
})();

/* Views, what is selected, theme, keys; where the page is in its address: #view=graph&function=0&theme=dark */
const page = (() => {
  const { data, functions } = model;
  const byId = (id) => document.getElementById(id);
  const views = [["overview", "Overview"], ["graph", "Graph"], ["kernels", "Kernels"], ["lines", "Lines"], ["memory", "Memory"], ["flame", "Flame graph"]];
  const state = { view: "overview", f: functions[0] || null, selected: null };
  const picked = byId("function");

  const needsFunction = (view) => view === "graph" || view === "kernels" || view === "memory";

  const remember = () => {
    const at = new URLSearchParams({ view: state.view });
    if (state.f) at.set("function", state.f.id);
    history.replaceState(null, "", "#" + at);
  };

  const render = () => {
    for (const [name] of views) byId(name).classList.toggle("on", name === state.view);
    for (const b of byId("tabs").children) b.setAttribute("aria-selected", b.dataset.view === state.view);
    document.body.dataset.view = state.view;
    if (needsFunction(state.view) && !state.f) {
      byId(state.view).replaceChildren(make("p.note", {}, "No typed function was called."));
      return;
    }
    if (state.f) picked.value = state.f.id;
    if (state.view === "overview") overview.render();
    else if (state.view === "graph") graph.render(state.f);
    else if (state.view === "kernels") kernels.render(state.f);
    else if (state.view === "lines") lines.render();
    else if (state.view === "memory") memory.render(state.f);
    else flame.render();
  };

  const app = {
    show(view, f) {
      state.view = view;
      state.f = f || state.f;
      tip.hide();
      render();
      remember();
    },

    showFunction(f) { app.show("graph", f); },

    select(what) {
      state.selected = what;
      details.show(what);
      document.body.classList.toggle("detailed", !!what);
      if (!what) { graph.light(null); return; }
      if (what.kind === "kernel") {
        kernels.choose(what.f, what.kernel);
        if (graph.view.f === what.f) graph.light(what.kernel.nodes);
      } else if (what.kind === "line") {
        lines.render();
        lines.goTo(what.where);
        const line = model.lines.get(what.where);
        if (line && graph.view.f) graph.light(line.nodes.filter((x) => x.f === graph.view.f).map((x) => x.n.id));
      } else if (what.kind === "node") {
        graph.light(null);
      }
    },

    showNode(f, n) {
      graph.goTo(f, n.id);
      app.select({ kind: "node", f, node: n });
    },

    showKernel(f, k) {
      app.show("graph", f);
      const ids = k.nodes.filter((id) => !["input"].includes(f.nodes[id].cls) && f.nodes[id].op !== "const");
      const main = [...ids].sort((a, b) => f.nodes[b].work - f.nodes[a].work)[0];
      if (main !== undefined) graph.goTo(f, main);
      graph.choose(null, true);
      app.select({ kind: "kernel", f, kernel: k });
      graph.light(k.nodes);
    },

    showLine(where) {
      const line = model.lines.get(where), first = line && line.nodes.find((x) => x.f === state.f) || line?.nodes[0];
      if (!first) return;
      graph.goTo(first.f, first.n.id);
      graph.choose(null, true);
      app.select({ kind: "line", where });
    },

    link(kind, where, short) {
      return make("button.link", { title: where, onclick: (e) => { e.stopPropagation(); app.select({ kind, where }); } },
        make("code", {}, short || where.replace(/^.*\//, "")));
    },

    heading(f) {
      return [f.title, " ", make("code.muted.sig", {}, f.signature)];
    },
  };

  // ---- theme ----

  const setTheme = (theme, keep) => {
    document.documentElement.dataset.theme = theme;
    if (keep) try { localStorage.setItem("deepc-viz-theme", theme); } catch { /* not from files, in some browsers */ }
    graph.repaint();
    if (graph.view.scene) graph.tell();
    memory.paint();
    if (state.view === "flame") flame.render();
  };
  const stored = () => { try { return localStorage.getItem("deepc-viz-theme"); } catch { return null; } };
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const swap = () => setTheme(colours.dark() ? "light" : "dark", true);

  let before = null;
  const print = (on) => {
    if (on && before === null) { before = document.documentElement.dataset.theme; setTheme("light"); overview.render(); }
    else if (!on && before !== null) { setTheme(before); before = null; }
  };

  // ---- the beginning ----

  const start = () => {
    const at = new URLSearchParams(location.hash.slice(1));
    for (const part of [overview, graph, kernels, lines, memory, flame, search, details]) part.start(app);
    document.documentElement.dataset.theme = at.get("theme") || stored() || (preferred.matches ? "dark" : "light");
    preferred.addEventListener("change", (e) => { if (!stored()) setTheme(e.matches ? "dark" : "light"); });
    byId("script").textContent = data.script || "";
    byId("theme").addEventListener("click", swap);
    byId("tabs").append(...views.map(([name, title]) => make("button", { role: "tab", "data-view": name, onclick: () => app.show(name) }, title)));
    picked.append(...functions.map((f) => make("option", { value: f.id }, `${f.title}${f.where ? "  " + f.where.replace(/^.*\//, "") : ""}  ${model.format.time(f.ns)}`)));
    picked.parentElement.hidden = functions.length < 2;
    picked.addEventListener("change", () => { app.select(null); app.show(state.view === "overview" || !needsFunction(state.view) ? "graph" : state.view, functions[+picked.value]); });
    document.addEventListener("keydown", (e) => {
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName) || e.ctrlKey || e.metaKey || e.altKey) return;
      const n = +e.key;
      if (n >= 1 && n <= views.length) app.show(views[n - 1][0]);
      else if (e.key === "t") swap();
      else if (e.key === "Escape") app.select(null);
    });
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    matchMedia("print").addEventListener("change", (e) => print(e.matches));
    overview.render();
    const f = functions[+at.get("function")] || state.f;
    app.show(views.some(([name]) => name === at.get("view")) ? at.get("view") : "overview", f);
    if (f && f.kernels[at.get("kernel")]) app.select({ kind: "kernel", f, kernel: f.kernels[at.get("kernel")] });
    if (f && f.nodes[at.get("node")]) app.showNode(f, f.nodes[at.get("node")]);
    if (at.get("line")) app.select({ kind: "line", where: at.get("line") });
  };

  start();
  return { app, state, setTheme };
})();

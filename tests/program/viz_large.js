// Appended to a page about a function of 10,000 nodes by test_viz.sh: how long what one does takes.
(() => {
  const lines = [], canvas = () => document.querySelector("#graph canvas");
  const time = (what, most, f) => {
    const begun = performance.now();
    f();
    const ms = Math.round(performance.now() - begun);
    lines.push(`${ms <= most ? "ok" : "not so:"} ${what}: ${ms} ms`);
  };
  const paint = () => draw.paint(canvas(), graph.view);
  const MOST = 4000; // of a machine that does other things as well
  lines.push(`${performance.now() < 2 * MOST ? "ok" : "not so:"} loading and the overview: ${Math.round(performance.now())} ms`);
  const f = page.state.f = model.functions.reduce((a, b) => b.nodes.length > a.nodes.length ? b : a); // not what took longest
  lines.push(`${f.nodes.length >= 10000 ? "ok" : "not so:"} nodes: ${f.nodes.length}`);
  time("the graph, folded", MOST, () => { page.app.show("graph"); paint(); });
  const boxes = [...layers.of(f).root.boxes.values()].sort((a, b) => b.count - a.count);
  for (const box of boxes.slice(0, 3)) {
    time(`unfolding ${box.count} nodes`, MOST, () => { graph.toggle(box); paint(); });
    time("folding them", MOST, () => { graph.toggle(box); paint(); });
  }
  time("unfolding all", MOST, () => { graph.foldAll(true); paint(); });
  time("painting all of it", MOST, () => { graph.fit(); paint(); });
  lines.push(`${graph.view.scene.nodes.length > 8000 ? "ok" : "not so:"} items: ${graph.view.scene.nodes.length}`);
  time("folding all", MOST, () => { graph.foldAll(false); paint(); });
  time("kernels", MOST, () => page.app.show("kernels"));
  time("memory", MOST, () => { page.app.show("memory"); memory.paint(); });
  time("the flame graph", MOST, () => page.app.show("flame"));
  time("search", MOST, () => search.find("dot"));
  document.documentElement.innerHTML = "<body></body>";
  document.body.append(Object.assign(document.createElement("pre"), { textContent: lines.join("\n") }));
})();

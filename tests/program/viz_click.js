// Appended to a page of `deepc --viz` by test_viz.sh: uses it as one does, and writes lines "ok WHAT" and "not so: WHAT" into
// a document of its own. Everything here is synchronous, so that the browser's --dump-dom waits for it.
(() => {
  const lines = [];
  const check = (what, ok) => lines.push((ok ? "ok " : "not so: ") + what);
  const $ = (selector) => document.querySelector(selector);
  const key = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const tab = (name) => $(`#tabs [data-view="${name}"]`).click();

  const clickOn = (it, head) => { // a press on the canvas, where the item is painted
    const canvas = $("#graph canvas"), r = canvas.getBoundingClientRect(), v = graph.view;
    v.x = 300 - it.ax * v.scale;
    v.y = 200 - it.ay * v.scale;
    const at = { clientX: r.left + 300 + it.w * v.scale / 2, clientY: r.top + 200 + (head ? 8 : it.h / 2) * v.scale, pointerId: 1, bubbles: true };
    canvas.dispatchEvent(new PointerEvent("pointerdown", at));
    canvas.dispatchEvent(new PointerEvent("pointerup", at));
  };

  const overviewIsThere = () => {
    check("the overview is first", $("#overview").classList.contains("on"));
    check("it lists the function", $("#overview").textContent.includes("viz_step"));
    check("each typed function has a row", document.querySelectorAll("#overview .card:first-of-type tbody tr").length >= 1);
    check("the roofline has dots", document.querySelectorAll("#overview .roofline .dot").length > 3);
    check("the script's name is text", $("#script").textContent.endsWith("step.lua"));
  };

  const graphFolds = () => {
    tab("graph");
    page.app.show("graph", model.functions.find((o) => o.name === "viz_step"));
    const f = page.state.f, v = graph.view;
    graph.foldAll(false);
    const folded = v.scene.nodes.length, box = v.scene.nodes.find((it) => it.closed && it.of.name.startsWith("net"));
    check("layers are boxes", !!box);
    clickOn(box);
    check("a click unfolds a layer", v.scene.nodes.length > folded);
    const open = v.scene.boxes.find((b) => b.of === box.of);
    check("it is open", !!open && open.of.open);
    clickOn(open, true);
    check("a click on its title folds it", v.scene.nodes.length === folded);
    key($("#graph canvas"), "]");
    const all = v.scene.nodes.filter((it) => it.node).length;
    check("] unfolds all", all > folded && all === v.scene.nodes.length);
    const hidden = v.scene.hiddenCount;
    check("constants and moves are hidden at first", hidden > 0 && all + hidden === f.nodes.length);
    document.querySelectorAll("#graph input[type=checkbox]").forEach((c) => c.click());
    check("and are shown when asked for", v.scene.nodes.length > all);
    return f;
  };

  const nodeIsTold = (f) => {
    const it = graph.view.scene.nodes.find((x) => x.node && x.node.op === "dot");
    clickOn(it);
    const told = $("#details").textContent;
    check("a click on a node shows it", !$("#details").hidden && told.includes("dot") && told.includes(it.node.type));
    check("with its line", told.includes("step.lua:"));
    check("its layer", told.includes("nn.Linear"));
    check("its attributes", told.includes("sums over axis"));
    const k = f.commands[it.node.commands[0]].kernel;
    check("and the kernel that computes it", told.includes(f.kernels[k].name));
    key($("#graph canvas"), "ArrowDown");
    check("an arrow goes to a user", graph.view.selected && it.node.users.length > 0 && graph.view.selected !== it.node);
    const edge = graph.view.scene.edges[0];
    check("edges have values with types", [...edge.values].every((u) => f.nodes[u].type.includes("[")));
  };

  const coloursChange = () => {
    for (const mode of ["kernel", "time", "class", "layer"]) {
      $(`#graph [data-mode="${mode}"]`).click();
      check(`colours by ${mode} have a legend`, graph.view.mode === mode && document.querySelectorAll("#graph .legend .key").length > 1);
      draw.paint($("#graph canvas"), graph.view);
    }
  };

  const kernelIsShown = (f) => {
    tab("kernels");
    const rows = document.querySelectorAll("#kernels tr[data-kernel]");
    check("each kernel has a row", rows.length === f.kernels.length);
    const k = f.kernels[+rows[0].dataset.kernel];
    check("the slowest is first", f.kernels.every((o) => o.ns <= k.ns));
    rows[0].click();
    const pane = (form) => $(`#source [data-form="${form}"] pre`).textContent;
    check("its nest", pane("nest").includes("kernel " + k.name));
    check("its schedule", pane("schedule").length > 0);
    check("its flat form", pane("flat").includes(k.name));
    check("its text", pane("text").length > 100);
    check("the Lua lines beside it", $("#source [data-form=lua]").textContent.includes("step.lua:"));
    $("#source h3 button").click();
    check("its nodes are lit in the graph", page.state.view === "graph" && k.nodes.every((n) => graph.view.lit.has(n)));
    tab("kernels");
    $('#kernels th:nth-child(2) button').click();
    const names = [...document.querySelectorAll("#kernels tr[data-kernel] code")].map((c) => c.textContent);
    check("the table sorts", names.length > 0 && $('#kernels th:nth-child(2)').getAttribute("aria-sort") !== "none");
    check("launches are listed", document.querySelectorAll("#kernels .launches tbody tr").length === f.commands.length);
    const sum = f.kernels.reduce((s, o) => s + o.ns, 0) + f.others.reduce((s, o) => s + o.ns, 0);
    check("kernels and the rest are the time of all commands", Math.abs(sum - f.inside) < 1);
  };

  const boundsAreTold = () => {
    const f = model.functions.find((o) => o.name === "viz_bounded"), rated = (k) => k.gflops > 0 || k.gbs > 0 || k.roof !== null;
    check("kernels with bounded dims have no rate", f.kernels.length > 1 && f.kernels.every((k) => k.ns > 0 && !rated(k)));
    check("what is known as a bound is told as one", /arithmetic≤ /.test($("#overview .tiles").textContent) && !$("#overview .tiles").textContent.includes("on average"));
    tab("kernels");
    page.app.show("kernels", f);
    const rounds = f.commands.filter((c) => c.inside && c.kind === "launch").map((c) => c.runs);
    check("a loop without a limit counts as it ran", rounds.length > 0 && rounds.every((n) => n > 1 && n < 100));
    page.app.show("kernels", model.functions.find((o) => o.name === "viz_step"));
  };

  const linesAreTold = () => {
    tab("lines");
    const rows = [...document.querySelectorAll("#lines tr[data-where]")], hot = rows.filter((r) => r.querySelector(".heat i"));
    check("the script is listed", rows.length === model.data.sources[0].text.trimEnd().split("\n").length);
    check("lines have their time", hot.length >= 2);
    check("text that looks like markup is text", $("#lines").textContent.includes("<\/script><b>") && !$("#lines .code b"));
    hot[0].click();
    check("a click shows kernels and nodes of a line", /Kernels/.test($("#details").textContent) && /Nodes of/.test($("#details").textContent));
    const all = [...model.lines.values()].reduce((s, l) => s + l.ns, 0), inside = model.functions.reduce((s, f) => s + f.inside, 0);
    check("lines have no more than the time of commands", all > 0 && all <= inside * 1.0001);
  };

  const memoryIsDrawn = (f) => {
    tab("memory");
    memory.paint();
    const { sums, peak } = memory.usage(f);
    check("the peak is what the plan needs", sums[peak] > 0 && sums[peak] <= f.arena);
    check("cells are listed", $("#memory").textContent.includes("net.1.weight") && $("#memory").textContent.includes("set in place"));
  };

  const flameAddsUp = () => {
    tab("flame");
    const frames = document.querySelectorAll("#flame .frame");
    const total = model.functions.reduce((s, f) => s + Math.max(f.ns, f.inside), 0);
    check("frames are there", frames.length > 5);
    check("their sum is the time", Math.abs(flame.top.ns - total) < total * 1e-6 + 1);
    const line = $('#flame .frame[data-kind="line"]');
    line.click();
    check("a click on a line tells of it", $("#details h3").textContent.includes("step.lua:"));
  };

  const searchFinds = () => {
    key(document.body, "/");
    check("/ goes to the search", document.activeElement === $("#search"));
    $("#search").value = "net.1.weight";
    $("#search").dispatchEvent(new Event("input"));
    const hits = [...document.querySelectorAll("#found .hit")];
    check("tensors are found", !$("#found").hidden && hits.some((h) => h.textContent.includes("net.1.weight")));
    key($("#search"), "Enter");
    check("Enter goes there", $("#found").hidden && page.state.view === "graph" && $("#details").textContent.includes("net.1.weight"));
    for (const [words, kind] of [["dot", "node"], ["cross_entropy", "line"], ["viz_step", "function"], [model.functions[0].kernels[0].name, "kernel"]])
      check(`${kind}s are found`, (search.find(words).get(kind) || []).length > 0);
    $("#search").value = "no such thing";
    $("#search").dispatchEvent(new Event("input"));
    check("what is not there is not found", $("#found").textContent === "nothing found");
    key($("#search"), "Escape");
  };

  const themeSwitches = () => {
    const before = document.documentElement.dataset.theme, colour = getComputedStyle(document.body).backgroundColor;
    $("#theme").click();
    check("dark and light switch", document.documentElement.dataset.theme !== before && getComputedStyle(document.body).backgroundColor !== colour);
    dispatchEvent(new Event("beforeprint"));
    check("paper is light", document.documentElement.dataset.theme === "light");
    dispatchEvent(new Event("afterprint"));
    check("and the theme is as before", document.documentElement.dataset.theme !== before);
  };

  try {
    overviewIsThere();
    const f = graphFolds();
    nodeIsTold(f);
    coloursChange();
    kernelIsShown(f);
    boundsAreTold();
    linesAreTold();
    memoryIsDrawn(f);
    flameAddsUp();
    searchFinds();
    themeSwitches();
  } catch (e) {
    lines.push("not so: " + e.stack);
  }
  check("nothing was written to the console: " + window.complaints.join("; "), window.complaints.length === 0);
  document.documentElement.innerHTML = "<body></body>";
  document.body.append(Object.assign(document.createElement("pre"), { textContent: lines.join("\n") }));
})();

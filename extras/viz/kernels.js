/* The kernels of a function: table, roofline, their texts beside each other; launches in their order. */
const kernels = (() => {
  const { format, text, data } = model;
  const root = document.getElementById("kernels");
  let app, shown = null, chosen = null, sorted = "ns", up = false;

  const columns = [
    ["#", "id", "n"], ["kernel", "name"], ["time", "ns"], ["calls", "runs", "n"], ["a call", "each", "n"],
    ["GFLOP/s", "gflops", "n"], ["GB/s", "gbs", "n"], ["roofline", "roof", "n"], ["lines", "first"],
  ];

  const valueOf = (k, key) => key === "first" ? k.lineList[0] || "" : k[key] ?? -1;

  const bar = (part, whole, colour) => make("div.bar", {},
    make("i", { style: `width:${whole > 0 ? (100 * part / whole).toFixed(1) : 0}%` + (colour ? `;background:${colour}` : "") }));

  // Lines of the script itself by their numbers.
  const lineLinks = (list) => list.slice(0, 6).flatMap((where, i) => [i > 0 ? " " : "", app.link("line", where, where.replace(/^.*:/, ":"))])
    .concat(list.length > 6 ? ` +${list.length - 6}` : []);

  const share = (f, ns, colour) => make("td.share", {}, bar(ns, f.ns, colour), make("b", {}, format.time(ns)), " ", make("span", {}, format.percent(ns, f.ns)));

  const row = (f, k) => make("tr.pickable", { "data-kernel": k.id, tabindex: 0, "aria-selected": chosen === k,
    onclick: () => app.select({ kind: "kernel", f, kernel: k }),
    onkeydown: (e) => { if (e.key === "Enter") app.select({ kind: "kernel", f, kernel: k }); } },
    make("td.n", {}, String(k.id + 1)),
    make("td", {}, make("i.swatch", { style: `background:${colours.strong(k.id)}` }), make("code", {}, k.name), make("div.muted", {}, k.ops)),
    share(f, k.ns, colours.strong(k.id)),
    make("td.n", {}, format.count(k.runs)),
    make("td.n", {}, k.each >= 0 ? format.time(k.each) : "–"),
    make("td.n", {}, k.gflops > 0 ? format.digits(k.gflops) : "–"),
    make("td.n", {}, k.gbs > 0 ? format.digits(k.gbs) : "–"),
    make("td.n", {}, k.roof !== null ? format.percent(k.roof, 1) : "–"),
    make("td.where", {}, lineLinks(k.lineList)));

  const otherRow = (f, name, about, ns, runs) => make("tr.other", {}, make("td"), make("td", {}, name, make("div.muted", {}, about)),
    share(f, ns), make("td.n", {}, runs ? format.count(runs) : ""), make("td", { colspan: 5 }));

  const abouts = { check: "a test of the data", copy: "copies memory", loop: "the loop itself", branch: "the branch itself",
    host: "computed by the host, or exchanged with other ranks" };

  const table = (f) => {
    const list = [...f.kernels].sort((a, b) => {
      const x = valueOf(a, sorted), y = valueOf(b, sorted), order = typeof x === "string" ? x.localeCompare(y) : y - x;
      return up ? -order : order;
    });
    const head = columns.map(([name, key, cls]) => make("th" + (cls ? "." + cls : ""), { "aria-sort": sorted === key ? (up ? "ascending" : "descending") : "none" },
      make("button.quiet", { onclick: () => { up = sorted === key && !up; sorted = key; render(f, true); } }, name)));
    return make("div.scroll", {}, make("table.kernels", {},
      make("thead", {}, make("tr", {}, head)),
      make("tbody", {}, list.map((k) => row(f, k)), f.others.map((o) => otherRow(f, o.name, abouts[o.kind] || "", o.ns, o.runs)),
        otherRow(f, "between commands", "arguments, results, launching, waiting", f.outside))));
  };

  // ---- texts ----

  const forms = [["nest", "loop nest, as lowered and scheduled"], ["schedule", "schedule: the moves"], ["flat", "flat form"], ["text", "text for the compiler"]];

  const pane = (k, form, about) => {
    const body = k[form] === undefined ? "" : text(k[form]);
    return make("figure.pane", { "data-form": form }, make("figcaption", {}, make("b", {}, form), " ", make("span.muted", {}, about)),
      make("pre", {}, body || (k[form] === undefined ? "Left out: the texts of the kernels that took longest fill the page. f:source gives those of the others." : "none")));
  };

  const source = (f, k) => {
    const lua = make("figure.pane.lua", { "data-form": "lua" }, make("figcaption", {}, make("b", {}, "Lua"), " ", make("span.muted", {}, "lines that it computes")),
      make("div.listing", {}, k.lineList.map((where) => lines.excerpt(where, app))));
    return make("section.source", { id: "source" },
      make("h3", {}, make("i.swatch", { style: `background:${colours.strong(k.id)}` }), make("code", {}, k.name), " ", make("span.muted", {}, k.ops),
        make("button", { onclick: () => app.showKernel(f, k) }, "show its nodes in the graph"),
        make("button.quiet", { "aria-label": "close", onclick: () => { chosen = null; render(f, true); } }, "✕")),
      make("p.muted", {}, [`${format.atMost(k.most, format.flop(k.onceFlops))} and ${format.atMost(k.most, format.bytes(k.onceBytes))} a call`, `${k.nodes.length} nodes`,
        k.gain ? `schedule found by timing, ${format.digits(k.gain)} times as fast as the rules'` : ""].filter((s) => s).join(" · ")),
      make("div.panes", {}, forms.map(([form, about]) => pane(k, form, about)), lua));
  };

  // ---- launches ----

  const launches = (f) => {
    const ends = [], rows = [];
    f.commands.forEach((c, i) => {
      while (ends.length > 0 && ends[ends.length - 1] < i) ends.pop();
      const indent = ends.length;
      const inside = (c.body || 0) + (c.otherwise || 0);
      if (inside > 0) ends.push(i + inside);
      const list = (texts) => texts.slice(0, 6).join(", ") + (texts.length > 6 ? `, … ${texts.length - 6} more` : "");
      rows.push(make("tr" + (c.kernel !== undefined ? ".pickable" : ""), { onclick: c.kernel === undefined ? null :
        () => app.select({ kind: "kernel", f, kernel: f.kernels[c.kernel] }) },
        make("td.n", {}, String(i)),
        make("td", { style: `padding-left:${8 + 18 * indent}px` }, c.kernel !== undefined ? make("i.swatch", { style: `background:${colours.strong(c.kernel)}` }) : null,
          make("code", {}, c.label || c.kind), c.prologue ? make("span.tag", {}, "prologue") : null,
          c.kind === "bundle" ? make("span.muted", {}, ` ${c.body} launches at once`) : c.kind === "loop" ? make("span.muted", {}, ` ${c.grid} iterations at most`) : null),
        make("td", {}, make("code", {}, list(c.writes)), c.reads.length > 0 ? " ← " : "", make("code.muted", {}, list(c.reads))),
        make("td.n", {}, c.kind === "bundle" ? "" : format.time(c.ns)),
        make("td", {}, lineLinks(c.lines))));
    });
    return make("details.launches", {}, make("summary", {}, `Launches in their order (${f.commands.length} commands)`),
      make("div.scroll", {}, make("table", {}, make("thead", {}, make("tr", {}, ["#", "command", "writes ← reads", "time", "lines"].map((h) => make("th", {}, h)))),
        make("tbody", {}, rows))));
  };

  const render = (f, again) => {
    if (shown === f && !again) return;
    if (shown !== f && chosen && !f.kernels.includes(chosen)) chosen = null;
    shown = f;
    const click = (d) => app.select({ kind: "kernel", f, kernel: d.kernel });
    root.replaceChildren(
      make("h2", {}, app.heading(f)),
      f.interpreted ? make("p.note", {}, "This function ran on the reference interpreter: it has no kernels.") : "",
      f.kernels.length > 0 ? make("div.split", {}, make("div.card.wide", {}, table(f)),
        make("div.card", {}, make("h3", {}, "Roofline"), roofline.plot(f.kernels.map((kernel) => ({ kernel })), click),
          make("p.muted", {}, "A dot is a kernel, as large as its share of the time. ",
            data.peak ? "The roof is the best that this machine did: a product of 1024 × 1024 or any kernel here, and adding 1 to 32 MiB. What is read from caches may be above it." : ""))) : "",
      chosen ? source(f, chosen) : f.kernels.length > 0 ? make("p.hint", {}, "Choose a kernel to see its loops, its schedule and its code.") : "",
      f.commands.length > 0 ? launches(f) : "");
  };

  const choose = (f, k) => {
    chosen = k;
    if (root.classList.contains("on")) {
      render(f, true);
      document.getElementById("source")?.scrollIntoView({ block: "start", behavior: "instant" });
    } else shown = null;
  };

  return { start: (controller) => { app = controller; }, render, choose, bar };
})();

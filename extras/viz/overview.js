/* The whole on one page, which is also what is printed. */
const overview = (() => {
  const { format, data, functions } = model;
  const root = document.getElementById("overview");
  let app, done = false;

  const functionRow = (f) => make("tr.pickable", { tabindex: 0, onclick: () => app.select({ kind: "function", f }), ondblclick: () => app.show("graph", f),
    onkeydown: (e) => { if (e.key === "Enter") app.select({ kind: "function", f }); } },
    make("td", {}, make("b", {}, f.title), f.interpreted ? make("span.tag", {}, "interpreter") : null, make("div.muted.sig", {}, make("code", {}, f.signature))),
    make("td", {}, f.where ? app.link("line", f.where) : ""),
    make("td.n", {}, format.count(f.calls)), make("td.n", {}, format.time(f.ns)),
    make("td.share", {}, kernels.bar(f.ns, model.total), make("span", {}, format.percent(f.ns, model.total))),
    make("td.n", {}, format.time(f.ns / Math.max(1, f.calls))), make("td.n", {}, f.interpreted ? "–" : String(f.launches)),
    make("td.n", {}, String(f.nodes.length)), make("td.n", {}, f.interpreted ? "–" : format.bytes(f.arena)));

  // Those that took next to nothing are folded.
  const functionRows = () => {
    const few = functions.filter((f, i) => i < 3 || f.ns > model.total / 200), rest = functions.slice(few.length);
    const body = make("tbody", {}, few.map(functionRow));
    if (rest.length > 0)
      body.append(make("tr.other.more", {}, make("td", { colspan: 9 }, make("button.link", { onclick: (e) => {
        e.target.closest("tr").remove();
        body.append(...rest.map(functionRow));
      } }, `${rest.length} more`), ` that took ${format.time(rest.reduce((sum, f) => sum + f.ns, 0))} in all`)));
    return body;
  };

  const functionTable = () => make("div.card.scroll", {}, make("h3", {}, "Typed functions"), make("table", {},
    make("thead", {}, make("tr", {}, ["function", "line", "calls", "time", "share", "a call", "launches", "nodes", "temporaries"].map((h, i) =>
      make("th" + (i > 1 && i !== 4 ? ".n" : ""), {}, h)))), functionRows()));

  const allKernels = functions.flatMap((f) => f.kernels.map((kernel) => ({ f, kernel }))).sort((a, b) => b.kernel.ns - a.kernel.ns);

  const kernelRow = ({ f, kernel: k }) => make("tr.pickable", { onclick: () => app.select({ kind: "kernel", f, kernel: k }) },
    make("td", {}, make("i.swatch", { style: `background:${colours.strong(k.id)}` }), make("code", {}, k.name), make("div.muted", {}, k.ops)),
    make("td", {}, f.title), make("td.n", {}, format.time(k.ns)),
    make("td.share", {}, kernels.bar(k.ns, model.total, colours.strong(k.id)), make("span", {}, format.percent(k.ns, model.total))),
    make("td.n", {}, k.gflops > 0 ? format.digits(k.gflops) : "–"), make("td.n", {}, k.gbs > 0 ? format.digits(k.gbs) : "–"),
    make("td.n", {}, k.roof !== null ? format.percent(k.roof, 1) : "–"));

  const kernelTable = () => make("div.card.scroll.wide", {}, make("h3", {}, "Kernels that took longest"), make("table", {},
    make("thead", {}, make("tr", {}, ["kernel", "function", "time", "share", "GFLOP/s", "GB/s", "roofline"].map((h, i) => make("th" + (i > 1 && i !== 3 ? ".n" : ""), {}, h)))),
    make("tbody", {}, allKernels.slice(0, 12).map(kernelRow))));

  const lineTable = () => {
    const list = [...model.lines.values()].filter((l) => l.ns > 0).sort((a, b) => b.ns - a.ns).slice(0, 12);
    if (list.length === 0) return "";
    return make("div.card.scroll", {}, make("h3", {}, "Lines that took longest"), make("table", {}, make("tbody", {}, list.map((l) =>
      make("tr.pickable", { onclick: () => { app.show("lines"); app.select({ kind: "line", where: l.where }); } },
        make("td.share", {}, kernels.bar(l.ns, model.total), make("span", {}, format.percent(l.ns, model.total))), make("td.n", {}, format.time(l.ns)),
        make("td", {}, make("code.muted", {}, l.where.replace(/^.*\//, ""))), make("td.code", {}, make("code", {}, lines.colour(lines.textOf(l.where).trim()))))))));
  };

  const tiles = () => {
    const calls = functions.reduce((sum, f) => sum + f.calls, 0), inside = functions.reduce((sum, f) => sum + f.inside, 0);
    const flops = functions.reduce((sum, f) => sum + f.allFlops, 0), most = functions.some((f) => f.most);
    return make("div.tiles", {},
      tile("time in functions", format.time(model.total), `of ${functions.length} executable${functions.length === 1 ? "" : "s"}, ${format.count(calls)} call${calls === 1 ? "" : "s"}` + (data.seconds > 0 ? `; the script took ${data.seconds} s` : "")),
      tile("in kernels and copies", format.percent(inside, model.total), format.time(inside)),
      tile("arithmetic", format.atMost(most, format.flop(flops)), inside > 0 && !most ? `${format.digits(flops / inside)} GFLOP/s on average` : ""),
      tile("device", data.device, data.cpu || ""),
      data.peak ? tile("measured peak", `${format.digits(data.peak.gflops)} GFLOP/s`, `${format.digits(data.peak.gbs)} GB/s`) : "");
  };

  const render = () => {
    if (done) return;
    done = true;
    root.append(
      make("h1", {}, data.script || "deepc"),
      make("p.muted", {}, [data.command && data.command !== data.script ? data.command : "", data.date, data.version ? "deepc " + data.version : "",
        data.rank > 0 ? "rank " + data.rank : ""].filter((s) => s).join(" · ")),
      data.error ? make("pre.error", {}, "The script failed. What follows is what it had computed.\n\n" + data.error) : "",
      functions.length === 0 ? make("p.note", {}, "No typed function was called.") : "",
      tiles(), functions.length > 0 ? functionTable() : "",
      allKernels.length > 0 ? make("div.split", {}, kernelTable(), make("div.card", {}, make("h3", {}, "Roofline"),
        roofline.plot(allKernels, (d) => { app.show("kernels", d.f); app.select({ kind: "kernel", f: d.f, kernel: d.kernel }); }))) : "",
      lineTable());
  };

  return { start: (controller) => { app = controller; }, render };
})();

/* The script with the time of each line. */
const lines = (() => {
  const { format, data } = model;
  const root = document.getElementById("lines");
  let app, file = 0, done = null;

  const WORDS = new Set(("and break do else elseif end false for function goto if in local nil not or repeat return then true " +
    "until while").split(" "));
  const TOKEN = /(--\[(=*)\[[\s\S]*?\]\2\]|--[^\n]*)|("(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'|\[(=*)\[[\s\S]*?\]\4\])|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;

  // A line of Lua with colours; what goes over several lines is coloured in its first one alone.
  const colour = (s) => {
    const out = [];
    let at = 0;
    for (const m of s.matchAll(TOKEN)) {
      const kind = m[1] ? "comment" : m[3] ? "string" : m[5] ? "number" : WORDS.has(m[6]) ? "word" : null;
      if (!kind) continue;
      out.push(s.slice(at, m.index), make("span." + kind, {}, m[0]));
      at = m.index + m[0].length;
    }
    out.push(s.slice(at));
    return out;
  };

  const sources = data.sources.map((s) => ({ name: s.name, text: s.text.split(/\r?\n/) }));
  const sourceOf = (name) => sources.find((s) => s.name === name);
  const textOf = (where) => {
    const at = where.lastIndexOf(":"), s = sourceOf(where.slice(0, at));
    return s ? s.text[+where.slice(at + 1) - 1] ?? "" : "";
  };

  // One line for a pane: its place and its text.
  const excerpt = (where, controller) => make("div.excerpt", {}, controller.link("line", where), make("code", {}, colour(textOf(where).trim())));

  const hottest = () => Math.max(1, ...[...model.lines.values()].map((l) => l.ns));

  const row = (source, i, most) => {
    const where = `${source.name}:${i + 1}`, line = model.lines.get(where), ns = line ? line.ns : 0;
    const kernels = line ? new Set([...line.commands].filter((c) => c.kernel !== undefined).map((c) => c.f.id + " " + c.kernel)).size : 0;
    return make("tr" + (line ? ".pickable" : ""), { "data-where": where, tabindex: line ? 0 : null,
      onclick: line ? () => app.select({ kind: "line", where }) : null,
      onkeydown: (e) => { if (line && e.key === "Enter") app.select({ kind: "line", where }); } },
      make("td.heat", { title: ns > 0 ? format.percent(ns, model.total) : null }, ns > 0 ? make("i", { style: `width:${Math.max(2, 100 * ns / most)}%` }) : null),
      make("td.n", {}, ns > 0 ? format.time(ns) : ""), make("td.n.minor", {}, line && line.flops > 0 ? format.atMost(line.most, format.count(line.flops)) : ""),
      make("td.n.minor", {}, line && line.bytes > 0 ? format.atMost(line.most, format.bytes(line.bytes)) : ""), make("td.n.minor", {}, kernels || ""),
      make("td.no", {}, String(i + 1)), make("td.code", {}, make("code", {}, colour(source.text[i]))));
  };

  const table = (source) => {
    const most = hottest();
    return make("table.listing", {}, make("thead", {}, make("tr", {}, ["", "time", "FLOP", "bytes", "kernels", "", ""].map((h, i) =>
      make("th" + (i > 0 && i < 5 ? ".n" : "") + (i > 1 && i < 5 ? ".minor" : ""), {}, h)))),
      make("tbody", {}, source.text.map((_, i) => i + 1 === source.text.length && !source.text[i] ? null : row(source, i, most))));
  };

  // Lines whose file could not be read.
  const unread = () => [...model.lines.values()].filter((l) => !sourceOf(l.file) && l.ns > 0).sort((a, b) => b.ns - a.ns);

  const render = () => {
    if (done === file) return;
    done = file;
    const other = unread();
    root.replaceChildren(
      make("h2", {}, "Lines of the script"),
      make("p.muted", {}, "What a line took is the time of the nodes that it made, forward and backward. A kernel's time is shared among " +
        "its nodes by an estimate of their arithmetic; where they only move data, and among the lines of a node, equally. FLOP and bytes are shared alike."),
      sources.length > 1 ? make("div.files", {}, sources.map((s, i) => make("button", { "aria-pressed": i === file,
        onclick: () => { file = i; render(); } }, s.name))) : "",
      hottestLinks(),
      sources.length > 0 ? make("div.card.scroll", {}, table(sources[file])) : make("p.note", {}, "The source of the script could not be read."),
      other.length > 0 ? make("div.card", {}, make("h3", {}, "Lines of other files"), make("table", {}, other.map((l) =>
        make("tr.pickable", { onclick: () => app.select({ kind: "line", where: l.where }) }, make("td", {}, make("code", {}, l.where)),
          make("td.n", {}, format.time(l.ns)), make("td.n", {}, format.percent(l.ns, model.total)))))) : "");
  };

  const hottestLinks = () => {
    const list = [...model.lines.values()].filter((l) => l.ns > 0 && sourceOf(l.file)).sort((a, b) => b.ns - a.ns).slice(0, 6);
    return list.length === 0 ? "" : make("div.tools", {}, make("span.label", {}, "took longest"), list.map((l) =>
      make("button", { onclick: () => app.select({ kind: "line", where: l.where }) }, make("code", {}, l.where.replace(/^.*\//, "")), " ", make("span.muted", {}, format.percent(l.ns, model.total)))));
  };

  const goTo = (where) => {
    const at = where.lastIndexOf(":"), i = sources.findIndex((s) => s.name === where.slice(0, at));
    if (i >= 0) { file = i; render(); }
    root.querySelectorAll("tr.chosen").forEach((r) => r.classList.remove("chosen"));
    const found = root.querySelector(`tr[data-where="${CSS.escape(where)}"]`);
    if (found) { found.classList.add("chosen"); found.scrollIntoView({ block: "center" }); }
  };

  return { start: (controller) => { app = controller; }, render, goTo, excerpt, textOf, colour, sources };
})();

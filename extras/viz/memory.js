/* The arena of temporaries over the commands of a call; what lies elsewhere as tables. */
const memory = (() => {
  const { format } = model;
  const root = document.getElementById("memory");
  const LEFT = 70, TOP = 16, BOTTOM = 34, RIGHT = 14;
  let app, shown = null, canvas = null, picked = null;

  // Bytes in use at each command, of temporaries that lie in no other one.
  const usage = (f) => {
    const sums = new Float64Array(f.commands.length + 1);
    for (const t of f.temps) {
      if (t.inner || t.first > f.commands.length) continue;
      sums[t.first] += t.bytes;
      if (t.last + 1 < sums.length) sums[t.last + 1] -= t.bytes;
    }
    for (let i = 1; i < sums.length; i++) sums[i] += sums[i - 1];
    let peak = 0;
    for (let i = 0; i < f.commands.length; i++) if (sums[i] > sums[peak]) peak = i;
    return { sums, peak };
  };

  const scales = (f) => {
    const w = canvas.clientWidth - LEFT - RIGHT, h = canvas.clientHeight - TOP - BOTTOM, n = Math.max(1, f.commands.length);
    const whole = Math.max(f.arena, ...f.temps.map((t) => t.offset + t.bytes), 1);
    return { x: (i) => LEFT + i * w / n, y: (b) => TOP + h - b / whole * h, w, h, n, whole };
  };

  const colourOf = (f, t) => t.node === undefined ? 0 : Math.max(0, draw.layerKey(layers.of(f), layers.of(f).home[t.node]));

  const paint = () => {
    const f = shown;
    if (!canvas || !f || canvas.clientWidth === 0) return;
    const ratio = window.devicePixelRatio || 1, pen = canvas.getContext("2d"), s = scales(f), { peak, sums } = usage(f);
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = scene.SMALL;
    pen.fillStyle = colours.css("muted");
    pen.strokeStyle = colours.css("line");
    pen.textAlign = "right";
    for (let k = 0; k <= 4; k++) {
      const y = s.y(s.whole * k / 4);
      pen.beginPath();
      pen.moveTo(LEFT, y);
      pen.lineTo(LEFT + s.w, y);
      pen.stroke();
      pen.fillText(format.bytes(Math.round(s.whole * k / 4)), LEFT - 8, y + 4);
    }
    pen.textAlign = "center";
    const every = Math.max(1, Math.ceil(s.n / 12));
    for (let i = 0; i < s.n; i += every) pen.fillText(String(i), s.x(i + 0.5), TOP + s.h + 15);
    pen.fillText("command", LEFT + s.w / 2, TOP + s.h + 30);
    for (const t of f.temps) {
      const x = s.x(t.first), y = s.y(t.offset + t.bytes), w = Math.max(1, s.x(t.last + 1) - x), h = Math.max(1, s.y(t.offset) - y);
      const key = colourOf(f, t);
      pen.globalAlpha = t.inner ? 0.55 : 1;
      pen.fillStyle = t === picked ? colours.css("accent") : colours.of(key);
      pen.fillRect(x, y, w, h);
      pen.strokeStyle = t === picked ? colours.css("accent") : colours.strong(key);
      pen.lineWidth = t === picked ? 2 : w > 3 && h > 3 ? 0.8 : 0.2;
      pen.strokeRect(x, y, w, h);
      const node = t.node === undefined ? null : f.nodes[t.node];
      const name = node ? `${node.op} ${node.type}` : "";
      if (name && h > 13 && w > 40 && scene.widthOf(scene.SMALL, name) < w - 6) {
        pen.fillStyle = t === picked ? colours.css("panel") : colours.css("text");
        pen.fillText(name, x + w / 2, y + h / 2 + 4);
      }
      pen.globalAlpha = 1;
    }
    if (f.temps.length > 0) {
      const x = s.x(peak + 0.5), label = `peak ${format.bytes(sums[peak])} at command ${peak}`;
      pen.strokeStyle = pen.fillStyle = colours.css("hot");
      pen.lineWidth = 1.5;
      pen.setLineDash([5, 4]);
      pen.beginPath();
      pen.moveTo(x, TOP - 4);
      pen.lineTo(x, TOP + s.h);
      pen.stroke();
      pen.setLineDash([]);
      pen.textAlign = x > LEFT + s.w * 0.7 ? "right" : "left";
      pen.fillText(label, x + (pen.textAlign === "right" ? -6 : 6), TOP + 4);
    }
  };

  const at = (e) => {
    const r = canvas.getBoundingClientRect(), f = shown, s = scales(f);
    const i = Math.floor((e.clientX - r.left - LEFT) / s.w * s.n), b = (TOP + s.h - (e.clientY - r.top)) / s.h * s.whole;
    const hits = f.temps.filter((t) => i >= t.first && i <= t.last && b >= t.offset && b <= t.offset + t.bytes);
    return hits.sort((a, c) => a.bytes - c.bytes)[0];
  };

  const hover = (e) => {
    const t = at(e);
    if (!t) { tip.hide(); return; }
    const n = t.node === undefined ? null : shown.nodes[t.node];
    tip.show(e, make("b", {}, n ? `${n.op} ${n.type}` : "a temporary"), make("div", {}, `${format.bytes(t.bytes)} at +${t.offset}, commands ${t.first} to ${t.last}`),
      n ? make("div", {}, [model.wheresOf(n).join(" "), n.origins.find((o) => o.path)?.path].filter((x) => x).join(" · ")) : "");
  };

  const pick = (e) => {
    const t = at(e);
    picked = t || null;
    paint();
    if (t && t.node !== undefined) app.select({ kind: "node", f: shown, node: shown.nodes[t.node] });
  };

  const tableOf = (title, list, more) => list.length === 0 ? "" : make("div.card", {}, make("h3", {}, `${title} `, make("span.muted", {}, format.bytes(list.reduce((sum, p) => sum + p.bytes, 0)))),
    make("div.scroll.low", {}, make("table", {}, list.map((p) => make("tr", {}, make("td", {}, make("code", {}, p.name || p.op || "–")), make("td", {}, make("code.muted", {}, p.type)),
      make("td.n", {}, p.bytes !== undefined ? format.bytes(p.bytes) : ""), more ? make("td.muted", {}, more(p)) : null)))));

  const render = (f) => {
    if (shown === f) { paint(); return; }
    shown = f;
    picked = null;
    const { sums, peak } = usage(f), of = (role) => f.parameters.filter((p) => p.role === role);
    const cells = of("cell"), bytes = (list) => list.reduce((sum, p) => sum + p.bytes, 0);
    canvas = make("canvas.memory", { onmousemove: hover, onmouseleave: tip.hide, onclick: pick });
    root.replaceChildren(
      make("h2", {}, app.heading(f)),
      make("div.tiles", {}, tile("temporaries", format.bytes(f.arena), f.temps.length > 0 ? `${format.bytes(sums[peak])} in use at once, at command ${peak}` : "none"),
        tile("cells", format.bytes(bytes(cells)), `${cells.length} parameters and states, ${cells.filter((c) => c.set === "in place").length} set in place`),
        tile("arguments", format.bytes(bytes(of("argument"))), `${of("argument").length}`), tile("results", format.bytes(bytes(f.results)), `${f.results.length}`),
        f.derived_bytes > 0 ? tile("derived", format.bytes(f.derived_bytes), "kept from call to call") : ""),
      f.temps.length > 0 ? make("div.card", {}, canvas, make("p.muted", {}, "A rectangle is a temporary: when it is alive, and where it lies in the arena. Its colour is its layer; click on one to look at what it holds.")) :
        make("p.note", {}, "This function has no temporaries."),
      make("div.columns", {}, tableOf("Arguments", of("argument")), tableOf("Captured tensors", of("captured")),
        tableOf("Cells", cells, (c) => c.set === undefined ? "read" : c.set === "in place" ? "set in place" : "set by a copy: " + c.set),
        tableOf("Results", f.results.map((r, i) => ({ ...r, name: r.printed ? "printed" : `result ${i + 1}` }))),
        f.derived.length > 0 ? make("div.card", {}, make("h3", {}, "Derived values"), make("table", {}, f.derived.map((d) => make("tr", {}, make("td", {}, make("code", {}, d.op)),
          make("td", {}, make("code.muted", {}, d.type)), make("td", {}, d.where ? app.link("line", d.where) : ""))))) : ""));
    requestAnimationFrame(paint);
  };

  const start = (controller) => {
    app = controller;
    new ResizeObserver(paint).observe(root);
  };

  return { start, render, paint, usage };
})();

const tile = (name, value, about) => make("div.tile", {}, make("span.muted", {}, name), make("b", {}, value), make("span.muted", {}, about || ""));

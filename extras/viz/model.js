/* The data as objects: functions with nodes, commands and kernels; whose time goes to which node and line. */
"use strict";

const model = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const text = (i) => data.strings[i];

  // ---- numbers as people read them ----

  const digits = (v, n = 3) => {
    if (!isFinite(v)) return "–";
    if (v === 0) return "0";
    const places = Math.max(0, n - 1 - Math.floor(Math.log10(Math.abs(v))));
    return v.toFixed(Math.min(places, 6));
  };
  const scaled = (v, units, step) => {
    let i = 0;
    while (i < units.length - 1 && Math.abs(v) >= step) { v /= step; i++; }
    return (i === 0 && Number.isInteger(v) ? String(v) : digits(v)) + " " + units[i];
  };
  const time = (ns) => ns === 0 ? "0" : scaled(ns / 1e3, ["µs", "ms", "s"], 1000);
  const bytes = (n) => scaled(n, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
  const count = (n) => scaled(n, ["", "K", "M", "G", "T", "P"], 1000).trim();
  const flop = (n) => scaled(n, ["FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"], 1000);
  const percent = (part, whole) => whole <= 0 ? "–" : part > 0 && part < whole / 1000 ? "< 0.1 %" :
    digits(100 * part / whole, part >= whole ? 3 : 2) + " %";

  const atMost = (most, text) => (most ? "≤ " : "") + text;

  // ---- nodes ----

  const readNode = (row, id) => {
    const origins = [];
    for (let i = 0; i < row[6].length; i += 2)
      origins.push({ where: text(row[6][i]), path: text(row[6][i + 1]) });
    return {
      id, op: text(row[0]), cls: text(row[1]), type: text(row[2]), part: row[3], ins: row[4],
      attributes: text(row[5]), origins, label: text(row[7]), role: text(row[8]), home: row[9],
      bytes: row[10], work: row[11], users: [], commands: [], results: [], ns: 0,
    };
  };

  const addResults = (f) => {
    f.parts.forEach((part, p) => {
      part.results.forEach((r, i) => {
        const cell = r.cell === undefined ? null : f.parameters[f.parameters.length - f.ncell + r.cell];
        const what = r.role === "set" && cell ? "sets " + cell.name :
          r.role === "printed" ? "printed" : r.role === "result" && p === f.main ? "result " + (i + 1) : part.kind === "prologue" ? "derived " + (i + 1) : r.role === "check" ? "check" : r.role;
        if (f.nodes[r.node]) f.nodes[r.node].results.push({ role: r.role, what, cell });
      });
    });
  };

  // ---- time ----

  // A command's time is that of its nodes, in proportion to their arithmetic; equally, where they only move data.
  const shareTime = (f) => {
    f.commands.forEach((c, i) => {
      c.id = i;
      c.lines = c.lines.map(text);
      c.reads = c.reads.map(text);
      c.writes = c.writes.map(text);
      const whole = c.nodes.reduce((sum, n) => sum + f.nodes[n].work, 0);
      c.shares = c.nodes.map((n) => whole > 0 ? f.nodes[n].work / whole : 1 / c.nodes.length);
      c.nodes.forEach((n, k) => {
        f.nodes[n].commands.push(i);
        f.nodes[n].ns += c.ns * c.shares[k];
      });
      c.most = !!c.bounded; // FLOP and bytes are those of the largest sizes
      c.allFlops = c.flops * c.runs;
      c.allBytes = c.bytes * c.runs;
    });
  };

  // What a kernel does, in the operations that cost most: "dot · add · maximum".
  const describe = (f, nodes) => {
    const ops = new Map();
    for (const n of nodes) {
      const node = f.nodes[n];
      if (node.work > 0) ops.set(node.op, (ops.get(node.op) || 0) + node.work);
    }
    if (ops.size === 0)
      for (const n of nodes) if (f.nodes[n].op !== "const") ops.set(f.nodes[n].op, 1);
    const list = [...ops].sort((a, b) => b[1] - a[1]).map((x) => x[0]);
    return list.slice(0, 4).join(" · ") + (list.length > 4 ? " …" : "");
  };

  const fillKernels = (f) => {
    f.kernels.forEach((k, i) => {
      k.id = i;
      k.commands = f.commands.filter((c) => c.kernel === i);
      k.nodes = [...new Set(k.commands.flatMap((c) => c.nodes))];
      k.ns = k.commands.reduce((sum, c) => sum + c.ns, 0);
      k.runs = k.commands.reduce((sum, c) => sum + c.runs, 0);
      k.most = k.commands.some((c) => c.most);
      k.each = k.runs > 0 ? k.ns / k.runs : -1;
      k.allFlops = k.commands.reduce((sum, c) => sum + c.allFlops, 0);
      k.allBytes = k.commands.reduce((sum, c) => sum + c.allBytes, 0);
      k.gflops = k.ns > 0 && !k.most ? k.allFlops / k.ns : 0;
      k.gbs = k.ns > 0 && !k.most ? k.allBytes / k.ns : 0;
      k.intensity = k.allBytes > 0 && !k.most ? k.allFlops / k.allBytes : 0;
      k.onceFlops = k.most ? Math.max(...k.commands.map((c) => c.flops)) : k.runs > 0 ? k.allFlops / k.runs : k.flops;
      k.onceBytes = k.most ? Math.max(...k.commands.map((c) => c.bytes)) : k.runs > 0 ? k.allBytes / k.runs : k.bytes;
      k.ops = describe(f, k.nodes);
      k.lineList = [...new Set(k.commands.flatMap((c) => c.lines))];
    });
  };

  // Commands that are no kernels, by their kind.
  const fillOthers = (f) => {
    const rows = new Map();
    for (const c of f.commands) {
      if (c.kernel !== undefined || c.kind === "bundle") continue;
      const name = c.label && c.label !== c.kind ? c.label : c.kind;
      const row = rows.get(name) || { name, kind: c.kind, ns: 0, runs: 0, commands: [] };
      row.ns += c.ns;
      row.runs += c.runs;
      row.commands.push(c);
      rows.set(name, row);
    }
    f.others = [...rows.values()].sort((a, b) => b.ns - a.ns);
  };

  const words = { lazy: "outside typed functions" };

  const readFunction = (f, id) => {
    f.id = id;
    f.nodes = f.nodes.map(readNode);
    f.ncell = f.parameters.filter((p) => p.role === "cell").length;
    f.main = Math.max(0, f.parts.findIndex((p) => p.kind === "call"));
    for (const n of f.nodes) for (const i of n.ins) f.nodes[i].users.push(n.id);
    addResults(f);
    shareTime(f);
    fillKernels(f);
    fillOthers(f);
    f.inside = f.commands.reduce((sum, c) => sum + c.ns, 0);
    f.outside = Math.max(0, f.ns - f.inside);
    f.allFlops = f.commands.reduce((sum, c) => sum + c.allFlops, 0);
    f.allBytes = f.commands.reduce((sum, c) => sum + c.allBytes, 0);
    f.most = f.commands.some((c) => c.most && c.flops + c.bytes > 0);
    f.title = f.lazy ? words.lazy : f.name;
    const args = f.parameters.filter((p) => p.role === "argument");
    f.signature = "(" + args.slice(0, 6).map((p) => (p.name ? p.name + ": " : "") + p.type).join(", ") +
      (args.length > 6 ? ", …" : "") + ") → " + (f.results.filter((r) => !r.printed).map((r) => r.type).join(", ") || "nothing");
  };

  data.functions.forEach(readFunction);
  data.functions.sort((a, b) => b.ns - a.ns).forEach((f, i) => { f.id = i; });

  // ---- lines ----

  // "train.lua:15": what its nodes and commands took, in all functions.
  const lines = new Map();
  const lineOf = (where) => {
    let line = lines.get(where);
    if (!line) {
      const at = where.lastIndexOf(":");
      line = { where, file: where.slice(0, at), number: +where.slice(at + 1), ns: 0, flops: 0, bytes: 0, most: false,
        nodes: [], commands: new Set() };
      lines.set(where, line);
    }
    return line;
  };

  // Equal parts for the lines of a node: it was made at each of them.
  const wheresOf = (node) => [...new Set(node.origins.map((o) => o.where).filter((w) => w))];

  const addToLines = (wheres, c, share) => {
    for (const where of wheres) {
      const line = lineOf(where);
      line.ns += c.ns * share / wheres.length;
      line.flops += c.allFlops * share / wheres.length;
      line.bytes += c.allBytes * share / wheres.length;
      line.most = line.most || c.most && c.flops + c.bytes > 0;
      line.commands.add(c);
    }
  };

  const countLines = (f) => {
    for (const n of f.nodes) for (const where of wheresOf(n)) lineOf(where).nodes.push({ f, n });
    for (const c of f.commands) {
      c.f = f;
      let rest = 1;
      c.nodes.forEach((id, k) => {
        const wheres = wheresOf(f.nodes[id]);
        if (wheres.length === 0 || c.shares[k] === 0) return;
        addToLines(wheres, c, c.shares[k]);
        rest -= c.shares[k];
      });
      if (rest > 1e-9 && c.lines.length > 0) addToLines(c.lines, c, rest);
    }
  };
  data.functions.forEach(countLines);

  // The machine does no less than what a kernel has done, whatever else it was busy with when it was measured.
  if (data.peak)
    for (const f of data.functions)
      for (const k of f.kernels) if (k.ns > f.ns / 100 && k.runs > 2) data.peak.gflops = Math.max(data.peak.gflops, k.gflops);
  for (const f of data.functions)
    for (const k of f.kernels) {
      const roof = data.peak ? Math.min(data.peak.gflops, k.intensity * data.peak.gbs) : 0;
      k.roof = !data.peak || k.ns === 0 || k.most ? null : k.allFlops > 0 ? k.gflops / roof : k.gbs / data.peak.gbs;
    }

  const total = data.functions.reduce((sum, f) => sum + f.ns, 0);
  return { data, text, lines, total, functions: data.functions, wheresOf,
    format: { time, bytes, count, flop, percent, digits, atMost } };
})();

// ---- elements ----

// make("td", { class: "n", onclick: f }, "text", element, ...)
const make = (name, attributes = {}, ...children) => {
  const [tag, ...classes] = name.split(".");
  const e = document.createElement(tag || "div");
  if (classes.length > 0) e.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key === "style") e.style.cssText = value;
    else if (value === true && !key.startsWith("aria-")) e.setAttribute(key, "");
    else e.setAttribute(key, value);
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return e;
};

const svg = (name, attributes = {}, ...children) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value);
  e.append(...children.flat());
  return e;
};

const tip = (() => {
  const box = document.getElementById("tip");
  const hide = () => { box.hidden = true; };
  const show = (event, ...content) => {
    box.replaceChildren(...content);
    box.hidden = false;
    const r = box.getBoundingClientRect();
    box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - r.width - 8)) + "px";
    box.style.top = Math.max(4, Math.min(event.clientY + 16, innerHeight - r.height - 8)) + "px";
  };
  return { show, hide };
})();

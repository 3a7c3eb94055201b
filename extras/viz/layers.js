/*
 * The nodes of a function as nested boxes: parts (prologue, bodies of loops), layers by the paths that nodes carry, and lines
 * for what is in no layer. A layer that data leaves and comes back to is a box for each time: its gradient is the second one.
 */
const layers = (() => {
  const MANY = {};

  const newBox = (key, name, kind, parent) =>
    ({ key, name, kind, parent, detail: "", boxes: new Map(), nodes: [], open: false, ns: 0, count: 0, depth: 0 });

  // "net.2 (nn.Linear 784 -> 10)": the names on the way, and what the last one is.
  const readPath = (path) => {
    const at = path.indexOf(" (");
    const names = (at < 0 ? path : path.slice(0, at)).split(".");
    return { names, detail: at < 0 ? "" : path.slice(at + 2).replace(/\)$/, "").replace("->", "→") };
  };

  const isSource = (n) => n.cls === "input" || n.op === "const" || n.op === "iota";

  const pathOf = (n) => n.origins.find((o) => o.path)?.path || "";
  const whereOf = (n) => n.origins.find((o) => o.where)?.where || "";

  // The layer of the script that a node is in, or its line; "" where nothing is known.
  const topOf = (n) => {
    const path = pathOf(n);
    return path ? readPath(path).names[0] : whereOf(n) ? "@" + whereOf(n) : "";
  };

  // How often data had left the layer of a node before it came there, and one more.
  const countPasses = (f) => {
    const tops = [], number = new Map();
    for (const n of f.nodes) // what compilation made anew is where what it reads is
      tops.push(isSource(n) ? "" : topOf(n) || tops[n.ins.find((u) => tops[u])] || "");
    for (const t of tops) if (t && !number.has(t)) number.set(t, number.size);
    const width = number.size, pass = new Int32Array(f.nodes.length).fill(1);
    if (width * f.nodes.length > 4e7) return pass;
    const seen = new Uint16Array(width * f.nodes.length);
    for (const n of f.nodes) {
      const own = number.get(tops[n.id]), at = n.id * width;
      for (const u of n.ins) {
        for (let t = 0; t < width; t++) seen[at + t] = Math.max(seen[at + t], seen[u * width + t]);
        if (own === undefined || !tops[u]) continue;
        const before = seen[u * width + own];
        const next = tops[u] === tops[n.id] ? pass[u] : before > 0 ? before + 1 : 1;
        pass[n.id] = Math.max(pass[n.id], next);
      }
      if (own !== undefined) seen[at + own] = Math.max(seen[at + own], pass[n.id]);
    }
    return pass;
  };

  // "adam.m.net.1.bias" belongs to "net.1.bias", where that is a cell, too.
  const cellBases = (f) => {
    const names = f.parameters.filter((p) => p.role === "cell" && p.name).map((p) => p.name);
    const known = new Set(names), base = new Map();
    for (const name of names) {
      base.set(name, name);
      for (let at = name.indexOf("."); at >= 0; at = name.indexOf(".", at + 1))
        if (known.has(name.slice(at + 1))) { base.set(name, name.slice(at + 1)); break; }
    }
    return base;
  };

  // The cell that a node is computed for, where it is for no other one.
  const findCells = (f) => {
    const base = cellBases(f), cell = new Array(f.nodes.length).fill(null);
    for (let i = f.nodes.length - 1; i >= 0; i--) {
      const n = f.nodes[i];
      let own = null;
      const join = (c) => { own = own === null || own === c ? c : MANY; };
      for (const r of n.results) join(r.role === "set" && r.cell ? base.get(r.cell.name) || MANY : MANY);
      for (const u of n.users) if (cell[u] !== null) join(cell[u]);
      cell[i] = own;
    }
    return cell;
  };

  const ordinal = (n) => n === 2 ? "2nd" : n === 3 ? "3rd" : n + "th";

  const build = (f) => {
    const root = newBox("", f.title, "function", null), home = new Array(f.nodes.length);
    const pass = countPasses(f), cell = findCells(f);
    root.open = true;

    const inside = (box, name, kind, label) => {
      const key = box.key + "/" + name;
      let b = box.boxes.get(name);
      if (!b) {
        b = newBox(key, label || name, kind, box);
        box.boxes.set(name, b);
      }
      return b;
    };

    const partBoxes = new Map();
    const partBox = (p) => {
      if (partBoxes.has(p)) return partBoxes.get(p);
      const part = f.parts[p];
      let box = root;
      if (part.kind === "prologue") {
        box = inside(root, "prologue", "part", "prologue");
        box.detail = "computed when what it reads has changed";
      } else if (part.kind !== "call") {
        const around = home[part.node] || partBox(part.parent);
        const words = { loop: "body of the loop", then: "if true", else: "if false" };
        box = inside(around, part.kind + p, "part", words[part.kind]);
        box.control = part.node;
      }
      partBoxes.set(p, box);
      return box;
    };

    const layerBox = (n) => {
      const path = pathOf(n);
      let box = partBox(n.part);
      const again = pass[n.id] > 1 ? "#" + pass[n.id] : "";
      const times = pass[n.id] > 1 ? ` (${ordinal(pass[n.id])} time)` : "";
      if (path) {
        const { names, detail } = readPath(path);
        names.forEach((name, i) => {
          box = inside(box, name + (i === 0 ? again : ""), "layer", name + (i === 0 ? times : ""));
        });
        if (detail) box.detail = detail;
        return box;
      }
      const where = whereOf(n);
      if (!where) return box;
      box = inside(box, "@" + where + again, "line", where.replace(/^.*\//, "") + times);
      box.where = where;
      if (cell[n.id] && cell[n.id] !== MANY) {
        box = inside(box, "=" + cell[n.id], "cell", cell[n.id]);
        box.detail = "update";
      }
      return box;
    };

    // What compilation made anew stands with what it reads, else with what uses it.
    const made = (n) => {
      const operand = n.ins.find((u) => home[u] && f.nodes[u].part === n.part);
      return operand === undefined ? null : home[operand];
    };
    for (const n of f.nodes) if (!isSource(n)) home[n.id] = !pathOf(n) && !whereOf(n) && made(n) || layerBox(n);
    for (let i = f.nodes.length - 1; i >= 0; i--) {
      const n = f.nodes[i];
      if (isSource(n) || home[i] !== partBox(n.part)) continue;
      const user = n.users.find((u) => f.nodes[u].part === n.part);
      if (user !== undefined) home[i] = home[user];
    }
    for (const n of f.nodes) { // what is read stands with its first user
      if (!isSource(n)) continue;
      const user = n.users.find((u) => home[u] && f.nodes[u].part === n.part);
      home[n.id] = user !== undefined ? home[user] : partBox(n.part);
    }
    f.nodes.forEach((n) => home[n.id].nodes.push(n.id));
    const finish = (box) => {
      // A box with nothing but another box in it is one with that.
      while (box.parent && box.nodes.length === 0 && box.boxes.size === 1 && box.kind !== "part") {
        const only = [...box.boxes.values()][0];
        if (only.kind === "part") break;
        box.name = only.kind === "layer" ? box.name + "." + only.name : box.name + " · " + only.name;
        box.detail = only.detail || box.detail;
        box.boxes = only.boxes;
        box.nodes = only.nodes;
        for (const b of box.boxes.values()) b.parent = box;
        for (const id of box.nodes) home[id] = box;
      }
      box.depth = box.parent ? box.parent.depth + 1 : 0;
      box.count = box.nodes.length;
      box.plain = box.nodes.filter((id) => f.nodes[id].op !== "const" && f.nodes[id].cls !== "movement").length;
      box.ns = box.nodes.reduce((sum, id) => sum + f.nodes[id].ns, 0);
      for (const b of box.boxes.values()) {
        finish(b);
        box.count += b.count;
        box.ns += b.ns;
      }
    };
    finish(root);
    const tree = { root, home, level: 1 };
    while (tree.level < 6 && namesAt(tree, tree.level + 1) <= 16) tree.level++;
    return tree;
  };

  // The box whose colour one has: the layer around it that is not deeper than the tree's level for that.
  const layerOf = (tree, box) => {
    let b = box;
    while (b.depth > tree.level || b.kind === "cell") b = b.parent;
    return b;
  };
  const label = (box) => box.kind === "layer" && box.parent.kind === "layer" ? label(box.parent) + "." + box.name : box.name;
  const nameOf = (box) => box.kind === "line" ? box.where : box.key.replace(/#\d+/, "");
  const namesAt = (tree, level) => {
    const names = new Set();
    const isLayer = (b) => b.kind === "layer" && (b.depth === level || (b.depth < level && ![...b.boxes.values()].some((c) => c.kind === "layer")));
    each(tree.root, (b) => { if (isLayer(b)) names.add(nameOf(b)); });
    return names.size;
  };

  // Opens boxes, those that took longest first, while no more than so many things are to be seen.
  const openSome = (tree, most) => {
    const close = (b) => { b.open = false; b.boxes.forEach(close); };
    close(tree.root);
    tree.root.open = true;
    const seen = (b) => b.plain + b.boxes.size;
    let shown = seen(tree.root);
    const queue = [...tree.root.boxes.values()];
    while (queue.length > 0) {
      queue.sort((a, b) => b.ns - a.ns || a.depth - b.depth);
      const at = queue.findIndex((b) => shown + seen(b) - 1 <= most);
      if (at < 0) break;
      const box = queue.splice(at, 1)[0];
      box.open = true;
      shown += seen(box) - 1;
      queue.push(...box.boxes.values());
    }
  };

  const each = (box, visit) => {
    visit(box);
    for (const b of box.boxes.values()) each(b, visit);
  };

  const of = (f) => {
    if (!f.tree) {
      f.tree = build(f);
      openSome(f.tree, 48);
    }
    return f.tree;
  };

  // The boxes around a node, outermost first, without the function itself.
  const around = (f, id) => {
    const list = [];
    for (let b = of(f).home[id]; b.parent; b = b.parent) list.unshift(b);
    return list;
  };

  return { of, openSome, each, around, layerOf, nameOf, label };
})();

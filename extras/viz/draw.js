/* Colours, and a scene on a canvas: only what is to be seen is drawn, and texts only where they can be read. */
const colours = (() => {
  const style = () => getComputedStyle(document.documentElement);
  const dark = () => document.documentElement.dataset.theme === "dark";
  const css = (name) => style().getPropertyValue("--" + name).trim();

  // Far apart for numbers that follow each other.
  const hue = (i) => (i * 137.508 + 212) % 360;
  const of = (i, strength = 1) => dark() ? `hsl(${hue(i)} ${42 * strength}% 34%)` : `hsl(${hue(i)} ${72 * strength}% 86%)`;
  const strong = (i) => dark() ? `hsl(${hue(i)} 55% 62%)` : `hsl(${hue(i)} 60% 46%)`;
  // From cold to hot, of a share from 0 to 1.
  const heat = (share) => {
    const s = Math.pow(Math.max(0, Math.min(1, share)), 0.45);
    return dark() ? `hsl(${46 - 38 * s} ${4 + 76 * s}% ${19 + 22 * s}%)` : `hsl(${50 - 42 * s} ${55 + 40 * s}% ${97 - 32 * s}%)`;
  };
  const numbers = new Map();
  const named = (name) => {
    if (!numbers.has(name)) numbers.set(name, numbers.size);
    return numbers.get(name);
  };
  return { css, dark, of, strong, heat, named };
})();

const draw = (() => {
  // The number that a node is coloured by, or -1.
  const keyOf = {
    kernel: (f, n) => n.commands.length > 0 ? f.commands[n.commands[0]].kernel ?? -1 : -1,
    class: (f, n) => n.cls === "input" || n.op === "const" ? -1 : colours.named("class " + n.cls),
  };

  const layerKey = (tree, box) => {
    const b = layers.layerOf(tree, box);
    return b.parent ? colours.named("layer " + layers.nameOf(b)) : -1;
  };

  const boxKey = (f, box, mode) => {
    if (mode === "layer") return layerKey(layers.of(f), box);
    const found = new Map();
    layers.each(box, (b) => b.nodes.forEach((id) => {
      const k = keyOf[mode](f, f.nodes[id]);
      if (k >= 0) found.set(k, (found.get(k) || 0) + 1 + f.nodes[id].ns);
    }));
    return [...found].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1;
  };

  const fillOf = (view, it) => {
    const { f, mode } = view;
    if (mode === "time") {
      const most = view.mostNs || 1, ns = it.node ? it.node.ns : it.of.ns;
      return it.node && it.node.commands.length === 0 ? colours.css("node") : colours.heat(ns / most);
    }
    const key = it.node ? mode === "layer" ? (it.node.cls === "input" || it.node.op === "const" ? -1 : layerKey(layers.of(f), it.box)) : keyOf[mode](f, it.node)
      : boxKey(f, it.of, mode);
    return key < 0 ? colours.css("node") : view.scale < 0.16 ? colours.strong(key) : colours.of(key); // small ones in full colours
  };

  const round = (pen, x, y, w, h, r) => {
    pen.beginPath();
    pen.roundRect(x, y, w, h, Math.min(r, h / 2, w / 2));
  };

  const cut = (font, s, room) => {
    if (scene.widthOf(font, s) <= room) return s;
    let n = Math.max(1, Math.floor(s.length * room / scene.widthOf(font, s)) - 1);
    while (n > 1 && scene.widthOf(font, s.slice(0, n) + "…") > room) n--;
    return s.slice(0, n) + "…";
  };

  const trace = (pen, line, curved) => {
    pen.moveTo(line[0][0], line[0][1]);
    for (let i = 1; i < line.length; i++) {
      const [x0, y0] = line[i - 1], [x1, y1] = line[i];
      if (!curved || x0 === x1) pen.lineTo(x1, y1);
      else {
        const d = y1 > y0 ? (y1 - y0) / 2 : 60; // upwards: to the next column
        pen.bezierCurveTo(x0, y0 + d, x1, y1 - d, x1, y1);
      }
    }
  };

  const isLong = (e) => {
    const [x0, y0] = e.line[0], [x1, y1] = e.line[e.line.length - 1];
    return Math.abs(y1 - y0) + Math.abs(x1 - x0) > 900;
  };

  const arrow = (pen, line) => {
    const [x, y] = line[line.length - 1];
    pen.moveTo(x - 3.5, y - 6);
    pen.lineTo(x, y);
    pen.lineTo(x + 3.5, y - 6);
  };

  const edgesOf = (view, seen) => view.scene.edges.filter((e) => {
    let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
    for (const [x, y] of e.line) {
      left = Math.min(left, x); right = Math.max(right, x);
      top = Math.min(top, y); bottom = Math.max(bottom, y);
    }
    return right >= seen.x && left <= seen.x + seen.w && bottom >= seen.y && top <= seen.y + seen.h;
  });

  const paintBox = (pen, view, box, theme) => {
    const b = box.of;
    if (!b.parent) return;
    round(pen, box.ax, box.ay, box.w, box.h, 10);
    pen.fillStyle = b.depth % 2 === 1 ? theme.box : theme.box2;
    pen.fill();
    pen.lineWidth = view.selected === b ? 2.5 : 1;
    pen.strokeStyle = view.selected === b ? theme.accent : theme.edge;
    if (b.kind === "part") pen.setLineDash([6, 4]);
    pen.stroke();
    pen.setLineDash([]);
    if (view.scale * 12 < 5) return;
    pen.font = scene.FONT;
    pen.fillStyle = theme.muted;
    pen.fillText("▾ ", box.ax + 10, box.ay + 18);
    pen.fillStyle = theme.text;
    const name = cut(scene.FONT, b.name, box.w - 40);
    pen.fillText(name, box.ax + 25, box.ay + 18);
    const at = box.ax + 25 + scene.widthOf(scene.FONT, name) + 8;
    pen.font = scene.SMALL;
    pen.fillStyle = theme.muted;
    if (b.detail && at < box.ax + box.w - 40)
      pen.fillText(cut(scene.SMALL, b.detail, box.ax + box.w - at - 8), at, box.ay + 18);
  };

  const paintItem = (pen, view, it, theme) => {
    const selected = it.node ? view.selected === it.node : view.selected === it.of;
    const lit = view.lit && it.node ? view.lit.has(it.node.id) : view.lit && it.closed && view.litBoxes.has(it.of);
    const input = it.node && (it.node.cls === "input" || it.node.op === "const");
    round(pen, it.ax, it.ay, it.w, it.h, input ? 18 : it.closed ? 9 : 6);
    if (view.lit && !lit && !selected) { // pale, but nothing shows through
      pen.fillStyle = theme.panel;
      pen.fill();
      pen.globalAlpha = 0.3;
    }
    pen.fillStyle = fillOf(view, it);
    pen.fill();
    pen.lineWidth = selected ? 2.5 : lit ? 2 : it.closed ? 1.4 : 1;
    pen.strokeStyle = selected || lit ? theme.accent : it.closed ? theme.closed : theme.edge;
    pen.stroke();
    if (view.scale * 12 >= 4.5) {
      const room = it.w - 12, x = it.ax + it.w / 2;
      pen.textAlign = "center";
      pen.font = scene.FONT;
      pen.fillStyle = theme.text;
      pen.fillText(cut(scene.FONT, (it.closed ? "▸ " : "") + it.title, room), x, it.ay + 15.5);
      pen.font = scene.SMALL;
      pen.fillStyle = theme.muted;
      let y = it.ay + 29;
      if (it.type) { pen.fillText(cut(scene.SMALL, it.type, room), x, y); y += 15; }
      if (it.closed) pen.fillText(cut(scene.SMALL, it.facts, room), x, it.type ? y + 2 : y + 3);
      else if (it.tag) { pen.fillStyle = theme.accent; pen.fillText(cut(scene.SMALL, "→ " + it.tag, room), x, y); }
      pen.textAlign = "left";
    }
    pen.globalAlpha = 1;
  };

  const paintLabels = (pen, view, edges, theme) => {
    pen.font = scene.SMALL;
    pen.textAlign = "center";
    for (const e of edges) {
      const types = [...new Set([...e.values].map((u) => view.f.nodes[u].type))];
      const s = types.length > 1 ? `${types.length} types` : types[0];
      const k = Math.max(1, Math.floor(e.line.length / 2)), [x0, y0] = e.line[k - 1], [x1, y1] = e.line[k];
      const x = (x0 + x1) / 2, y = (y0 + y1) / 2, w = scene.widthOf(scene.SMALL, s) + 10;
      round(pen, x - w / 2, y - 9, w, 18, 5);
      pen.fillStyle = theme.panel;
      pen.fill();
      pen.strokeStyle = theme.accent;
      pen.lineWidth = 1;
      pen.stroke();
      pen.fillStyle = theme.text;
      pen.fillText(s, x, y + 4);
    }
    pen.textAlign = "left";
  };

  // view: f, scene, mode, selected, lit, litBoxes, x, y, scale (of the screen, in pixels of CSS)
  const paint = (canvas, view) => {
    const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
    }
    const pen = canvas.getContext("2d"), theme = {};
    for (const name of ["bg", "panel", "box", "box2", "edge", "closed", "wire", "text", "muted", "accent"])
      theme[name] = colours.css(name);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = theme.bg;
    pen.fillRect(0, 0, w, h);
    pen.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
    const seen = { x: -view.x / view.scale - 20, y: -view.y / view.scale - 20, w: w / view.scale + 40, h: h / view.scale + 40 };
    const inside = (it) => it.ax < seen.x + seen.w && it.ax + it.w > seen.x && it.ay < seen.y + seen.h && it.ay + it.h > seen.y;
    for (const box of view.scene.boxes) if (inside(box)) paintBox(pen, view, box, theme);
    const edges = edgesOf(view, seen), curved = edges.length < 3000 && view.scale > 0.12;
    const of = view.selected && (view.scene.item[view.selected.id] || view.selected.item);
    const near = of ? edges.filter((e) => e.a === of || e.b === of) : [];
    pen.strokeStyle = theme.wire;
    pen.lineWidth = Math.max(1, Math.min(1.3, 0.5 / view.scale));
    pen.globalAlpha = near.length > 0 || view.lit ? 0.35 : view.scale < 0.2 ? 0.5 : 0.9;
    const strokes = (wanted) => {
      pen.beginPath();
      for (const e of edges) {
        if (isLong(e) !== wanted || (wanted && !view.options.far)) continue;
        trace(pen, e.line, curved);
        if (view.scale > 0.35) arrow(pen, e.line);
      }
      pen.stroke();
    };
    strokes(false);
    pen.globalAlpha *= 0.4; // what goes far stays in the background
    strokes(true);
    pen.globalAlpha = 1;
    if (near.length > 0) {
      pen.strokeStyle = theme.accent;
      pen.lineWidth = 2;
      pen.beginPath();
      for (const e of near) { trace(pen, e.line, true); arrow(pen, e.line); }
      pen.stroke();
    }
    for (const it of view.scene.nodes) if (inside(it)) paintItem(pen, view, it, theme);
    if (near.length <= 24 && view.scale > 0.5) paintLabels(pen, view, near, theme);
  };

  // The whole in the corner, with what is seen of it.
  const mapScale = (map, view) => {
    const w = map.clientWidth, h = map.clientHeight, s = view.scene;
    const scale = Math.min((w - 8) / s.width, (h - 8) / s.height);
    return { scale, x: (w - s.width * scale) / 2, y: (h - s.height * scale) / 2 };
  };

  const paintMap = (map, canvas, view) => {
    const s = view.scene, w = canvas.clientWidth / view.scale, h = canvas.clientHeight / view.scale;
    map.hidden = s.width <= w && s.height <= h;
    if (map.hidden) return;
    const ratio = window.devicePixelRatio || 1, pen = map.getContext("2d"), k = mapScale(map, view);
    map.width = map.clientWidth * ratio;
    map.height = map.clientHeight * ratio;
    pen.setTransform(ratio * k.scale, 0, 0, ratio * k.scale, ratio * k.x, ratio * k.y);
    const least = 1.2 / k.scale;
    for (const box of s.boxes) {
      if (box.of.depth !== 1) continue;
      pen.fillStyle = colours.css("edge");
      pen.globalAlpha = 0.5;
      pen.fillRect(box.ax, box.ay, Math.max(least, box.w), Math.max(least, box.h));
    }
    pen.globalAlpha = 0.9;
    const step = Math.max(1, Math.floor(s.nodes.length / 3000));
    for (let i = 0; i < s.nodes.length; i += step) {
      const it = s.nodes[i];
      pen.fillStyle = fillOf(view, it);
      pen.fillRect(it.ax, it.ay, Math.max(least, it.w), Math.max(least, it.h));
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = colours.css("accent");
    pen.lineWidth = 1.5 / k.scale;
    pen.strokeRect(-view.x / view.scale, -view.y / view.scale, w, h);
  };

  return { paint, paintMap, mapScale, keyOf, layerKey };
})();

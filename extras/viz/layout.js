/*
 * Layered layout of a directed graph, top to bottom: layers by longest paths, order by barycentres, positions by least squares.
 * What is very tall stands in columns, as text does; a very wide row becomes several.
 * Items have w and h and get x and y, their upper left corner; edges are pairs of indices and get the points that they bend at.
 */
const layout = (() => {
  const GAP_X = 18, GAP_Y = 34, COLUMN = 70, MOST_BENDS = 30000;

  // An order in which edges lead forward; those that do not are left out of the layering.
  const orderOf = (n, edges) => {
    const next = Array.from({ length: n }, () => []), state = new Uint8Array(n), order = [];
    edges.forEach((e) => { next[e.from].push(e); });
    for (let root = 0; root < n; root++) {
      if (state[root]) continue;
      const stack = [[root, 0]];
      state[root] = 1;
      while (stack.length > 0) {
        const top = stack[stack.length - 1];
        if (top[1] < next[top[0]].length) {
          const e = next[top[0]][top[1]++];
          if (state[e.to] === 0) { state[e.to] = 1; stack.push([e.to, 0]); }
          else if (state[e.to] === 1) e.back = true;
        } else {
          state[top[0]] = 2;
          order.push(top[0]);
          stack.pop();
        }
      }
    }
    return order.reverse();
  };

  const layersOf = (n, edges) => {
    const order = orderOf(n, edges), layer = new Int32Array(n);
    const ins = Array.from({ length: n }, () => []), outs = Array.from({ length: n }, () => []);
    for (const e of edges) {
      if (e.back) continue;
      ins[e.to].push(e.from);
      outs[e.from].push(e.to);
    }
    for (const v of order) for (const u of ins[v]) layer[v] = Math.max(layer[v], layer[u] + 1);
    for (const v of order) // what comes from nowhere stands right above its first user
      if (ins[v].length === 0 && outs[v].length > 0)
        layer[v] = Math.max(0, outs[v].reduce((least, u) => Math.min(least, layer[u]), Infinity) - 1);
    return layer;
  };

  // Long edges get an item for each layer that they cross, as far as these are not too many.
  const addBends = (items, edges, layer) => {
    const all = items.map((it, i) => ({ w: it.w, h: it.h, layer: layer[i], up: [], down: [] }));
    const spans = edges.map((e) => e.back ? 0 : layer[e.to] - layer[e.from] - 1);
    const sorted = spans.filter((s) => s > 0).sort((a, b) => a - b);
    let most = Infinity, sum = 0;
    for (const s of sorted) if ((sum += s) > MOST_BENDS) { most = s - 1; break; }
    edges.forEach((e, k) => {
      e.bends = [];
      if (e.back) return;
      let at = e.from;
      for (let s = 0; s < spans[k] && spans[k] <= most; s++) {
        const bend = all.length;
        all.push({ w: 6, h: 0, layer: layer[e.from] + s + 1, up: [at], down: [] });
        all[at].down.push(bend);
        e.bends.push(bend);
        at = bend;
      }
      all[at].down.push(e.to);
      all[e.to].up.push(at);
    });
    return all;
  };

  const rowsOf = (all) => {
    const rows = [];
    all.forEach((it, i) => { (rows[it.layer] = rows[it.layer] || []).push(i); });
    for (let r = 0; r < rows.length; r++) rows[r] = rows[r] || [];
    return rows;
  };

  const sortRows = (all, rows) => {
    const place = new Float64Array(all.length);
    const number = (row) => row.forEach((i, k) => { place[i] = k; });
    rows.forEach(number);
    const sweeps = all.length > 8000 ? 4 : 10;
    for (let s = 0; s < sweeps; s++) {
      const down = s % 2 === 0;
      for (let r = 0; r < rows.length; r++) {
        const row = rows[down ? r : rows.length - 1 - r];
        const want = new Map();
        for (const i of row) {
          const others = down ? all[i].up : all[i].down;
          let sum = 0;
          for (const o of others) sum += place[o] / Math.max(1, rows[all[o].layer].length);
          want.set(i, others.length > 0 ? sum / others.length : place[i] / Math.max(1, row.length));
        }
        row.sort((a, b) => want.get(a) - want.get(b) || place[a] - place[b]);
        number(row);
      }
    }
  };

  // A row of many wide items, such as the updates of all parameters, as rows of a page.
  const breakRow = (all, row) => {
    const solid = row.filter((i) => all[i].h > 0), wide = solid.reduce((sum, i) => sum + all[i].w + GAP_X, 0);
    if (solid.length < 8 || wide < 3200) return [row];
    const high = solid.reduce((sum, i) => sum + all[i].h + GAP_Y, 0) / solid.length;
    const most = Math.max(1600, Math.sqrt(wide * high * 1.8)), out = [[]];
    let w = 0;
    for (const i of row) {
      if (w > 0 && w + all[i].w > most && all[i].h > 0) { out.push([]); w = 0; }
      out[out.length - 1].push(i);
      w += all[i].h > 0 ? all[i].w + GAP_X : 0;
    }
    return out;
  };

  // Positions of a row in its order: as near as possible to the wanted ones, no two items overlapping.
  const settle = (all, row, want) => {
    const blocks = [];
    let offset = 0;
    row.forEach((i, k) => {
      if (k > 0) offset += (all[row[k - 1]].w + all[i].w) / 2 + GAP_X * (all[i].h > 0 ? 1 : 0.5);
      let block = { first: k, sum: want[i] - offset, n: 1 };
      while (blocks.length > 0) {
        const before = blocks[blocks.length - 1];
        if (before.sum / before.n <= block.sum / block.n) break;
        blocks.pop();
        block = { first: before.first, sum: before.sum + block.sum, n: before.n + block.n };
      }
      blocks.push(block);
    });
    blocks.forEach((b, k) => {
      const end = k + 1 < blocks.length ? blocks[k + 1].first : row.length;
      for (let p = b.first; p < end; p++) all[row[p]].at = b.sum / b.n;
    });
    offset = 0;
    row.forEach((i, k) => {
      if (k > 0) offset += (all[row[k - 1]].w + all[i].w) / 2 + GAP_X * (all[i].h > 0 ? 1 : 0.5);
      all[i].x = all[i].at + offset;
    });
  };

  const placeRows = (all, rows) => {
    const want = new Float64Array(all.length);
    for (const it of all) it.x = 0;
    for (const row of rows) settle(all, row, want);
    const sweeps = all.length > 8000 ? 4 : 12;
    for (let s = 0; s < sweeps; s++) {
      const down = s % 2 === 0;
      for (let r = 0; r < rows.length; r++) {
        const row = rows[down ? r : rows.length - 1 - r];
        for (const i of row) {
          const near = s > sweeps / 2 ? all[i].up.concat(all[i].down) : down ? all[i].up : all[i].down;
          want[i] = near.length > 0 ? near.reduce((sum, o) => sum + all[o].x, 0) / near.length : all[i].x;
        }
        settle(all, row, want);
      }
    }
  };

  // Rows below each other: where each begins, and the height of all.
  const stackRows = (all, rows) => {
    const tops = [];
    let y = 0;
    for (const row of rows) {
      const high = row.reduce((most, i) => Math.max(most, all[i].h), 0);
      tops.push(y);
      for (const i of row) all[i].y = y + (high - all[i].h) / 2;
      y += high + GAP_Y + Math.min(40, row.length);
    }
    tops.push(y);
    return tops;
  };

  const extent = (all, rows) => {
    let left = Infinity, right = -Infinity;
    for (const row of rows)
      for (const i of row) {
        left = Math.min(left, all[i].x - all[i].w / 2);
        right = Math.max(right, all[i].x + all[i].w / 2);
      }
    return [left, right];
  };

  // Where rows are many times as high as they are wide: columns of about one height, beside each other.
  const wrapRows = (all, rows, tops) => {
    const [left, right] = extent(all, rows), whole = tops[rows.length], wide = right - left + COLUMN;
    if (whole < 2200 || whole < 4 * wide) return whole;
    const columns = Math.min(12, Math.max(2, Math.round(Math.sqrt(whole / wide / 1.3)))), target = whole / columns;
    let x = 0, high = 0;
    for (let first = 0; first < rows.length;) {
      let end = first + 1;
      while (end < rows.length && tops[end + 1] - tops[first] <= target * 1.04) end++;
      const [from, to] = extent(all, rows.slice(first, end));
      for (let r = first; r < end; r++)
        for (const i of rows[r]) { all[i].x += x - from; all[i].y -= tops[first]; }
      high = Math.max(high, tops[end] - tops[first]);
      x += to - from + COLUMN;
      first = end;
    }
    return high;
  };

  // Items without edges stand in rows of their own, below the others.
  const packLoose = (items, loose, width, top) => {
    let x = 0, y = top, high = 0;
    const limit = Math.max(width, 360);
    for (const i of loose) {
      if (x > 0 && x + items[i].w > limit) { x = 0; y += high + GAP_X; high = 0; }
      items[i].x = x;
      items[i].y = y;
      x += items[i].w + GAP_X;
      high = Math.max(high, items[i].h);
    }
  };

  return (items, edges) => {
    const degree = new Int32Array(items.length);
    for (const e of edges) { degree[e.from]++; degree[e.to]++; }
    const index = new Int32Array(items.length), used = [], loose = [];
    items.forEach((it, i) => {
      if (degree[i] === 0) loose.push(i);
      else { index[i] = used.length; used.push(i); }
    });
    const inner = edges.map((e) => ({ from: index[e.from], to: index[e.to] }));
    const layer = layersOf(used.length, inner);
    const all = addBends(used.map((i) => items[i]), inner, layer), layered = rowsOf(all);
    sortRows(all, layered);
    const rows = layered.flatMap((row) => breakRow(all, row));
    placeRows(all, rows);
    const y = wrapRows(all, rows, stackRows(all, rows));
    const [left, right] = used.length > 0 ? extent(all, rows) : [0, 0];
    used.forEach((i, k) => {
      items[i].x = all[k].x - all[k].w / 2 - left;
      items[i].y = all[k].y;
    });
    edges.forEach((e, k) => {
      e.points = inner[k].bends.map((b) => [all[b].x - left, all[b].y]);
    });
    packLoose(items, loose, right - left, used.length > 0 ? y : 0);
    const size = { w: right - left, h: 0 };
    for (const it of items) {
      size.w = Math.max(size.w, it.x + it.w);
      size.h = Math.max(size.h, it.y + it.h);
    }
    return size;
  };
})();

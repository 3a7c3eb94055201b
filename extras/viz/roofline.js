/* The roofline of the machine as it was measured, with each kernel a dot: FLOP a byte, GFLOP/s, both logarithmic. */
const roofline = (() => {
  const { format, data } = model;
  const W = 560, H = 330, LEFT = 52, RIGHT = 14, TOP = 14, BOTTOM = 40;

  const range = (values, least, most) => {
    const low = Math.min(...values, least), high = Math.max(...values, most);
    return [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  };

  const power = (k) => k >= 0 && k <= 4 ? String(10 ** k) : k < 0 && k >= -2 ? String(10 ** k) : `1e${k}`;

  // rows: { kernel, f, weight }; a click on a dot is told.
  const plot = (rows, click) => {
    const dots = rows.filter((r) => r.kernel.allFlops > 0 && r.kernel.allBytes > 0 && r.kernel.gflops > 0);
    if (!data.peak || dots.length === 0)
      return make("p.muted", {}, data.peak ? "No kernel that was timed does arithmetic." :
        "No roofline: the machine was not measured, since its kernels do not run at full speed (an interpreter or a simulated device).");
    const { gflops, gbs } = data.peak, ridge = gflops / gbs;
    const whole = dots.reduce((sum, d) => sum + d.kernel.ns, 0), heavy = dots.filter((d) => d.kernel.ns > whole / 500);
    const [x0, x1] = range(heavy.map((d) => d.kernel.intensity), Math.min(0.1, ridge / 10), ridge * 10);
    const [low0, y1] = range(heavy.map((d) => d.kernel.gflops), gflops / 300, gflops * 1.5), y0 = Math.max(low0, y1 - 6);
    const within = (v, low, high) => Math.max(low, Math.min(high, Math.log10(v))); // those that take no time stand at the edge
    const x = (v) => LEFT + (within(v, x0, x1) - x0) / (x1 - x0) * (W - LEFT - RIGHT);
    const y = (v) => H - BOTTOM - (within(v, y0, y1) - y0) / (y1 - y0) * (H - TOP - BOTTOM);
    const parts = [];
    for (let k = x0; k <= x1; k++)
      parts.push(svg("line", { x1: x(10 ** k), x2: x(10 ** k), y1: TOP, y2: H - BOTTOM, class: "grid" }),
        svg("text", { x: x(10 ** k), y: H - BOTTOM + 15, "text-anchor": "middle" }, power(k)));
    for (let k = y0; k <= y1; k++)
      parts.push(svg("line", { x1: LEFT, x2: W - RIGHT, y1: y(10 ** k), y2: y(10 ** k), class: "grid" }),
        svg("text", { x: LEFT - 6, y: y(10 ** k) + 4, "text-anchor": "end" }, power(k)));
    const low = Math.max(10 ** x0, 10 ** y0 / gbs), high = 10 ** x1;
    parts.push(
      svg("polygon", { class: "under", points: [[low, low * gbs], [ridge, gflops], [high, gflops], [high, 10 ** y0], [low, 10 ** y0]]
        .map(([a, b]) => `${x(a)},${y(Math.max(b, 10 ** y0))}`).join(" ") }),
      svg("polyline", { class: "roof", points: [[low, low * gbs], [ridge, gflops], [high, gflops]].map(([a, b]) => `${x(a)},${y(b)}`).join(" ") }),
      svg("text", { class: "roofname", x: x(high) - 4, y: y(gflops) - 6, "text-anchor": "end" }, `${format.digits(gflops)} GFLOP/s`),
      svg("text", { class: "roofname", "text-anchor": "start",
        transform: `translate(${x(low) + 8} ${y(low * gbs) - 10}) rotate(${-Math.atan2(y(low * gbs) - y(gflops), x(ridge) - x(low)) * 180 / Math.PI})` },
        `${format.digits(gbs)} GB/s`),
      svg("text", { x: (LEFT + W) / 2, y: H - 6, "text-anchor": "middle" }, "arithmetic intensity, FLOP a byte"),
      svg("text", { x: 13, y: (H - BOTTOM) / 2, "text-anchor": "middle", transform: `rotate(-90 13 ${(H - BOTTOM) / 2})` }, "GFLOP/s"));
    const most = Math.max(...dots.map((d) => d.kernel.ns));
    for (const d of [...dots].sort((a, b) => b.kernel.ns - a.kernel.ns)) {
      const k = d.kernel;
      parts.push(svg("circle", { cx: x(k.intensity), cy: y(k.gflops), r: 4 + 11 * Math.sqrt(k.ns / most), class: "dot", tabindex: 0,
        "data-kernel": k.id, style: `fill:${colours.strong(k.id)}`,
        onclick: () => { tip.hide(); click(d); }, onkeydown: (e) => { if (e.key === "Enter") click(d); }, onmouseleave: tip.hide,
        onmousemove: (e) => tip.show(e, make("b", {}, k.name), make("div", {}, k.ops), make("div", {},
          `${format.time(k.ns)} · ${format.digits(k.gflops)} GFLOP/s · ${format.digits(k.intensity)} FLOP/B` +
          (k.roof !== null ? ` · ${format.percent(k.roof, 1)} of the roof` : ""))) }));
    }
    return svg("svg", { class: "roofline", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "roofline" }, parts);
  };

  return { plot };
})();

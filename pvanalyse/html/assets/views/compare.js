defineView({
  id: "compare", title: "Compare", both: true,
  draw(both, root) {
    const [a, b] = both;
    if (comparison.verdict) root.append(element("p", { class: comparison.alarming ? "verdict bad" : "verdict" }, comparison.verdict));
    root.append(...comparison.sections.slice(0, 2).map((section) => documentSection(section))); // the reports, and why they differ
    if (!a.sections.memory.missing && !b.sections.memory.missing) root.append(element("h3", {}, "Memory of each tile"), tilesBeside(a.sections.memory, b.sections.memory));
    if (!a.sections.liveness.missing && !b.sections.liveness.missing) root.append(element("h3", {}, "Live memory, not always live"), curvesBeside(both));
    root.append(metricsBeside(a, b), ...comparison.sections.slice(2).map((section) => documentSection(section)));
    root.append(element("p", { class: "status" }, "Every other view shows both reports side by side; 'Reports' at the top chooses one."));
    return null;
  },
});

function metricsBeside(a, b) {
  const rows = new Map();
  for (const [at, report] of [a, b].entries()) {
    if (report.sections.summary.missing) continue;
    for (const [name, value, unit] of report.sections.summary.metrics) {
      const row = rows.get(name) ?? { name, unit, values: [null, null] };
      row.values[at] = value;
      rows.set(name, row);
    }
  }
  const all = [...rows.values()];
  const numbers = (one) => one.values.every((value) => typeof value === "number");
  const holder = element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Metrics of both reports" });
  const status = element("p", { class: "status", role: "status" });
  function show(which) {
    const shown = all.filter((one) => which === "all" || one.values[0] !== one.values[1]);
    status.textContent = `${formatCount(shown.length)} of ${formatCount(all.length)} metrics`;
    holder.replaceChildren(element("table", {}, element("caption", {}, "Metrics"),
      element("thead", {}, element("tr", {}, ...["Metric", "A", "B", "B − A", "Change"].map((label, at) => element("th", { scope: "col", class: at ? "number" : null }, label)))),
      element("tbody", {}, ...shown.map((one) => {
        const [first, second] = one.values;
        const difference = numbers(one) ? second - first : null;
        const relative = difference !== null && first !== 0 ? difference / first : null;
        const sign = difference > 0 ? "+" : "";
        return element("tr", { "data-metric": one.name }, element("td", {}, nameOf(one.name)),
          element("td", { class: "number", title: String(first ?? "") }, written(first, one.unit) || "–"), element("td", { class: "number", title: String(second ?? "") }, written(second, one.unit) || "–"),
          element("td", { class: "number", title: difference === null ? null : String(difference) }, difference === null ? "" : sign + written(difference, one.unit)),
          element("td", { class: "number" }, relative === null ? "" : sign + formatFraction(relative)));
      }))));
  }
  show("changed");
  return element("div", { class: "card" }, element("div", { class: "controls" }, choice("Show", [["changed", "what differs"], ["all", "all"]], "changed", show), status), holder);
}

const SIDES = [["A", "data"], ["B", "second"]];

function tilesBeside(...memories) {
  const most = Math.max(...memories.map((memory) => largest(memory.total)));
  return chart({
    label: `Memory of each tile of A and B, the fullest with ${formatBytes(most)}`,
    height: 300,
    onpick: (tile) => goTo("memory", { tile }),
    build(range) {
      const traces = memories.map((memory, side) => {
        const { shown } = tilesToDraw(memory, range, 1500);
        return { type: "scatter", mode: "lines", name: SIDES[side][0], x: shown.map((at) => memory.tile[at]), y: shown.map((at) => memory.total[at]),
          line: { color: colourOf(SIDES[side][1]), width: 1.5, shape: "hvh" }, customdata: shown.map((at) => formatBytes(memory.total[at])), hovertemplate: "%{customdata}" };
      });
      return { traces, layout: { xaxis: { title: { text: "tile" }, tickformat: ",d" }, yaxis: { range: [0, most * 1.08], fixedrange: true, ...byteTicks(most) } } };
    },
  }).holder;
}

function curvesBeside(both) {
  const curves = both.map((report) => report.sections.liveness);
  const most = Math.max(...curves.map((curve) => largest(curve.bytes)));
  return chart({
    label: `Live memory at each step of A and B, the highest peak ${formatBytes(most)}`,
    height: 300,
    onpick: (step) => goTo("liveness", { step }),
    build(range) {
      const traces = curves.map((curve, side) => {
        const from = range ? Math.max(0, lowerBound(curve.step, range[0]) - 1) : 0;
        const to = range ? Math.min(curve.step.length, lowerBound(curve.step, range[1]) + 1) : curve.step.length;
        const shown = extremes(curve.bytes, from, to, 1500);
        return { type: "scatter", mode: "lines", name: SIDES[side][0], x: shown.map((at) => curve.step[at]), y: shown.map((at) => curve.bytes[at]),
          line: { color: colourOf(SIDES[side][1]), width: 1.5, shape: "hv" }, customdata: shown.map((at) => formatBytes(curve.bytes[at])), hovertemplate: "%{customdata}" };
      });
      return { traces, layout: { xaxis: { title: { text: "compile-time step" }, tickformat: ",d" }, yaxis: { range: [0, most * 1.08], fixedrange: true, ...byteTicks(most) } } };
    },
  }).holder;
}

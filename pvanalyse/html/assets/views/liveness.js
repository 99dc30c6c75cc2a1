/** The step that was chosen, or the first that reaches the peak, as a position. */
function chosenStep(liveness) {
  if (chosen.step !== undefined) return Math.min(liveness.step.length - 1, lowerBound(liveness.step, chosen.step));
  let peak = 0;
  for (let at = 1; at < liveness.bytes.length; at++) if (liveness.bytes[at] > liveness.bytes[peak]) peak = at;
  return peak;
}

/** The variables that are live at a step: a row each with all its intervals that hold the step, largest first. */
function liveAt(intervals, step) {
  const found = new Map();
  for (let at = 0; at < intervals.begin.length; at++) {
    if (intervals.begin[at] > step || step >= intervals.end[at]) continue;
    const key = `${intervals.variable[at]}\n${intervals.name.codes[at]}`;
    const row = found.get(key) ?? { name: intervals.name.at(at), bytes: 0, begin: Infinity, end: 0 };
    row.bytes += intervals.bytes[at];
    row.begin = Math.min(row.begin, intervals.begin[at]);
    row.end = Math.max(row.end, intervals.end[at]);
    found.set(key, row);
  }
  return [...found.values()].sort((one, other) => other.bytes - one.bytes || (one.name < other.name ? -1 : 1));
}

const variableColumns = (rows) => [
  { label: "Variable", unit: "", values: rows.map((row) => row.name) },
  { label: "Bytes", unit: "bytes", values: rows.map((row) => row.bytes) },
  { label: "From step", unit: "count", values: rows.map((row) => row.begin), sums: false },
  { label: "To step", unit: "count", values: rows.map((row) => row.end), sums: false },
];

defineView({
  id: "liveness", title: "Liveness", needs: "liveness",
  draw(report, root) {
    const liveness = report.sections.liveness;
    const field = numberField("Step", 0, liveness.step.at(-1), (step) => choose({ step }));
    const controls = element("div", { class: "controls" }, field,
      button("Peak", () => choose({ step: undefined })), button("Earlier", () => move(-1)), button("Later", () => move(1)));
    const facts = element("div", { class: "card", "aria-live": "polite" });
    const others = element("p", {});
    const missing = liveness.intervals.missing;
    const table = missing ? null : dataTable(variableColumns([]), { caption: "", length: 0, sort: [1, true], groupable: true });
    const live = element("div", { class: "card" }, element("h3", {}), missing ? element("p", { class: "missing" }, missing) : table, others);
    const most = largest(liveness.bytes);
    const move = (by) => choose({ step: liveness.step[Math.min(liveness.step.length - 1, Math.max(0, chosenStep(liveness) + by))] });

    const made = chart({
      label: `Live memory at ${formatCount(liveness.numSteps)} steps, the peak ${formatBytes(most)}; left and right arrow choose a step, whose variables are listed below`,
      height: 360,
      onpick: (step) => choose({ step }),
      onstep: move,
      build(range) {
        const from = range ? Math.max(0, lowerBound(liveness.step, range[0]) - 1) : 0;
        const to = range ? Math.min(liveness.step.length, lowerBound(liveness.step, range[1]) + 1) : liveness.step.length;
        const shown = extremes(liveness.bytes, from, to, 1500);
        const step = liveness.step[chosenStep(liveness)];
        const top = largestOf("liveness", (one) => largest(one.bytes));
        return {
          traces: [{
            type: "scatter", mode: "lines", x: shown.map((at) => liveness.step[at]), y: shown.map((at) => liveness.bytes[at]), fill: "tozeroy",
            line: { color: colourOf("data"), width: 1.2, shape: shown.length < 3000 ? "hv" : "linear" }, fillcolor: colourOf("data-soft"),
            customdata: shown.map((at) => `${formatBytes(liveness.bytes[at])}<br>${chartText(liveness.type.at(at))} ${chartText(liveness.program.at(at))}`),
            hovertemplate: "step %{x}: %{customdata}<extra></extra>",
          }],
          layout: {
            showlegend: false, hovermode: "x",
            shapes: [{ type: "line", x0: step, x1: step, y0: 0, y1: 1, yref: "paper", line: { color: colourOf("accent"), width: 2 } }],
            xaxis: { title: { text: "compile-time step" }, tickformat: ",d", range: [liveness.step[0], liveness.step.at(-1) + 1] },
            yaxis: { range: [0, top * 1.08], fixedrange: true, ...byteTicks(top) },
          },
        };
      },
    });

    function update() {
      const at = chosenStep(liveness);
      const step = liveness.step[at];
      const always = liveness.alwaysLive.total;
      field.show(step);
      facts.replaceChildren(element("h3", {}, `Step ${formatCount(step)}`), factList([
        ["Live, not always", liveness.bytes[at], "bytes"], ...(always === undefined ? [] : [["Always live", always, "bytes"]]),
        ["Program", liveness.program.at(at), ""], ["Type", liveness.type.at(at), ""]]));
      live.firstChild.textContent = `Live at step ${formatCount(step)}`;
      if (table) {
        const rows = liveAt(liveness.intervals, step);
        table.show(variableColumns(rows), { length: rows.length, caption: `Variables live at step ${step}, not always` });
        const rest = liveness.bytes[at] - rows.reduce((sum, row) => sum + row.bytes, 0);
        const why = liveness.intervals.complete ? "which no variable accounts for" : "smaller variables that are not in this page";
        others.textContent = rest > 0 ? `(others): ${formatBytes(rest)}, ${why}` : "";
      }
      made.redraw();
    }
    const peaks = element("div", { class: "card" }, element("h3", {}, "Highest peaks"), packedTable(liveness.peaks, {
      caption: "Peaks, highest first", searchable: false, onselect: (row) => choose({ step: liveness.peaks.columns[0].values[row] }) }));
    const rest = liveness.alwaysLive.table ? element("div", { class: "card" }, element("h3", {}, "Always live"), packedTable(liveness.alwaysLive.table, { caption: "What is live all the time" })) : null;
    root.append(controls, made.holder, facts, live, peaks, rest ?? "");
    update();
    return update;
  },
});

// Charts by plotly.js, which is in the page compressed and starts when the first chart is drawn.

let plotlyLoading = null;

function plotly() {
  plotlyLoading ??= inflate(byId("plotly")).then((bytes) => {
    // A script of this text, and no other, is what the page's content-security policy allows.
    document.head.append(element("script", {}, new TextDecoder().decode(bytes)));
    return globalThis.Plotly;
  });
  return plotlyLoading;
}

/** plotly.js reads some HTML in texts: what comes from a report must not be read as such. */
const chartText = (text) => shortened(text, 80).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function chartLayout(overrides) {
  const axis = { gridcolor: colourOf("grid"), linecolor: colourOf("line"), zerolinecolor: colourOf("line"), tickcolor: colourOf("line"), automargin: true };
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colourOf("ink"), size: 12, family: "system-ui, sans-serif" },
    margin: { l: 70, r: 20, t: 20, b: 50 },
    hoverlabel: { bgcolor: colourOf("card"), bordercolor: colourOf("line"), font: { color: colourOf("ink") }, align: "left" },
    hovermode: "x unified",
    dragmode: "zoom",
    legend: { traceorder: "reversed" },
    ...overrides,
    xaxis: { ...axis, ...overrides.xaxis },
    yaxis: { ...axis, ...overrides.yaxis },
  };
}

/** Ticks of an axis of sizes: round numbers in the units of the page. */
function byteTicks(most) {
  const base = preferences.units === "binary" ? 1024 : 1000;
  let unit = 1;
  while (most / unit >= base && unit < base ** 5) unit *= base;
  const steps = [1, 2, 5, 10, 20, 50, 100, 128, 200, 250, 256, 500, 512];
  const step = (steps.find((one) => most / (one * unit) <= 6) ?? steps.at(-1)) * unit;
  const fine = most / step < 2 ? step / 4 : most / step < 4 ? step / 2 : step;
  const ticks = [];
  for (let at = 0; at <= most * 1.05; at += fine) ticks.push(at);
  return { tickvals: ticks, ticktext: ticks.map((tick) => formatBytes(tick)) };
}

/**
 * Put a chart into a holder and return it as {redraw}.
 * build(range) returns {traces, layout} for a range of x, null for all; it is called again when one zooms.
 * onpick(x) is called when a point is clicked; label says to those who do not see it what the chart shows.
 */
function chart({ label, height, build, onpick, onstep }) {
  const plot = element("div", { class: "plot", style: { height: `${height}px` } });
  const holder = element("div", { class: "chart", tabindex: "0", role: "img", "aria-label": label, "data-picture": true }, plot);
  let range = null;
  let latest = 0;
  let ready = false;
  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

  async function redraw() {
    const number = ++latest;
    const library = await plotly();
    if (number !== latest || !holder.isConnected) return;
    const { traces, layout } = build(range);
    if (range) layout.xaxis = { ...layout.xaxis, range };
    await library.react(plot, traces, chartLayout(layout), config);
    holder.dataset.drawn = "yes";
    if (ready) return;
    ready = true;
    plot.on("plotly_click", (event) => onpick?.(Math.round(event.points[0].x)));
    plot.on("plotly_relayout", (change) => {
      if ("xaxis.range[0]" in change) range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      else if (change["xaxis.autorange"]) range = null;
      else return;
      redraw();
    });
  }

  holder.addEventListener("keydown", (event) => {
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!direction || !onstep) return;
    event.preventDefault();
    onstep(direction * (event.shiftKey ? 10 : 1));
  });
  drawn.pictures.push(redraw);
  queueMicrotask(redraw);
  return { holder, redraw };
}

/** Positions of the lowest and highest of each of some stretches of values between two positions, in order. */
function extremes(values, from, to, stretches) {
  if (to - from <= 2 * stretches) return Array.from({ length: to - from }, (_, at) => from + at);
  const kept = [];
  for (let stretch = 0; stretch < stretches; stretch++) {
    const low = from + Math.floor(((to - from) * stretch) / stretches);
    const high = from + Math.floor(((to - from) * (stretch + 1)) / stretches);
    let least = low, most = low;
    for (let at = low; at < high; at++) {
      if (values[at] < values[least]) least = at;
      if (values[at] > values[most]) most = at;
    }
    kept.push(Math.min(least, most));
    if (least !== most) kept.push(Math.max(least, most));
  }
  return kept;
}

const largest = (values) => values.reduce((most, value) => Math.max(most, value), 0);

/** First position in ascending values that is not below a value. */
function lowerBound(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const LIFETIME_ROWS = 40;

/** The variables of the intervals, those with the largest interval first: {name, most, intervals}. */
function variablesOf(intervals) {
  const found = new Map();
  for (let at = 0; at < intervals.begin.length; at++) {
    const key = `${intervals.variable[at]}\n${intervals.name.codes[at]}`;
    const variable = found.get(key);
    if (variable) {
      variable.intervals.push(at);
      variable.most = Math.max(variable.most, intervals.bytes[at]);
    } else found.set(key, { name: intervals.name.at(at), most: intervals.bytes[at], intervals: [at] });
  }
  return [...found.values()].sort((one, other) => other.most - one.most || (one.name < other.name ? -1 : 1));
}

defineView({
  id: "lifetimes", title: "Lifetimes", needs: "liveness",
  draw(report, root) {
    const liveness = report.sections.liveness;
    const intervals = liveness.intervals;
    if (intervals.missing) {
      root.append(element("p", { class: "missing" }, intervals.missing));
      return null;
    }
    const all = variablesOf(intervals);
    const numSteps = liveness.step.at(-1) + 1;
    let found = all;
    let first = 0;
    let selected = null;
    const orders = { bytes: (one, other) => other.most - one.most, begin: (one, other) => intervals.begin[one.intervals[0]] - intervals.begin[other.intervals[0]] };
    let order = "bytes";
    const status = element("p", { class: "status", role: "status" });
    const facts = element("div", { class: "card", "aria-live": "polite" });
    const LEFT = (width) => Math.min(360, width * 0.38), ROW = 17, TOP = 22;
    const toX = (step, width) => LEFT(width) + (step / numSteps) * (width - LEFT(width) - 12);
    const page = () => found.slice(first, first + LIFETIME_ROWS);

    const made = picture({
      label: `When variables are live, a row each; up and down arrow choose one, whose intervals are listed below`,
      height: TOP + LIFETIME_ROWS * ROW + 8,
      paint(context, width) {
        context.font = "12px system-ui, sans-serif";
        context.fillStyle = colourOf("soft");
        for (let part = 0; part <= 4; part++) {
          const step = Math.round((numSteps * part) / 4);
          context.fillRect(toX(step, width), TOP - 4, 1, LIFETIME_ROWS * ROW + 4);
          const text = formatCount(step);
          context.fillText(text, toX(step, width) - (part === 4 ? context.measureText(text).width : 0), TOP - 8);
        }
        page().forEach((variable, row) => {
          const y = TOP + row * ROW;
          if (variable === selected) {
            context.fillStyle = colourOf("chosen");
            context.fillRect(0, y, width, ROW);
          }
          context.fillStyle = colourOf("ink");
          const size = formatBytes(variable.most);
          context.fillText(size, LEFT(width) - 8 - context.measureText(size).width, y + 13);
          const room = LEFT(width) - 24 - context.measureText(size).width;
          context.fillText(shortened(variable.name || "(no name)", Math.max(6, Math.floor(room / 6.3))), 6, y + 13, room);
          context.fillStyle = colourOf("data");
          for (const at of variable.intervals) {
            const x = toX(intervals.begin[at], width);
            context.fillRect(x, y + 3, Math.max(1.5, toX(intervals.end[at], width) - x), ROW - 6);
          }
        });
        const peak = liveness.step[chosenStep(liveness)];
        context.fillStyle = colourOf("accent");
        context.fillRect(toX(peak + 0.5, width) - 1, TOP - 4, 2, LIFETIME_ROWS * ROW + 4);
      },
    });

    const rowAt = (event) => Math.floor((made.pointAt(event)[1] - TOP) / ROW);
    made.canvas.addEventListener("pointermove", (event) => {
      const variable = page()[rowAt(event)];
      made.showTip(variable ? [shortened(variable.name || "(no name)", 200), formatBytes(variable.most), `${variable.intervals.length} interval(s)`] : null, event);
    });
    made.canvas.addEventListener("click", (event) => select(page()[rowAt(event)]));
    made.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -LIFETIME_ROWS, PageDown: LIFETIME_ROWS }[event.key];
      if (!by) return;
      event.preventDefault();
      const at = Math.min(found.length - 1, Math.max(0, found.indexOf(selected) + by));
      first = Math.min(at, Math.max(first, at - LIFETIME_ROWS + 1));
      select(found[at]);
    });

    function select(variable) {
      selected = variable ?? null;
      facts.replaceChildren(...(variable ? [element("h3", {}, nameOf(variable.name)), simpleTable("When it is live", [["From step", "count"], ["To step", "count"], ["Bytes", "bytes"]],
        variable.intervals.slice(0, 200).map((at) => [intervals.begin[at], intervals.end[at], intervals.bytes[at]]))] : [element("p", {}, "Choose a variable to see its intervals.")]));
      show();
    }
    function show() {
      status.textContent = `${formatCount(found.length)} variables${found.length ? `, ${formatCount(first + 1)} to ${formatCount(Math.min(found.length, first + LIFETIME_ROWS))} shown; the line is step ${formatCount(liveness.step[chosenStep(liveness)])}` : ""}`;
      made.redraw();
    }
    function search(typed) {
      const matches = matcher(typed);
      if (!matches) {
        status.textContent = "That is not a regular expression.";
        return;
      }
      found = all.filter((variable) => matches(variable.name)).sort(orders[order]);
      first = 0;
      show();
    }
    let typed = "";
    const turn = (by) => { first = Math.max(0, Math.min(found.length - 1, first + by * LIFETIME_ROWS)); first -= first % LIFETIME_ROWS; show(); };
    root.append(element("div", { class: "controls" }, searchField("Search", "", (text) => { typed = text; search(text); }),
      choice("Order", [["bytes", "largest first"], ["begin", "by first step"]], order, (chosenOrder) => { order = chosenOrder; search(typed); }),
      button("Previous", () => turn(-1)), button("Next", () => turn(1)), status), made.holder, facts);
    select(null);
    return show;
  },
});

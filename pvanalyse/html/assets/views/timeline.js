const BAR = 18, LANE_GAP = 26, AXIS = 28;

defineView({
  id: "timeline", title: "Timeline", needs: "timeline",
  draw(report, root) {
    const timeline = report.sections.timeline;
    const span = timeline.end - timeline.begin;
    if (!timeline.ipus.length || span <= 0) {
      root.append(element("p", { class: "missing" }, "Nothing took any time."));
      return null;
    }
    const hidden = new Set();
    let window_ = [0, span];
    let found = []; // {lane, block}
    let foundAt = -1;
    let marks = null; // of each lane, which blocks were found
    let selected = null; // {lane, block}
    const lanes = () => timeline.ipus.filter((lane) => !hidden.has(lane.ipu));
    const group = timeline.kinds.indexOf("group");
    const colours = timeline.kinds.map((kind) => timeline.colours[kind]);
    const inks = colours.map(inkOn);
    const status = element("p", { class: "status", role: "status" });
    const facts = element("div", { class: "card", "aria-live": "polite" });
    const where = element("p", { class: "status" });

    const heightOf = (lane) => LANE_GAP + (lane.rows.length - 1) * BAR;
    const duration = (cycles) => timeline.clock ? `${formatCount(Math.round(cycles))} cycles, ${formatSeconds(cycles / timeline.clock)}` : `${formatCount(Math.round(cycles))} cycles`;
    const toX = (cycle, width) => ((cycle - window_[0]) / (window_[1] - window_[0])) * width;
    const toCycle = (x, width) => window_[0] + (x / width) * (window_[1] - window_[0]);

    function paintRow(context, lane, depth, y, width) {
      const [low, high] = window_;
      let painted = -1; // what is less than a pixel wide is painted once
      context.font = "11px system-ui, sans-serif";
      for (let at = lane.rows[depth]; at < lane.rows[depth + 1]; at++) {
        const begin = lane.begin[at];
        if (begin > high) break;
        const end = begin + lane.length[at];
        if (end < low) continue;
        const left = Math.max(0, toX(begin, width));
        const right = Math.min(width, toX(end, width));
        const faded = marks && !marks.get(lane)[at];
        if (right - left < 1) {
          if (faded || Math.floor(left) === painted) continue;
          painted = Math.floor(left);
          context.fillStyle = colours[lane.kind[at]];
          context.fillRect(painted, y, 1, BAR - 2);
          continue;
        }
        context.globalAlpha = faded ? 0.18 : 1;
        context.fillStyle = colours[lane.kind[at]];
        context.fillRect(left, y, Math.max(1, right - left - 0.5), BAR - 2);
        if (right - left > 34) {
          context.fillStyle = faded ? colourOf("ink") : inks[lane.kind[at]];
          context.fillText(shortened(lane.name.at(at) || lane.type.at(at), Math.floor((right - left - 6) / 6)), left + 3, y + 12, right - left - 6);
        }
        context.globalAlpha = 1;
      }
    }

    const made = picture({
      label: "What each IPU did when, as nested blocks; left and right arrow choose a block, plus and minus zoom, 0 shows all",
      height: () => AXIS + lanes().reduce((sum, lane) => sum + heightOf(lane), 0) + 6,
      paint(context, width) {
        paintAxis(context, width);
        let y = AXIS;
        for (const lane of lanes()) {
          context.font = "12px system-ui, sans-serif";
          context.fillStyle = colourOf("ink");
          context.fillText(`IPU ${lane.ipu}`, 4, y + 16);
          y += LANE_GAP - 4;
          for (let depth = 0; depth < lane.rows.length - 1; depth++) paintRow(context, lane, depth, y + depth * BAR, width);
          if (selected?.lane === lane) {
            const [left, top, wide] = boxOf(selected, y, width);
            context.strokeStyle = colourOf("ink");
            context.lineWidth = 2;
            context.strokeRect(left - 1, top - 1, Math.max(3, wide + 1), BAR);
          }
          y += (lane.rows.length - 1) * BAR + 4;
        }
        where.textContent = `From cycle ${formatCount(Math.round(window_[0]))}, ${duration(window_[1] - window_[0])}`;
      },
    });

    function boxOf({ lane, block }, y, width) {
      const depth = lane.rows.findLastIndex((start) => start <= block);
      const left = toX(lane.begin[block], width);
      return [left, y + depth * BAR, toX(lane.begin[block] + lane.length[block], width) - left];
    }

    function paintAxis(context, width) {
      const rough = (window_[1] - window_[0]) / Math.max(2, width / 130);
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = colourOf("soft");
      for (let cycle = Math.ceil(window_[0] / step) * step; cycle <= window_[1]; cycle += step) {
        const x = toX(cycle, width);
        context.fillRect(x, 18, 1, 6);
        context.fillText(formatCount(cycle), Math.min(x + 3, width - 60), 14);
      }
    }

    function under(event) {
      const width = made.holder.clientWidth;
      const [x, y] = made.pointAt(event);
      const cycle = toCycle(x, width);
      const slack = (window_[1] - window_[0]) / width;
      let top = AXIS;
      for (const lane of lanes()) {
        const depth = Math.floor((y - top - LANE_GAP + 4) / BAR);
        if (depth >= 0 && depth < lane.rows.length - 1) {
          for (let at = lane.rows[depth]; at < lane.rows[depth + 1] && lane.begin[at] <= cycle + slack; at++) {
            if (cycle <= lane.begin[at] + lane.length[at] + slack && cycle >= lane.begin[at] - slack) return { lane, block: at };
          }
          return null;
        }
        top += heightOf(lane);
      }
      return null;
    }

    const factsOf = ({ lane, block }) => [
      ["Name", lane.name.at(block), ""], ["Whole name", wholeName(lane, block, group), ""], ["Type", lane.type.at(block), ""], ["Kind", timeline.kinds[lane.kind[block]], ""], ["IPU", lane.ipu, "count"],
      ["From cycle", lane.begin[block], "count"], ["In the report", timeline.begin + lane.begin[block], "count"], ["Cycles", lane.length[block], "cycles"],
      ...(timeline.clock ? [["Time", lane.length[block] / timeline.clock, "s"]] : []), ...(lane.steps[block] ? [["Steps", lane.steps[block], "count"]] : [])];

    function select(one) {
      selected = one;
      facts.replaceChildren(...(one ? [element("h3", {}, "Block"), factList(factsOf(one))] : [element("p", {}, "Choose a block to see what it is.")]));
      made.redraw();
    }

    function zoomTo(low, high) {
      const wide = Math.max(Math.min(10, span), Math.min(span, high - low));
      const from = Math.max(0, Math.min(span - wide, low));
      window_ = [from, from + wide];
      made.redraw();
    }
    function zoom(factor, centre = (window_[0] + window_[1]) / 2) {
      zoomTo(centre - (centre - window_[0]) * factor, centre + (window_[1] - centre) * factor);
    }
    const pan = (share) => zoomTo(window_[0] + share * (window_[1] - window_[0]), window_[1] + share * (window_[1] - window_[0]));
    function bring({ lane, block }) {
      const length = lane.length[block];
      const begin = lane.begin[block];
      if (length < (window_[1] - window_[0]) / 200 || begin < window_[0] || begin + length > window_[1]) zoomTo(begin - 4 * length - 20, begin + 5 * length + 20);
      select({ lane, block });
    }

    // The wheel zooms only with Ctrl or after the picture was chosen, so that the page can be scrolled past it.
    made.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== made.canvas) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / made.holder.clientWidth);
      else zoom(Math.exp(event.deltaY / 400), toCycle(made.pointAt(event)[0], made.holder.clientWidth));
    }, { passive: false });
    let drag = null;
    made.canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, window: window_, moved: false };
      made.canvas.setPointerCapture(event.pointerId);
    });
    made.canvas.addEventListener("pointermove", (event) => {
      if (drag) {
        const by = ((drag.x - event.clientX) / made.holder.clientWidth) * (drag.window[1] - drag.window[0]);
        drag.moved ||= Math.abs(drag.x - event.clientX) > 3;
        if (drag.moved) zoomTo(drag.window[0] + by, drag.window[1] + by);
        return;
      }
      const one = under(event);
      made.showTip(one ? [shortened(wholeName(one.lane, one.block, group) || "(no name)", 200), `${one.lane.type.at(one.block)}, ${duration(one.lane.length[one.block])}`] : null, event);
    });
    made.canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) select(under(event));
      drag = null;
    });
    made.canvas.addEventListener("dblclick", (event) => {
      const one = under(event);
      if (one) zoomTo(one.lane.begin[one.block], one.lane.begin[one.block] + one.lane.length[one.block]);
    });
    made.canvas.addEventListener("keydown", (event) => {
      const actions = {
        "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), 0: () => zoomTo(0, span),
        ArrowLeft: () => moveBlock(event.shiftKey ? -10 : -1), ArrowRight: () => moveBlock(event.shiftKey ? 10 : 1),
        ArrowUp: () => moveRow(-1), ArrowDown: () => moveRow(1), a: () => pan(-0.3), d: () => pan(0.3), Escape: () => select(null),
      };
      if (!(event.key in actions) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      actions[event.key]();
    });

    function moveBlock(by) {
      if (!selected) {
        const lane = lanes()[0];
        if (lane) bring({ lane, block: 0 });
        return;
      }
      const { lane, block } = selected;
      const depth = lane.rows.findLastIndex((start) => start <= block);
      bring({ lane, block: Math.min(lane.rows[depth + 1] - 1, Math.max(lane.rows[depth], block + by)) });
    }
    function moveRow(by) {
      if (!selected) return moveBlock(0);
      const { lane, block } = selected;
      const depth = lane.rows.findLastIndex((start) => start <= block) + by;
      if (depth < 0 || depth >= lane.rows.length - 1) return null;
      const middle = lane.begin[block] + (by < 0 ? lane.length[block] / 2 : 0);
      let nearest = lane.rows[depth];
      for (let at = nearest; at < lane.rows[depth + 1] && lane.begin[at] <= middle; at++) nearest = at;
      return bring({ lane, block: nearest });
    }

    function search(typed, next) {
      const matches = matcher(typed);
      if (!matches) {
        status.textContent = "That is not a regular expression.";
        return;
      }
      if (next && found.length && search.last === typed) {
        turn(1);
        return;
      }
      search.last = typed;
      marks = typed ? new Map(timeline.ipus.map((lane) => [lane, new Uint8Array(lane.begin.length)])) : null;
      found = [];
      foundAt = -1;
      let cycles = 0;
      for (const lane of typed ? lanes() : []) {
        for (let at = 0; at < lane.begin.length; at++) {
          if (!matches(wholeName(lane, at, group))) continue;
          marks.get(lane)[at] = 1;
          // What is within something that was found is found with it.
          if (lane.kind[at] !== group) {
            found.push({ lane, block: at });
            cycles += lane.length[at];
          }
        }
      }
      status.textContent = typed ? `${formatCount(found.length)} blocks match, ${formatCount(cycles)} cycles in all` : "";
      made.redraw();
    }
    function turn(by) {
      if (!found.length) return;
      foundAt = (foundAt + by + found.length) % found.length;
      bring(found[foundAt]);
    }

    const toggles = timeline.ipus.length < 2 ? [] : timeline.ipus.map((lane) => element("label", { class: "field" }, element("input", {
      type: "checkbox", checked: true, onchange: (event) => {
        if (event.target.checked) hidden.delete(lane.ipu);
        else hidden.add(lane.ipu);
        made.redraw();
      },
    }), `IPU ${lane.ipu}`));
    const present = new Set(timeline.ipus.flatMap((lane) => [...new Set(lane.kind)]));
    const key = element("p", { class: "key" }, ...timeline.kinds.map((kind, at) => present.has(at) ? element("span", {}, swatch({ colour: colours[at], hatch: "" }), kind) : null));
    root.append(element("div", { class: "controls" }, searchField("Search", "", search), button("Previous", () => turn(-1)), button("Next", () => turn(1)), status),
      element("div", { class: "controls" }, button("Closer", () => zoom(0.6)), button("Further", () => zoom(1 / 0.6)), button("All", () => zoomTo(0, span)), ...toggles, where),
      key, made.holder, element("p", { class: "status" }, "Cycles are counted from the first block. Drag to move; with the picture chosen, or with Ctrl, the wheel zooms; double-click a block to fill the picture with it."), facts);
    select(null);
    return made.redraw;
  },
});

/** The group that each block of a lane is in, −1 for none; found once. */
function groupsOf(lane, group) {
  if (lane.groups) return lane.groups;
  lane.groups = new Int32Array(lane.begin.length).fill(-1);
  for (let depth = 1; depth < lane.rows.length - 1; depth++) {
    let above = lane.rows[depth - 1];
    for (let at = lane.rows[depth]; at < lane.rows[depth + 1]; at++) {
      const end = lane.begin[at] + lane.length[at];
      while (above < lane.rows[depth] && (lane.kind[above] !== group || lane.begin[above] + lane.length[above] < end)) above++;
      if (above < lane.rows[depth] && lane.begin[above] <= lane.begin[at]) lane.groups[at] = above;
    }
  }
  return lane.groups;
}

/** A block's name after those of the groups it is in. */
function wholeName(lane, block, group) {
  const groups = groupsOf(lane, group);
  const parts = [];
  for (let at = block; at >= 0; at = groups[at]) parts.unshift(lane.name.at(at));
  return parts.filter((part) => part).join("/");
}

defineView({
  id: "tile", title: "Tile", needs: "memory", also: ["tiles"],
  draw(report, root) {
    const memory = report.sections.memory;
    const { maps, interleavedBegin, missing } = report.sections.tiles;
    const field = tileField(memory);
    const facts = element("div", { class: "card", "aria-live": "polite" });
    const layers = element("div", { class: "card" });
    const above = element("div", {});
    const rest = element("div", {});
    const known = maps ? Object.keys(maps).map(Number) : [];
    let shown = -1;

    const nearest = (by) => {
      const at = known.indexOf(chosenTile(memory));
      const order = known.filter((tile) => by > 0 ? tile > chosenTile(memory) : tile < chosenTile(memory));
      return at >= 0 || order.length ? (by > 0 ? order[0] : order.at(-1)) : undefined;
    };
    const step = (by) => {
      const tile = nearest(by);
      if (tile !== undefined) choose({ tile });
    };

    function drawMap(tile) {
      const map = maps?.[tile];
      if (!map) {
        rest.replaceChildren();
        above.replaceChildren(element("p", { class: "missing" }, missing ?? `What lies where on tile ${tile} is not in this page; 'pvanalyse memory REPORT --map ${tile}' shows it.`),
          known.length ? element("p", {}, "Memory maps are here for: ", ...known.flatMap((one) => [element("a", { href: addressOf({ view: "tile", tile: one }) }, String(one)), " "])) : "");
        return;
      }
      above.replaceChildren(memoryMap(map, tile, memory, interleavedBegin, report.sections.liveness));
      rest.replaceChildren(element("div", { class: "card" }, element("h3", {}, "What is on it"), dataTable([
        { label: "Name", unit: "", values: map.name }, { label: "Bytes", unit: "bytes", values: map.bytes },
        { label: "Category", unit: "", values: map.category }, { label: "What", unit: "", values: map.kind }, { label: "Region", unit: "", values: map.region },
        { label: "From", unit: "address", values: map.begin, sums: false }, { label: "To", unit: "address", values: map.end, sums: false },
        { label: "Always live", unit: "", values: map.always_live },
        { label: "First step", unit: "count", values: map.first_step, sums: false }, { label: "Last step", unit: "count", values: map.last_step, sums: false },
      ], { caption: `Allocations and gaps of tile ${tile}`, length: map.length, sort: [1, true], groupable: true })));
    }

    function update() {
      const tile = chosenTile(memory);
      const at = tileAt(memory, tile);
      field.show(tile);
      if (tile === shown) return;
      shown = tile;
      facts.replaceChildren(element("h3", {}, `Tile ${formatCount(tile)}`), factList(tileFacts(memory, tile)));
      layers.replaceChildren(...Object.entries(memory.layers).map(([by, all]) => {
        const rows = all.filter((layer) => layer.bytes[at]).map((layer) => [layer.name, layer.bytes[at]]).sort((one, other) => other[1] - one[1]);
        return simpleTable(`By ${LAYER_TITLES[by]}`, [["Part", ""], ["Bytes", "bytes"]], rows);
      }));
      drawMap(tile);
    }
    root.append(element("div", { class: "controls" }, field, button("Fullest tile", () => choose({ tile: undefined })),
      button("Previous with a map", () => step(-1)), button("Next with a map", () => step(1))), above, element("div", { class: "two" }, facts, layers), rest);
    update();
    return update;
  },
});

const CATEGORY_COLOURS = (memory) => new Map((memory.layers.category ?? []).map((layer) => [layer.name, layer.colour]));

/** Addresses from left to right, steps from top to bottom; what is always live reaches all the way down. */
function memoryMap(map, tile, memory, interleavedBegin, liveness) {
  const colours = CATEGORY_COLOURS(memory);
  let high = memory.bytesPerTile ?? 0;
  let numSteps = liveness?.numSteps ?? 1;
  for (let at = 0; at < map.length; at++) {
    if (map.end[at] > high) high = map.end[at];
    if (map.last_step[at] > numSteps) numSteps = map.last_step[at];
  }
  const LEFT = 60, TOP = 10, TALL = 300;
  const toX = (address, width) => LEFT + (address / high) * (width - LEFT - 10);
  const toY = (step) => TOP + (step / numSteps) * TALL;
  const box = (at, width) => {
    const forever = map.always_live.at(at) === "yes" || Number.isNaN(map.first_step[at]);
    const x = toX(map.begin[at], width);
    const y = forever ? TOP : toY(map.first_step[at]);
    return [x, y, toX(map.end[at], width) - x, (forever ? TOP + TALL : toY(map.last_step[at])) - y];
  };
  const placed = Array.from({ length: map.length }, (_, at) => at).filter((at) => !Number.isNaN(map.begin[at]));
  const made = picture({
    label: `Memory map of tile ${tile}: addresses from left to right, steps from top to bottom; the table below lists the same`,
    height: TALL + 50,
    paint(context, width) {
      context.font = "12px system-ui, sans-serif";
      for (const at of placed) {
        const isGap = map.kind.at(at) === "gap";
        context.fillStyle = isGap ? colourOf("grid") : colours.get(map.category.at(at)) ?? "#999999";
        const [x, y, wide, tall] = box(at, width);
        context.fillRect(x, y, Math.max(0.5, wide), Math.max(0.5, tall));
      }
      context.fillStyle = colourOf("ink");
      context.strokeStyle = colourOf("line");
      context.strokeRect(LEFT, TOP, width - LEFT - 10, TALL);
      context.fillText("step 0", 4, TOP + 10);
      context.fillText(formatCount(numSteps), 4, TOP + TALL);
      const ticks = byteTicks(high);
      ticks.tickvals.forEach((tick, at) => {
        const x = toX(tick, width);
        if (x > width - 20) return;
        context.fillRect(x, TOP + TALL, 1, 5);
        context.fillText(ticks.ticktext[at], x - 14, TOP + TALL + 18);
      });
      for (const [address, text, colour] of [[interleavedBegin, "interleaved from here", "ink"], [memory.bytesPerTile, "end of memory", "bad"]]) {
        if (address === null || address === undefined || address > high) continue;
        context.fillStyle = colourOf(colour);
        const x = toX(address, width);
        context.fillRect(x - 1, TOP, 2, TALL + 24);
        const textWidth = context.measureText(text).width;
        context.fillText(text, Math.min(x + 4, width - textWidth - 4), TOP + TALL + 34);
      }
    },
  });
  made.canvas.addEventListener("pointermove", (event) => {
    const [x, y] = made.pointAt(event);
    const at = placed.findLast((one) => {
      const [left, top, wide, tall] = box(one, made.holder.clientWidth);
      return x >= left && x <= left + Math.max(1, wide) && y >= top && y <= top + tall;
    });
    made.showTip(at === undefined ? null : [map.kind.at(at) === "gap" ? "gap" : shortened(map.name.at(at) || "(no name)", 120),
      `${formatBytes(map.bytes[at])}, ${map.category.at(at)}`, `${FORMATS.address(map.begin[at])} to ${FORMATS.address(map.end[at])}`,
      map.always_live.at(at) === "yes" ? "always live" : Number.isNaN(map.first_step[at]) ? "" : `steps ${map.first_step[at]} to ${map.last_step[at]}`], event);
  });
  return made.holder;
}

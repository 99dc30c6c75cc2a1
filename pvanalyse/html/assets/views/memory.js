const LAYER_TITLES = { category: "storage category", region: "memory region", liveness: "liveness" };
const HATCHES = { "/": "/", ".": ".", x: "x", "\\": "\\", "+": "+", o: ".", "|": "|" };

/** The position of a tile, which in nearly every report is its number; -1 when it is not there. */
function tileAt(memory, tile) {
  return memory.tile[tile] === tile ? tile : memory.tile.indexOf(tile);
}

/** The tile that was chosen, or the fullest. */
function chosenTile(memory) {
  if (chosen.tile !== undefined && tileAt(memory, chosen.tile) >= 0) return chosen.tile;
  let fullest = 0;
  for (let at = 1; at < memory.total.length; at++) if (memory.total[at] > memory.total[fullest]) fullest = at;
  return memory.tile[fullest];
}

const ipuOf = (memory, tile) => memory.tilesPerIpu ? Math.floor(tile / memory.tilesPerIpu) : null;

/** What is known of a tile, as facts. */
function tileFacts(memory, tile) {
  const at = tileAt(memory, tile);
  const ipu = ipuOf(memory, tile);
  const free = memory.bytesPerTile === null ? [] : [["Free", memory.bytesPerTile - memory.total[at], "bytes"]];
  return [
    ["Tile", tile, "count"], ...(ipu === null ? [] : [["IPU", ipu, "count"]]),
    ["Including gaps", memory.total[at], "bytes"], ["Excluding gaps", memory.excluding[at], "bytes"], ...free,
    ...(memory.over[at] ? [["Does not fit", memory.over[at], "bytes"]] : []),
  ];
}

function moveTile(memory, by) {
  const at = tileAt(memory, chosenTile(memory));
  choose({ tile: memory.tile[Math.min(memory.tile.length - 1, Math.max(0, at + by))] });
}

/** Fields to choose a tile by number, or the fullest. */
function tileField(memory) {
  return numberField("Tile", 0, memory.tile.at(-1), (tile) => choose({ tile: tileAt(memory, tile) >= 0 ? tile : undefined }));
}

/** Positions of tiles to draw for a range of tile numbers: all of them, or the fullest of each stretch. */
function tilesToDraw(memory, range, most) {
  const from = range ? lowerBound(memory.tile, Math.floor(range[0])) : 0;
  const to = range ? lowerBound(memory.tile, Math.ceil(range[1]) + 1) : memory.tile.length;
  const count = to - from;
  if (count <= most) return { shown: Array.from({ length: count }, (_, at) => from + at), each: 1 };
  const each = Math.ceil(count / most);
  const shown = [];
  for (let low = from; low < to; low += each) {
    let fullest = low;
    for (let at = low; at < Math.min(to, low + each); at++) if (memory.total[at] > memory.total[fullest]) fullest = at;
    shown.push(fullest);
  }
  return { shown, each };
}

defineView({
  id: "memory", title: "Memory by tile", needs: "memory",
  draw(report, root) {
    const memory = report.sections.memory;
    const kinds = Object.keys(memory.layers);
    const by = () => kinds.includes(chosen.by) ? chosen.by : kinds[0];
    const facts = element("div", { class: "card", "aria-live": "polite" });
    const remark = element("p", { class: "status" });
    const field = tileField(memory);
    const byField = choice("By", kinds.map((kind) => [kind, LAYER_TITLES[kind]]), by(), (kind) => choose({ by: kind }));
    const controls = element("div", { class: "controls" },
      byField, field,
      button("Fullest tile", () => choose({ tile: undefined })),
      button("What lies where on this tile", () => goTo("tile", { tile: chosenTile(memory) })),
      remark);
    const legend = element("div", { class: "card" });
    const most = largest(memory.total);

    const made = chart({
      label: `Memory of ${formatCount(memory.tile.length)} tiles, the fullest with ${formatBytes(most)}; left and right arrow choose a tile, whose sizes are listed below`,
      height: 430,
      onpick: (tile) => choose({ tile }),
      onstep: (step) => moveTile(memory, step),
      build(range) {
        const { shown, each } = tilesToDraw(memory, range, 1500);
        remark.textContent = each > 1 ? `Each column is the fullest of ${each} tiles; zoom in for every tile.` : "Every tile in the range is drawn.";
        const x = shown.map((at) => memory.tile[at]);
        const traces = memory.layers[by()].map((layer) => ({
          type: "scatter", mode: "lines", stackgroup: "tiles", name: chartText(layer.name), x, y: shown.map((at) => layer.bytes[at]),
          line: { width: 0, shape: "hvh", color: layer.colour }, fillcolor: layer.colour,
          fillpattern: layer.hatch ? { shape: HATCHES[layer.hatch] ?? "/", fgcolor: inkOn(layer.colour), bgcolor: layer.colour, size: 6, solidity: 0.25 } : undefined,
          hoverinfo: "none",
        }));
        traces.push({
          type: "scatter", mode: "lines", name: "total with gaps", x, y: shown.map((at) => memory.total[at]), line: { width: shown.length > 600 ? 0 : 1, shape: "hvh", color: colourOf("ink") },
          customdata: shown.map((at) => formatBytes(memory.total[at])), hovertemplate: "tile %{x}: %{customdata}<extra></extra>",
        });
        const limit = memory.bytesPerTile;
        const highest = largestOf("memory", (one) => largest(one.total));
        const top = limit !== null && limit < 10 * highest ? Math.max(highest, limit) : highest;
        const shapes = [{ type: "line", x0: chosenTile(memory), x1: chosenTile(memory), y0: 0, y1: 1, yref: "paper", line: { color: colourOf("accent"), width: 2 } }];
        const annotations = [];
        if (limit !== null && limit <= top) {
          shapes.push({ type: "line", x0: 0, x1: 1, xref: "paper", y0: limit, y1: limit, line: { color: colourOf("bad"), width: 2, dash: "dash" } });
          annotations.push({ xref: "paper", x: 1, xanchor: "right", y: limit, yanchor: "bottom", text: `a tile holds ${formatBytes(limit)}`, showarrow: false, font: { color: colourOf("bad") } });
        }
        return { traces, layout: {
          showlegend: false, shapes, annotations, hovermode: "closest", hoverdistance: 40,
          xaxis: { title: { text: "tile" }, tickformat: ",d", range: [memory.tile[0] - 0.5, memory.tile.at(-1) + 0.5] },
          yaxis: { range: [0, top * 1.08], fixedrange: true, ...byteTicks(top) },
        } };
      },
    });

    function update() {
      const tile = chosenTile(memory);
      const at = tileAt(memory, tile);
      const layers = memory.layers[by()];
      field.show(tile);
      byField.show(by());
      facts.replaceChildren(element("h3", {}, `Tile ${formatCount(tile)}`), factList(tileFacts(memory, tile)));
      const rows = layers.map((layer) => {
        let sum = 0;
        for (const size of layer.bytes) sum += size;
        return [layer, layer.bytes[at], sum];
      }).reverse();
      legend.replaceChildren(element("h3", {}, `By ${LAYER_TITLES[by()]}`), element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Layers" }, element("table", {},
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Layer"), element("th", { scope: "col", class: "number" }, "This tile"), element("th", { scope: "col", class: "number" }, "All tiles"))),
        element("tbody", {}, ...rows.map(([layer, here, all]) => element("tr", { "data-layer": layer.name },
          element("td", {}, swatch(layer), nameOf(layer.name)),
          element("td", { class: "number", title: String(here) }, formatBytes(here)),
          element("td", { class: "number", title: String(all), "data-exact": String(all) }, formatBytes(all))))))));
      made.redraw();
    }
    root.append(controls, made.holder, element("div", { class: "two" }, facts, legend));
    update();
    return update;
  },
});

/** A patch of a layer's colour and hatch. */
function swatch(layer) {
  const ink = inkOn(layer.colour);
  const lines = { "/": 45, "\\": -45, x: 45, "+": 0, "|": 90, ".": 0, o: 0 }[layer.hatch];
  const background = layer.hatch ? `repeating-linear-gradient(${lines}deg, ${layer.colour} 0 3px, ${ink} 3px 4px)` : layer.colour;
  return element("span", { class: "swatch", "aria-hidden": "true", style: { background } });
}

const MAP_COLOURS = ["#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"]; // cividis
const OVER_COLOUR = "#e6007e";

defineView({
  id: "map", title: "Tile map", needs: "memory",
  draw(report, root) {
    const memory = report.sections.memory;
    const plan = memory.plan;
    if (!plan) {
      root.append(element("p", { class: "missing" }, "The tiles of this report cannot be laid out on a map."));
      return null;
    }
    const measures = [["total", "total including gaps", memory.total], 
      ...Object.entries(memory.layers).flatMap(([by, layers]) => layers.map((layer) => [`${by}: ${layer.name}`, layer.name, layer.bytes]))];
    const measure = () => measures.find(([id]) => id === chosen.measure) ?? measures[0];
    const cells = new Map();
    for (let at = 0; at < memory.tile.length; at++) cells.set(plan.row[at] * 65536 + plan.column[at], at);
    const gridColumns = Math.max(...plan.panelColumn) + plan.panelColumns;
    const gridRows = Math.max(...plan.panelRow) + plan.panelRows;
    const cellSize = (width) => Math.max(2, Math.min(gridRows > 40 ? 16 : 30, (width - 20) / gridColumns));
    const facts = element("div", { class: "card", "aria-live": "polite" });
    const scale = element("p", { class: "status" });
    const field = tileField(memory);
    const measureField = choice("Colour by", measures.map(([id, name]) => [id, shortened(name, 60)]), measure()[0], (id) => choose({ measure: id }));
    const toX = (column, size) => 10 + column * size;
    const toY = (row, size) => 24 + row * size;

    const colourAt = (at, values, top) => measure()[0] === "total" && memory.over[at] ? OVER_COLOUR
      : MAP_COLOURS[Math.max(0, Math.min(MAP_COLOURS.length - 1, Math.floor((values[at] / (top || 1)) * MAP_COLOURS.length)))];

    const made = picture({
      label: `Map of ${formatCount(memory.tile.length)} tiles, coloured by how much each holds; left and right arrow choose a tile, up and down one in the row above or below`,
      height: (width) => 34 + gridRows * cellSize(width),
      paint(context, width) {
        const size = cellSize(width);
        const [id, , values] = measure();
        const top = id === "total" && memory.bytesPerTile ? memory.bytesPerTile : largest(values);
        const gap = size > 5 ? 1 : 0;
        for (let at = 0; at < memory.tile.length; at++) {
          context.fillStyle = colourAt(at, values, top);
          context.fillRect(toX(plan.column[at], size), toY(plan.row[at], size), size - gap, size - gap);
        }
        context.fillStyle = colourOf("ink");
        context.font = "12px system-ui, sans-serif";
        plan.panelRow.forEach((row, ipu) => {
          if (plan.panelRow.length > 1) context.fillText(`IPU ${ipu}`, toX(plan.panelColumn[ipu], size), toY(row, size) - 4);
        });
        const selected = tileAt(memory, chosenTile(memory));
        for (const [colour, wide] of [["#ffffff", 5], ["#000000", 2]]) {
          context.strokeStyle = colour;
          context.lineWidth = wide;
          context.strokeRect(toX(plan.column[selected], size) - 2, toY(plan.row[selected], size) - 2, size + 3, size + 3);
        }
      },
    });

    const under = (event) => {
      const size = cellSize(made.holder.clientWidth);
      const [x, y] = made.pointAt(event);
      return cells.get(Math.floor((y - 24) / size) * 65536 + Math.floor((x - 10) / size));
    };
    made.canvas.addEventListener("pointermove", (event) => {
      const at = under(event);
      const [, name, values] = measure();
      made.showTip(at === undefined ? null : [`Tile ${memory.tile[at]}${memory.tilesPerIpu ? `, IPU ${ipuOf(memory, memory.tile[at])}` : ""}`, `${name}: ${formatBytes(values[at])}`], event);
    });
    made.canvas.addEventListener("click", (event) => {
      const at = under(event);
      if (at !== undefined) choose({ tile: memory.tile[at] });
    });
    made.canvas.addEventListener("dblclick", () => goTo("tile", { tile: chosenTile(memory) }));
    made.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -plan.panelColumns, ArrowDown: plan.panelColumns }[event.key];
      if (event.key === "Enter") goTo("tile", { tile: chosenTile(memory) });
      if (!by) return;
      event.preventDefault();
      moveTile(memory, by * (event.shiftKey ? 10 : 1));
    });

    function update() {
      const [id, name, values] = measure();
      const top = id === "total" && memory.bytesPerTile ? memory.bytesPerTile : largest(values);
      const tile = chosenTile(memory);
      field.show(tile);
      measureField.show(id);
      scale.replaceChildren(`0 B `, ...MAP_COLOURS.map((colour) => element("span", { class: "shade", "aria-hidden": "true", style: { background: colour } })),
        ` ${formatBytes(top)}`, ...(id === "total" ? [" ", element("span", { class: "shade", "aria-hidden": "true", style: { background: OVER_COLOUR } }), " does not fit"] : []));
      facts.replaceChildren(element("h3", {}, `Tile ${formatCount(tile)}`), factList([...tileFacts(memory, tile), ...(id === "total" ? [] : [[name, values[tileAt(memory, tile)], "bytes"]])]),
        element("p", {}, element("a", { href: addressOf({ view: "tile", tile }) }, "What lies where on this tile")));
      made.redraw();
    }
    root.append(element("div", { class: "controls" }, measureField, field, button("Fullest tile", () => choose({ tile: undefined })), scale), made.holder, facts);
    update();
    return update;
  },
});

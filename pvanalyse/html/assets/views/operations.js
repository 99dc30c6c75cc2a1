defineView({
  id: "operations", title: "Operations", needs: "operations",
  draw(report, root) {
    const { tables } = report.sections.operations;
    const holder = element("div", {});
    const current = () => tables.find((table) => table.key === chosen.table) ?? tables[0];
    const field = choice("Show", tables.map((table) => [table.key, table.label]), current().key, (key) => choose({ table: key }));
    let shown = null;
    function update() {
      field.show(current().key);
      if (shown === current()) return;
      shown = current();
      const sizes = shown.columns.findIndex((column) => column.key === shown.sort);
      const summed = (column) => !["fraction"].includes(column.unit) && !column.key.startsWith("largest_") && column.key !== "num_tiles";
      const columns = shown.columns.map((column) => ({ ...column, sums: summed(column) }));
      holder.replaceChildren(dataTable(columns, { caption: shown.label, length: shown.length, groupable: true, sort: sizes >= 0 ? [sizes, true] : null }));
    }
    root.append(element("div", { class: "controls" }, field),
      element("div", { class: "card" }, holder));
    update();
    return update;
  },
});

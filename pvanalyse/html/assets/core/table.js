// Tables to sort, filter and group. Rows stay where they are, in typed arrays; a table shows positions of them.

const ROWS_AT_ONCE = 50;

/**
 * Make a table.
 * columns: [{label, unit, values}], values a typed array, an array or Texts; unit "" for texts.
 * options: caption, length, onselect(row), searchable (default true), groupable, sort: [column, descending].
 * Its method show(columns, options) shows other rows of such columns, filtered, sorted and grouped as before.
 */
function dataTable(columns, options) {
  const shape = { search: "", sort: options.sort ?? null, group: -1, shown: ROWS_AT_ONCE, selected: options.selected ?? -1 };
  const textual = columns.map((column) => column.unit === "");
  const value = (row, column) => columns[column].values instanceof Texts ? columns[column].values.at(row) : columns[column].values[row];
  const root = element("div", { class: "data-table" });
  const status = element("p", { class: "status", role: "status" });
  const holder = element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": options.caption });
  const more = element("p", { class: "more" });

  const rowsFound = () => {
    const matches = matcher(shape.search);
    if (!matches) return null;
    const rows = [];
    for (let row = 0; row < options.length; row++) {
      if (!shape.search || textual.some((isText, column) => isText && matches(value(row, column)))) rows.push(row);
    }
    return rows;
  };

  const compare = (one, other) => {
    if (typeof one === "string") return one < other ? -1 : one > other ? 1 : 0;
    return (Number.isNaN(one) ? -Infinity : one) - (Number.isNaN(other) ? -Infinity : other);
  };

  const inOrder = (entries, of) => {
    if (!shape.sort) return entries;
    const [column, descending] = shape.sort;
    return entries.sort((one, other) => (descending ? -1 : 1) * compare(of(one, column), of(other, column)));
  };

  const header = (labels) => element("thead", {}, element("tr", {}, ...labels.map(([label, unit, column]) => {
    const direction = shape.sort?.[0] === column ? (shape.sort[1] ? "descending" : "ascending") : "none";
    const sorting = button(label, () => {
      const descending = shape.sort?.[0] === column ? !shape.sort[1] : unit !== "";
      shape.sort = [column, descending];
      draw();
      holder.querySelectorAll("th button")[labels.findIndex((one) => one[2] === column)]?.focus();
    }, { class: "sort" });
    return element("th", { scope: "col", class: unit ? "number" : null, "aria-sort": direction }, sorting);
  })));

  const cell = (content, unit) => {
    if (typeof content === "string") return element("td", { class: unit ? "number" : null }, content ? nameOf(content) : "");
    return element("td", { class: "number", title: Number.isNaN(content) ? null : String(content) }, written(content, unit));
  };

  const plainBody = (rows) => element("tbody", {}, ...rows.map((row) => {
    const line = element("tr", { class: row === shape.selected ? "selected" : null },
      ...columns.map((column, at) => cell(value(row, at), column.unit)));
    if (options.onselect) {
      const first = line.firstChild;
      const label = first.textContent || "(no name)";
      first.replaceChildren(button(label, () => options.onselect(row), { class: "link" }));
    }
    return line;
  }));

  const groups = (rows) => {
    const found = new Map();
    for (const row of rows) {
      const key = String(value(row, shape.group));
      const group = found.get(key) ?? { key, count: 0, sums: columns.map(() => 0) };
      group.count++;
      columns.forEach((column, at) => {
        if (!textual[at] && !Number.isNaN(value(row, at))) group.sums[at] += value(row, at);
      });
      found.set(key, group);
    }
    return [...found.values()];
  };

  function draw() {
    const rows = rowsFound();
    if (!rows) {
      status.textContent = "That is not a regular expression.";
      return;
    }
    let body, labels, all;
    if (shape.group >= 0) {
      const summed = columns.map((column, at) => at).filter((at) => !textual[at] && columns[at].unit !== "fraction" && columns[at].sums !== false);
      labels = [[columns[shape.group].label, "", shape.group], ["Rows", "count", -1], ...summed.map((at) => [columns[at].label, columns[at].unit, at])];
      all = inOrder(groups(rows), (group, column) => column === -1 ? group.count : column === shape.group ? group.key : group.sums[column]);
      body = element("tbody", {}, ...all.slice(0, shape.shown).map((group) => element("tr", {},
        cell(group.key, ""), cell(group.count, "count"), ...summed.map((at) => cell(group.sums[at], columns[at].unit)))));
    } else {
      labels = columns.map((column, at) => [column.label, column.unit, at]);
      all = inOrder(rows, value);
      body = plainBody(all.slice(0, shape.shown));
    }
    holder.replaceChildren(element("table", {}, element("caption", {}, options.caption), header(labels), body));
    const what = shape.group >= 0 ? "groups" : "rows";
    status.textContent = `${formatCount(all.length)} ${what}${shape.search ? ` of ${formatCount(options.length)} match` : ""}${all.length > shape.shown ? `, the first ${formatCount(shape.shown)} shown` : ""}`;
    more.replaceChildren(...(all.length > shape.shown ? [
      button("Show more", () => { shape.shown += ROWS_AT_ONCE; draw(); }),
      button("Show 1,000 more", () => { shape.shown += 1000; draw(); }),
    ] : []));
  }

  const texts = columns.map((column, at) => [String(at), column.label]).filter(([at]) => textual[at]);
  root.append(element("div", { class: "controls" },
    options.searchable === false ? null : searchField("Filter", "", (typed) => { shape.search = typed; shape.shown = ROWS_AT_ONCE; draw(); }),
    options.groupable ? choice("Group by", [["-1", "nothing"], ...texts], "-1", (chosen) => {
      shape.group = Number(chosen);
      shape.sort = shape.group >= 0 ? null : options.sort ?? null;
      draw();
    }) : null, status), holder, more);
  root.show = (others, changes) => {
    columns = others;
    options = { ...options, ...changes };
    draw();
  };
  draw();
  return root;
}

/** A packed table of the payload, see Making.table. */
function packedTable(table, options) {
  return dataTable(table.columns, { length: table.length, ...options });
}

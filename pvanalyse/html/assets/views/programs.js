const PROGRAMS_AT_ONCE = 200;

/** Where the rows below each row of a tree end. */
function endsOfSubtrees(depth) {
  const ends = new Int32Array(depth.length);
  const open = [];
  for (let row = 0; row <= depth.length; row++) {
    const level = row < depth.length ? depth[row] : -1;
    while (open.length && depth[open.at(-1)] >= level) ends[open.pop()] = row;
    open.push(row);
  }
  return ends;
}

defineView({
  id: "programs", title: "Programs", needs: "programs",
  draw(report, root) {
    const programs = report.sections.programs;
    const ends = endsOfSubtrees(programs.depth);
    const facts = element("div", { class: "card", "aria-live": "polite" });
    const tree = element("div", { class: "card tree", role: "tree", "aria-label": "Programs" });
    const found = element("div", { class: "card" });
    const status = element("p", { class: "status", role: "status" });

    const costs = (row) => [
      ["executions", "executions", "count"], ["cycles", "cycles", "cycles"], ["control_code_bytes", "control code", "bytes"],
      ["exchange_code_bytes", "exchange code", "bytes"], ["live_bytes", "most live, not always", "bytes"],
    ].filter(([key]) => programs[key][row] > 0).map(([key, label, unit]) => [label, programs[key][row], unit]);

    function parents(row) {
      const above = [];
      let level = programs.depth[row];
      for (let at = row - 1; at >= 0 && level > 0; at--) {
        if (programs.depth[at] >= level) continue;
        above.unshift(at);
        level = programs.depth[at];
      }
      return above;
    }

    const titleOf = (row) => {
      const repeat = programs.repeat[row] > 0 ? ` × ${formatCount(programs.repeat[row])}` : "";
      const name = programs.name.at(row);
      return [element("b", {}, programs.type.at(row) || "Unknown"), repeat, " ", name ? nameOf(name, 120) : `program ${programs.id[row]}`];
    };

    function select(row) {
      const above = parents(row).map((one) => programs.name.at(one) || programs.type.at(one));
      facts.replaceChildren(element("h3", {}, ...titleOf(row)), factList([
        ["Program", programs.id[row], "count"], ["Tree", programs.kind.at(row), ""], ...costs(row),
        ...(programs.note.at(row) ? [["Note", programs.note.at(row), ""]] : []), ...(above.length ? [["Below", above.join(" › "), ""]] : [])]),
        element("p", { class: "status" }, "Costs are of the program and everything below it."));
      for (const one of root.querySelectorAll(".selected")) one.classList.remove("selected");
      root.querySelector(`[data-row="${row}"]`)?.classList.add("selected");
    }

    function childrenOf(from, to) {
      const rows = [];
      for (let row = from; row < to; row = ends[row]) rows.push(row);
      return rows;
    }

    function listOf(rows, level) {
      const list = element("ul", { role: level ? "group" : "none" });
      const add = (start) => {
        for (const row of rows.slice(start, start + PROGRAMS_AT_ONCE)) list.append(itemOf(row, level));
        const left = rows.length - start - PROGRAMS_AT_ONCE;
        if (left <= 0) return;
        const more = element("li", { role: "none" }, button(`${formatCount(left)} more`, () => { more.remove(); add(start + PROGRAMS_AT_ONCE); }));
        list.append(more);
      };
      add(0);
      return list;
    }

    function itemOf(row, level) {
      const hasChildren = ends[row] > row + 1;
      const cost = costs(row).filter(([label]) => label === "cycles" || label.endsWith("code")).map(([label, value, unit]) => `${written(value, unit)} ${label}`).join(", ");
      const note = programs.note.at(row);
      const mark = element("span", { class: "mark", "aria-hidden": "true" }, hasChildren ? "▸" : "·");
      const line = element("span", { class: "line", "data-row": row }, mark, ...titleOf(row), element("span", { class: "cost" }, ` ${cost}${note ? ` (${note})` : ""}`));
      const item = element("li", { role: "treeitem", tabindex: "-1", "aria-level": level + 1, "aria-expanded": hasChildren ? "false" : null }, line);
      item.toggle = (open) => {
        if (!hasChildren || (item.getAttribute("aria-expanded") === "true") === open) return;
        item.setAttribute("aria-expanded", String(open));
        mark.textContent = open ? "▾" : "▸";
        if (open) item.append(listOf(childrenOf(row + 1, ends[row]), level + 1));
        else item.querySelector("ul").remove();
      };
      item.row = row;
      line.addEventListener("click", () => { item.toggle(item.getAttribute("aria-expanded") === "false"); focusOn(item); });
      if (level < 1) item.toggle(true);
      return item;
    }

    function focusOn(item) {
      for (const one of tree.querySelectorAll('[tabindex="0"]')) one.tabIndex = -1;
      item.tabIndex = 0;
      item.focus({ preventScroll: false });
      select(item.row);
    }

    tree.addEventListener("keydown", (event) => {
      const item = event.target.closest("li[role=treeitem]");
      if (!item) return;
      const items = [...tree.querySelectorAll("li[role=treeitem]")];
      const at = items.indexOf(item);
      const expanded = item.getAttribute("aria-expanded");
      const moves = {
        ArrowDown: () => items[at + 1], ArrowUp: () => items[at - 1], Home: () => items[0], End: () => items.at(-1),
        ArrowRight: () => expanded === "false" ? (item.toggle(true), item) : expanded === "true" ? items[at + 1] : item,
        ArrowLeft: () => expanded === "true" ? (item.toggle(false), item) : item.parentElement.closest("li[role=treeitem]"),
        Enter: () => item,
      };
      if (!(event.key in moves)) return;
      event.preventDefault();
      event.stopPropagation();
      const target = moves[event.key]();
      if (target) focusOn(target);
    });

    /** Open the tree down to a row and select it. */
    function reveal(row) {
      let item = null;
      for (const one of [...parents(row), row]) {
        item = [...tree.querySelectorAll("li[role=treeitem]")].find((candidate) => candidate.row === one);
        while (!item) {
          const more = [...tree.querySelectorAll("li[role=none] > button")].at(-1);
          if (!more) return;
          more.click();
          item = [...tree.querySelectorAll("li[role=treeitem]")].find((candidate) => candidate.row === one);
        }
        if (one !== row) item.toggle(true);
      }
      focusOn(item);
    }

    function search(typed) {
      const matches = matcher(typed);
      if (!matches) {
        status.textContent = "That is not a regular expression.";
        return;
      }
      found.hidden = typed === "";
      status.textContent = "";
      if (typed === "") return;
      const rows = [];
      for (let row = 0; row < programs.length; row++) {
        if (!["shared", "cycle"].includes(programs.note.at(row)) && (matches(programs.name.at(row)) || matches(programs.type.at(row)))) rows.push(row);
      }
      status.textContent = `${formatCount(rows.length)} programs match`;
      const pick = (values) => rows.map((row) => values instanceof Texts ? values.at(row) : values[row]);
      found.replaceChildren(element("h3", {}, "Found"), dataTable([
        { label: "Program", unit: "", values: rows.map((row) => programs.name.at(row) || `program ${programs.id[row]}`) },
        { label: "Type", unit: "", values: pick(programs.type) }, { label: "Executions", unit: "count", values: pick(programs.executions) },
        { label: "Cycles", unit: "cycles", values: pick(programs.cycles) }, { label: "Control code", unit: "bytes", values: pick(programs.control_code_bytes) },
        { label: "Exchange code", unit: "bytes", values: pick(programs.exchange_code_bytes) },
      ], { caption: "Programs that match, with what is below them", length: rows.length, searchable: false, groupable: true, onselect: (at) => reveal(rows[at]) }));
    }

    tree.append(listOf(childrenOf(0, programs.length), 0));
    const top = tree.querySelector("li[role=treeitem]");
    if (top) top.tabIndex = 0;
    found.hidden = true;
    facts.append(element("p", {}, "Choose a program to see what it costs."));
    root.append(element("div", { class: "controls" }, searchField("Search", "", search), status), found, element("div", { class: "two wide-left" }, tree, facts));
    return null;
  },
});

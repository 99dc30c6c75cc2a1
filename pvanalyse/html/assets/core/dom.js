// Elements. Text only ever goes in as text: nothing here, or anywhere in the page, sets HTML.

const LONGEST_NAME = 160;

/** Make an element: element("p", {class: "note", onclick: f}, "text", child, …); null children are left out. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(made.style, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

const byId = (id) => document.getElementById(id);

/** A name, cut in the middle when it is very long; the whole one appears when it is pointed at. */
function nameOf(text, width = LONGEST_NAME) {
  const shown = text === "" ? "(no name)" : shortened(text, width);
  return element("span", { class: text === "" ? "name none" : "name", title: shown === text ? null : text }, shown);
}

function button(label, onclick, attributes = {}) {
  return element("button", { type: "button", onclick, ...attributes }, label);
}

/** A labelled choice, whose method show shows another one; options are [value, label]. */
function choice(label, options, current, onchange) {
  const select = element("select", { onchange: () => onchange(select.value) },
    ...options.map(([value, text]) => element("option", { value, selected: value === current }, text)));
  const field = element("label", { class: "field" }, element("span", {}, label), select);
  field.show = (value) => { select.value = value; };
  return field;
}

/** A labelled whole number, to be shown with its method show; what is not allowed is not taken. */
function numberField(label, low, high, onchange) {
  let current = low;
  const input = element("input", { type: "number", min: low, max: high, inputmode: "numeric" });
  input.addEventListener("change", () => {
    const number = Number(input.value);
    if (input.value !== "" && Number.isInteger(number) && number >= low && number <= high) onchange(number);
    else input.value = current;
  });
  const field = element("label", { class: "field" }, element("span", {}, label), input);
  field.show = (value) => { input.value = current = value; };
  return field;
}

/** A search field that reports after a pause in typing, and at once with Enter. */
function searchField(label, value, onsearch) {
  let waiting = 0;
  const input = element("input", { type: "search", value, placeholder: "text or /regex/", "data-search": true });
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => onsearch(input.value), 150);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    clearTimeout(waiting);
    onsearch(input.value, true);
  });
  return element("label", { class: "field" }, element("span", {}, label), input);
}

/** Return a function that tells whether a name matches what was typed, or null for a mistaken expression. */
function matcher(typed) {
  if (typed === "") return () => true;
  const expression = /^\/(.+)\/?$/s.exec(typed);
  if (expression) {
    try {
      const found = new RegExp(expression[1].replace(/\/$/, ""), "iu");
      return (text) => found.test(text);
    } catch {
      return null;
    }
  }
  const wanted = typed.toLowerCase();
  return (text) => text.toLowerCase().includes(wanted);
}

/** Say something to those who do not see the picture. */
function announce(sentence) {
  byId("announcement").textContent = sentence;
}

/** Facts as a list of terms; facts are [label, value, unit]. */
function factList(facts) {
  const list = element("dl", { class: "facts" });
  for (const [label, value, unit] of facts) {
    const exactly = typeof value === "number" && unit ? String(value) : null;
    const shown = typeof value === "string" ? nameOf(value, 400) : element("span", { title: exactly }, written(value, unit));
    list.append(element("div", {}, element("dt", {}, label), element("dd", {}, shown)));
  }
  return list;
}

/** A section of a document of pvanalyse/render: facts, tables, sentences. */
function documentSection(section, level = "h3") {
  return element("section", { class: "card" },
    element(level, {}, section.title),
    section.facts.length ? factList(section.facts) : null,
    ...section.grids.map((grid) => simpleTable(grid.title, grid.fields, grid.rows)),
    ...section.sentences.map((sentence) => element("p", {}, sentence)));
}

/** A table as it is; fields are [label, unit]. */
function simpleTable(title, fields, rows) {
  const numeric = fields.map(([, unit]) => unit !== "");
  const head = element("tr", {}, ...fields.map(([label], at) => element("th", { scope: "col", class: numeric[at] ? "number" : null }, label)));
  const body = rows.map((row) => element("tr", {}, ...row.map((value, at) => {
    const unit = fields[at][1];
    if (typeof value === "string") return element("td", { class: numeric[at] ? "number" : null }, value ? nameOf(value) : "");
    return element("td", { class: numeric[at] || typeof value === "number" ? "number" : null, title: unit && value !== null ? String(value) : null }, written(value, unit));
  })));
  return element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": title || fields.map(([label]) => label).join(", ") },
    element("table", {}, title ? element("caption", {}, title) : null, element("thead", {}, head), element("tbody", {}, ...body)));
}

/** What is not in the page, as sentences. */
function notes(sentences) {
  if (!sentences?.length) return null;
  return element("aside", { class: "left-out", "aria-label": "What is not in this page" },
    ...sentences.map((sentence) => element("p", {}, sentence)));
}

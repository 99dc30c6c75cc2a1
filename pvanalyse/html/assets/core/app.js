// The page: its reports, its views, what is chosen, and how one gets about.
//
// To add a view: write views/<name>.js with one defineView({...}), and name it in VIEWS of page.py, in whose order the
// views are listed. A view has
//   id, title   for the address (#view=id) and the list;
//   needs       the section of the payload it shows (pvanalyse/html/payload.py); where that is missing, the page says so;
//   also        other sections that it shows where they are there
//   both        true for a view that compares: it is drawn once, with both reports, and listed only when there are two;
//   draw(report, root)  fills an element. report.sections[needs] holds the data, `chosen` what the reader chose. It may
//               return a function that is called instead of drawing anew when only a choice changed (tile, step, …).
// Choices are made with choose({tile: 5}); they are in the address, so that every view can be linked to.

const views = [];
const defineView = (view) => views.push(view);

const preferences = { units: "binary", theme: null };
const NUMBERS = ["tile", "step"];
let reports = [];
let comparison = null; // a document, where there are two reports
let chosen = {};
let drawn = { key: "", updates: [], pictures: [] };
let reportField = null;

function choicesOf(address) {
  const given = Object.fromEntries(new URLSearchParams(address.slice(1)));
  for (const name of NUMBERS) {
    if (name in given) given[name] = /^\d{1,15}$/.test(given[name]) ? Number(given[name]) : undefined;
  }
  return given;
}

/** The address of what is chosen, with changes. */
const addressOf = (changes) => `#${new URLSearchParams({ ...chosen, ...changes })}`;

/** Change what is chosen; undefined takes a choice back. */
function choose(changes, { remember = false } = {}) {
  chosen = { ...chosen, ...changes };
  for (const [name, value] of Object.entries(chosen)) if (value === undefined || value === "") delete chosen[name];
  try {
    if (remember) history.pushState(null, "", addressOf({}));
    else history.replaceState(null, "", addressOf({}));
  } catch {
    // A page inside another one may have no address of its own.
  }
  show();
}

/** Follow links within the page ourselves: inside another page, they would lead to that one. */
function onClick(event) {
  const address = event.target.closest?.("a[href^='#']")?.getAttribute("href");
  if (!address || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if (address === "#main") {
    byId("main").focus();
    return;
  }
  chosen = {};
  choose(choicesOf(address), { remember: true });
  byId("view-title").focus();
}

const goTo = (view, changes = {}) => choose({ view, ...changes }, { remember: true });

const listed = () => views.filter((view) => !view.both || reports.length > 1);
const currentView = () => listed().find((view) => view.id === chosen.view) ?? listed()[0];

/** The reports that are looked at: one of two, or both side by side. */
function looked() {
  if (reports.length < 2) return reports;
  const at = { a: 0, b: 1 }[chosen.report];
  return at === undefined ? reports : [reports[at]];
}

/** The largest value of a quantity among the reports that are looked at, so that they are drawn to one scale. */
function largestOf(section, quantity) {
  return Math.max(...looked().map((report) => report.sections[section]).filter((one) => !one.missing).map(quantity));
}

function show() {
  const view = currentView();
  const key = JSON.stringify([view.id, chosen.report, preferences]);
  reportField?.show(chosen.report ?? "both");
  document.title = `${view.title} – ${reports.map((report) => report.name).join(" and ")}`;
  for (const link of byId("views").querySelectorAll("a")) {
    link.setAttribute("href", addressOf({ view: link.dataset.view }));
    const needed = views.find((one) => one.id === link.dataset.view).needs;
    link.classList.toggle("nothing", needed !== undefined && looked().every((report) => report.sections[needed].missing));
    if (link.dataset.view === view.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (drawn.key === key) {
    for (const update of drawn.updates) update();
    return;
  }
  const main = byId("main");
  drawn = { key, updates: [], pictures: [] };
  const panes = view.both ? [null] : looked();
  const holder = element("div", { class: panes.length > 1 ? "panes" : "pane-alone" });
  main.replaceChildren(element("h2", { id: "view-title", tabindex: "-1" }, view.title), holder);
  for (const report of panes) {
    const pane = element("section", { class: "pane", "aria-label": report?.name ?? view.title });
    if (panes.length > 1) pane.append(element("p", { class: "pane-name" }, element("b", {}, `${report.letter} `), nameOf(report.name)));
    holder.append(pane);
    drawPane(view, report, pane);
  }
}

function drawPane(view, report, pane) {
  const section = report?.sections[view.needs];
  if (section?.missing) {
    pane.append(element("p", { class: "missing" }, section.missing));
    return;
  }
  const root = element("div", { class: "view", "data-view": view.id });
  pane.append(root);
  const update = view.draw(report ?? reports, root);
  if (typeof update === "function") drawn.updates.push(update);
  const sections = [view.needs, ...(view.also ?? [])].map((name) => report?.sections[name]);
  pane.append(notes(sections.flatMap((one) => one?.leftOut ?? [])) ?? "");
}

// ------------------------------------------------------------------------------------------------- theme and units

const isDark = () => (preferences.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function applyTheme() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
}

/** Draw the pictures of the view in other colours, at once: paper is light. */
function recolour(theme) {
  document.documentElement.dataset.theme = theme;
  for (const redraw of drawn.pictures) redraw();
}

function keep(name, value) {
  preferences[name] = value;
  try {
    localStorage.setItem(`pvanalyse-${name}`, value);
  } catch {
    // Not where storage is refused.
  }
  applyTheme();
  show();
}

function recall(name, allowed) {
  try {
    const value = localStorage.getItem(`pvanalyse-${name}`);
    if (allowed.includes(value)) preferences[name] = value;
  } catch {
    // As above.
  }
}

const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// ------------------------------------------------------------------------------------------------------- keyboard

const KEYS = [
  ["[ and ]", "previous and next view"],
  ["/", "to the search field"],
  ["t", "light or dark"],
  ["?", "this help"],
  ["← →", "in a picture: previous and next tile, step or block; Shift for ten"],
  ["+ −", "in the timeline: closer and further; 0 for all"],
];

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  const order = listed();
  const at = order.indexOf(currentView());
  if (event.key === "[" && at > 0) goTo(order[at - 1].id);
  else if (event.key === "]" && at < order.length - 1) goTo(order[at + 1].id);
  else if (event.key === "/") document.querySelector("#main [data-search]")?.focus();
  else if (event.key === "t") keep("theme", isDark() ? "light" : "dark");
  else if (event.key === "?") byId("help").showModal();
  else return;
  event.preventDefault();
}

// ----------------------------------------------------------------------------------------------------------- start

function drawFrame() {
  byId("views").replaceChildren(...listed().map((view) => element("li", {}, element("a", {
    href: `#view=${view.id}`, "data-view": view.id,
  }, view.title))));
  byId("reports").replaceChildren(...reports.map((report) => element("p", {},
    reports.length > 1 ? element("b", {}, `${report.letter} `) : null, nameOf(report.name, 90))));
  const tools = byId("tools");
  tools.replaceChildren(
    choice("Sizes", [["binary", "KiB, MiB"], ["si", "kB, MB"], ["bytes", "bytes"]], preferences.units, (units) => keep("units", units)),
    button("Light / dark", () => keep("theme", isDark() ? "light" : "dark")),
    button("Keys", () => byId("help").showModal()),
  );
  if (reports.length > 1) {
    reportField = choice("Reports", [["both", "A and B"], ["a", "A"], ["b", "B"]], chosen.report ?? "both",
      (report) => choose({ report: report === "both" ? undefined : report }));
    tools.prepend(reportField);
  }
  byId("keys").replaceChildren(...KEYS.map(([key, meaning]) => element("div", {}, element("dt", {}, element("kbd", {}, key)), element("dd", {}, meaning))));
}

async function start() {
  preferences.units = document.documentElement.dataset.units;
  recall("theme", ["light", "dark"]);
  recall("units", Object.keys(BYTE_STEPS));
  applyTheme();
  const packed = [...document.querySelectorAll("script[data-report]")];
  reports = await Promise.all(packed.map(async (one) => unpack(await inflate(one))));
  reports.forEach((report, at) => { report.letter = "AB"[at]; });
  if (byId("comparison")) comparison = unpack(await inflate(byId("comparison")));
  chosen = choicesOf(location.hash);
  drawFrame();
  show();
  document.documentElement.dataset.ready = "yes";
  watchServer();
  // Also comes when one goes back.
  addEventListener("popstate", () => { chosen = choicesOf(location.hash); show(); });
  addEventListener("click", onClick);
  addEventListener("keydown", onKey);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { applyTheme(); drawn.key = ""; show(); });
  addEventListener("beforeprint", () => recolour("light"));
  addEventListener("afterprint", () => recolour(isDark() ? "dark" : "light"));
}

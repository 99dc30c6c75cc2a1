defineView({
  id: "summary", title: "Summary", needs: "summary",
  draw(report, root) {
    const { document: summary, metrics } = report.sections.summary;
    if (summary.verdict) root.append(element("p", { class: summary.alarming ? "verdict bad" : "verdict good" }, summary.verdict));
    root.append(element("div", { class: "cards" }, ...summary.sections.map((section) => documentSection(section))));
    const table = element("table", {}, element("caption", {}, "Every metric"),
      element("thead", {}, element("tr", {}, ...["Metric", "Value", "Exactly", "Meaning"].map((label, at) =>
        element("th", { scope: "col", class: at === 1 || at === 2 ? "number" : null }, label)))),
      element("tbody", {}, ...metrics.map(([name, value, unit, meaning]) => element("tr", { "data-metric": name },
        element("td", {}, nameOf(name)), element("td", { class: "number" }, written(value, unit)),
        element("td", { class: "number exact" }, String(value)), element("td", {}, meaning)))));
    root.append(element("details", { class: "card", open: true }, element("summary", {}, "Metrics"), element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Every metric" }, table)));
  },
});

defineView({
  id: "statistics", title: "Cycles", needs: "statistics",
  draw(report, root) {
    const { verdict, sections } = report.sections.statistics;
    if (verdict) root.append(element("p", { class: "verdict" }, verdict));
    root.append(...sections.map((section) => documentSection(section)));
    return null;
  },
});

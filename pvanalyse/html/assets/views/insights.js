defineView({
  id: "insights", title: "Insights", needs: "insights",
  draw(report, root) {
    const { document: found, tiles, severities } = report.sections.insights;
    if (found.verdict) root.append(element("p", { class: found.alarming ? "verdict bad" : "verdict" }, found.verdict));
    found.sections.forEach((section, at) => {
      const card = documentSection(section);
      if (severities[at]) card.classList.add(`severity-${severities[at]}`);
      if (tiles[at]?.length) {
        card.append(element("p", { class: "links" }, "Show tile ", ...tiles[at].slice(0, 12).map((tile) =>
          element("a", { href: addressOf({ view: "tile", tile }) }, String(tile)))));
      }
      root.append(card);
    });
  },
});

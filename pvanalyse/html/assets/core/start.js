start().catch((error) => {
  byId("main").replaceChildren(element("p", { class: "missing", role: "alert" },
    `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`));
  throw error;
});

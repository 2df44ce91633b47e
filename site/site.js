/** @file What every page of the site does beside typedoc's own script: it loads the index of the search when it is opened. */
(() => {
  const index = document.getElementById("tsd-search-script");
  const load = () => {
    if (index?.dataset.src && !index.src) index.src = index.dataset.src;
  };
  for (const event of ["pointerenter", "focus", "click"])
    document.getElementById("tsd-search-trigger")?.addEventListener(event, load);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" || (event.key === "k" && (event.ctrlKey || event.metaKey))) load();
  });
})();

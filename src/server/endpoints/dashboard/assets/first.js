// Runs before the first paint, and is therefore no module: applies the chosen theme, if any, and says so if the page
// cannot be loaded. Until the page is drawn, a sentence stands in its place (index.html); it shows by itself after a
// while, for a browser that waits for ever or without scripts.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("mk-theme");
  } catch {
    // Storage is not available: the system's theme is used.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;

  const failed = (event) => {
    const isFile = event.target instanceof HTMLScriptElement || event.target instanceof HTMLLinkElement;
    const show = () => document.getElementById("waiting")?.classList.add("failed");
    if (!isFile && !(event instanceof ErrorEvent)) return;
    // A file may fail before the sentence is there.
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", show);
    else show();
  };
  // Errors of elements do not bubble.
  addEventListener("error", failed, true);
})();

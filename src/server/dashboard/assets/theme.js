// Applies the chosen theme, if any, before the first paint, and is therefore not a module. Nothing else is stored.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("mk-theme");
  } catch {
    // Storage is not available: the system's theme is used.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();

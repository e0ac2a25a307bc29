// Before the first paint, and so not a module: the theme that was chosen here, if one was. Nothing else is kept.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("mk-theme");
  } catch {
    // Storage is forbidden: the system's theme it is.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();

// What surrounds every page: skip link, banner, navigation, theme, session.
import { html, useEffect, useState } from "./html.js";
import { keyText } from "./format.js";
import { Button, Notices } from "./ui.js";

const PAGES = [
  { href: "#/", label: "Overview", part: "" },
  { href: "#/apps", label: "Apps & keys", part: "apps" },
  { href: "#/usage", label: "Usage & billing", part: "usage" },
  { href: "#/playground", label: "Playground", part: "playground" },
  { href: "#/audit", label: "Audit", part: "audit" },
];

/** The frame. Without a session there is no navigation. */
export function Shell({ route, session, onLogOut, children }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [route]);
  const skip = (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  };
  return html`<div class=${session ? "shell" : "shell bare"}>
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/"><${Mark} /> mk</a>
      ${session && html`<button class="button quiet small menu" type="button" aria-expanded=${isOpen ? "true" : "false"} aria-controls="nav" onClick=${() => setOpen(!isOpen)}>Menu</button>`}
      ${session && html`<nav id="nav" class=${isOpen ? "open" : ""} aria-label="Pages">
        <ul>${PAGES.map((page) => html`<li key=${page.href}><a href=${page.href} aria-current=${(route.parts[0] ?? "") === page.part ? "page" : undefined}>${page.label}</a></li>`)}</ul>
        <div class="who">
          <p class="muted">Logged in with<br /><span class="who-key" title=${session.key.id}>${session.key.name ?? keyText(session.key)}</span></p>
          <${Button} kind="quiet" small onClick=${onLogOut}>Log out</${Button}>
        </div>
      </nav>`}
      <${ThemeChoice} />
    </header>
    <div class="content">
      <main id="main" tabindex="-1">${children}</main>
      <footer>
        <span>mk ${session?.version ?? ""}</span>
        <a href="docs">Documentation</a>
        <a href="openapi.json">API description</a>
        <span>Contains <a href="assets/vendor/preact.LICENSE.txt">Preact</a>, <a href="assets/vendor/htm.LICENSE.txt">htm</a>, <a href="assets/vendor/uplot.LICENSE.txt">uPlot</a></span>
      </footer>
    </div>
    <${Notices} />
  </div>`;
}

function Mark() {
  return html`<svg class="mark" viewBox="0 0 32 32" width="24" height="24" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M8.5 17l5 5L24 10.5" /></svg>`;
}

const THEMES = { system: "System theme", light: "Light theme", dark: "Dark theme" };

/** The theme, the only thing that is stored in this browser. */
function ThemeChoice() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "system");
  const choose = (next) => {
    setTheme(next);
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      if (next === "system") localStorage.removeItem("mk-theme");
      else localStorage.setItem("mk-theme", next);
    } catch {
      // Without storage it applies until the page is closed.
    }
    dispatchEvent(new Event("themechange"));
  };
  return html`<label class="theme"><span class="unseen">Theme</span>
    <select value=${theme} onChange=${(event) => choose(event.currentTarget.value)}>
      ${Object.entries(THEMES).map(([value, label]) => html`<option key=${value} value=${value} selected=${value === theme}>${label}</option>`)}
    </select>
  </label>`;
}

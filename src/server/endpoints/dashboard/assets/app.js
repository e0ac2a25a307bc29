// The entry point: finds out whether there is a session, and shows the page of the address.
import { html, render, useCallback, useEffect, useRef, useState } from "./lib/html.js";
import { useErrorBoundary } from "./vendor/htm-preact.js";
import { api, onLostSession } from "./lib/api.js";
import { isHeld } from "./lib/guard.js";
import { go, useRoute } from "./lib/router.js";
import { Shell } from "./lib/shell.js";
import { Banner, Button, notify, PageHead, Problem, Spinner } from "./lib/ui.js";
import AppPage from "./pages/app.js";
import Apps from "./pages/apps.js";
import Audit from "./pages/audit.js";
import Login from "./pages/login.js";
import Overview from "./pages/overview.js";
import Playground, { leave } from "./pages/playground.js";
import { recall } from "./playground/kept.js";
import Setup from "./pages/setup.js";
import Usage from "./pages/usage.js";

const PAGES = { "": Overview, apps: Apps, usage: Usage, playground: Playground, audit: Audit };

/** The page of a route, with a session. */
function pageOf({ parts: [first = "", second, ...rest] }) {
  if (rest.length > 0) return Missing;
  if (first === "apps" && second) return AppPage;
  if (first === "playground" && ["verify", "chat"].includes(second)) return Playground;
  if (first === "usage" && ["budgets", "statements"].includes(second)) return Usage;
  if (second) return Missing;
  return Object.hasOwn(PAGES, first) ? PAGES[first] : Missing;
}

function App() {
  const route = useRoute();
  // Undefined while it is not known, null without a session.
  const [session, storeSession] = useState(undefined);
  const setSession = (found) => {
    recall(found);
    storeSession(found);
  };
  const [problem, setProblem] = useState(null);
  const [reason, setReason] = useState(null);

  const ask = useCallback(() => {
    setProblem(null);
    api.get("v1/auth/session", { quiet: true }).then(setSession, (error) => {
      if (error.status === 401 || error.status === 403) setSession(null);
      else setProblem(error);
    });
  }, []);
  useEffect(() => {
    onLostSession(() => {
      // What is shown only once stays on the screen until it has been stored.
      if (isHeld()) return;
      setReason("Your session has ended. Log in again.");
      setSession(null);
    });
    ask();
  }, []);

  const begin = (found) => {
    setReason(null);
    // The form that had the focus is gone.
    visited = true;
    setSession(found);
    if (["login", "setup"].includes(route.parts[0])) go("/", { replace: true });
  };
  const logOut = async () => {
    leave();
    try {
      await api.del("v1/auth/session", { quiet: true });
    } catch (error) {
      if (error.status !== 401) {
        notify(`Still logged in: ${error.message}`);
        return;
      }
    }
    setReason("You are logged out.");
    setSession(null);
    go("/login", { replace: true });
  };

  useEffect(() => {
    if (session && route.parts[0] === "login") go("/", { replace: true });
  }, [session, route]);

  const shell = (content, shown = session) => html`<${Shell} route=${route} session=${shown} onLogOut=${logOut}>${content}</${Shell}>`;
  if (route.parts[0] === "setup") return shell(html`<${Setup} route=${route} session=${session} onSession=${begin} />`, null);
  if (problem) return shell(html`<${PageHead} title="Dashboard" /><${Problem} error=${problem} retry=${ask} />`, null);
  if (session === undefined) return shell(html`<${Spinner} />`, null);
  if (session === null) return shell(html`<${Login} route=${route} reason=${reason} onSession=${begin} />`);
  // The path is the key: another app is another page, without the old state.
  return shell(html`<${Guarded} key=${route.parts[0] === "playground" ? "playground" : route.path} page=${pageOf(route)} route=${route} session=${session} />`);
}

/** A page, or an error message if it fails. Navigating to another page moves the focus to its heading. */
function Guarded({ page: Page, route, session }) {
  const [error, reset] = useErrorBoundary();
  const ref = useRef(null);
  useEffect(() => {
    if (visited) ref.current?.querySelector("h1")?.focus();
    visited = true;
    scrollTo(0, 0);
  }, []);
  if (error) {
    return html`<${PageHead} title="This page failed" />
      <${Banner} tone="error" action=${html`<${Button} small onClick=${reset}>Try again</${Button}>`}>There is a bug in the dashboard: ${String(error.message ?? error)}</${Banner}>`;
  }
  return html`<div ref=${ref}><${Page} route=${route} session=${session} /></div>`;
}

let visited = false;

function Missing() {
  return html`<${PageHead} title="No such page" lead="The dashboard has nothing at this address." />
    <p><${Button} href="#/">Go to the overview</${Button}></p>`;
}

render(html`<${App} />`, document.getElementById("app"));
// It stood here until now, in case that this script would never run.
document.getElementById("waiting")?.remove();

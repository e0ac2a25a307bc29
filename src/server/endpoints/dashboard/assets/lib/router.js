// Addresses after the `#`: `#/apps/app_1?state=active`.
import { useEffect, useState } from "./html.js";
import { blockNavigation } from "./guard.js";

/** `{path, parts, query}` of an address: `/apps/app_1`, `["apps", "app_1"]`, its parameters. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decode);
  return { path: `/${parts.join("/")}`, parts, query: new URLSearchParams(query) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The current route; it does not change while the page must not be left. */
export function useRoute() {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => {
      if (!blockNavigation()) setRoute(parse(location.hash));
    };
    addEventListener("hashchange", changed);
    addEventListener("popstate", changed);
    // An effect runs after the first paint: the address may be another one by then.
    changed();
    return () => {
      removeEventListener("hashchange", changed);
      removeEventListener("popstate", changed);
    };
  }, []);
  return route;
}

/** Navigates to a page; with `replace` there is no way back to this one. */
export function go(path, { replace = false } = {}) {
  if (!replace) {
    location.hash = path;
    return;
  }
  history.replaceState(null, "", `#${path}`);
  dispatchEvent(new Event("popstate"));
}

/** The address of the same page with other parameters. */
export function setQuery(route, changes) {
  const query = new URLSearchParams(route.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(text ? `${route.path}?${text}` : route.path, { replace: true });
}

// What a reload of this window keeps: what was typed into the playground, and its results.
//
// What must hold: it is written when the page goes and taken out when it is back, so that nothing lies in the browser
// meanwhile; it never leaves this window; whoever logs in with another key does not see it; there is no key in it.
const NAME = "mk-playground";

let owner = null;
const things = [];

/** Includes a store. `pack` turns its value into what is kept, null for nothing; what comes back is set in it. */
export function keep(name, store, pack = (value) => value) {
  things.push({ name, store, pack });
}

/** Restores what the session's key, with this version of the page, left behind here. */
export function recall(session) {
  owner = session === null ? null : `${session.key.id} ${session.version}`;
  if (owner === null) return;
  const found = take();
  if (found?.owner !== owner) return;
  for (const { name, store } of things) {
    if (found.values?.[name]) store.set(() => found.values[name]);
  }
}

function take() {
  try {
    const found = sessionStorage.getItem(NAME);
    sessionStorage.removeItem(NAME);
    return JSON.parse(found);
  } catch {
    // Storage is not available, or holds something else.
    return null;
  }
}

function leave() {
  if (owner === null) return;
  const values = Object.fromEntries(things.map(({ name, store, pack }) => [name, pack(store.get())]));
  try {
    sessionStorage.setItem(NAME, JSON.stringify({ owner, values }));
  } catch {
    // Storage is not available, or has no room for it.
  }
}

globalThis.addEventListener?.("pagehide", leave);

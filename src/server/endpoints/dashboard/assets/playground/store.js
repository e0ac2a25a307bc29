// State that outlives a component: input and results stay while other pages are shown.
import { useEffect, useState } from "../lib/html.js";

/** A value with listeners. */
export function createStore(initial) {
  let value = initial;
  const listeners = new Set();
  const set = (next) => {
    value = typeof next === "function" ? next(value) : { ...value, ...next };
    for (const listener of listeners) listener(value);
  };
  return {
    get: () => value,
    set,
    reset: () => set(() => initial),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** A store's value, for a component that re-renders when it changes. */
export function useStore(store) {
  const [, redraw] = useState(store.get());
  useEffect(() => {
    redraw(store.get());
    return store.subscribe(redraw);
  }, [store]);
  return store.get();
}

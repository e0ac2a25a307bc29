// The only import of the view library (vendor/htm-preact.js): templates without a build step, in which text is never
// treated as markup.
import { html, render, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/htm-preact.js";

export { html, render, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };

let ids = 0;

/** An id for an element that others refer to, the same over all renders of a component. */
export function useId() {
  const [id] = useState(() => `i${++ids}`);
  return id;
}

// Keyboard handling that both forms share.
import { useLayoutEffect, useRef } from "../lib/html.js";

/** Ctrl or ⌘ with Enter submits the form that the key was pressed in; not while an input method composes. */
export function submitOnEnter(event) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
  event.preventDefault();
  event.currentTarget.requestSubmit();
}

/** Refs of a button that exists only while `running`, and of the element that takes over its focus when it is removed. */
export function useHandover(running) {
  const leaving = useRef(null);
  const heir = useRef(null);
  const hadFocus = useRef(false);
  // Checked while rendering, as long as the button still exists.
  if (!running && leaving.current !== null) hadFocus.current = document.activeElement === leaving.current;
  useLayoutEffect(() => {
    if (!running && hadFocus.current) heir.current?.focus();
    hadFocus.current = false;
  }, [running]);
  return [leaving, heir];
}

// Modal dialogs, on the browser's own <dialog>: it keeps the focus inside and gives it back at the end.
import { html, useId, useLayoutEffect, useRef } from "./html.js";
import { hold } from "./guard.js";

/** Moves the focus to the page's heading if the focused element is gone, so that keyboard users do not start over. */
export function rescueFocus() {
  if (document.activeElement === document.body) document.querySelector("h1")?.focus();
}

/**
 * Open as long as it is rendered. `onClose` is called by Esc. A `locked` dialog closes only by its own buttons: not by
 * Esc (once or twice), nor by a click outside, nor by leaving the page without confirmation. `initialFocus` is the ref
 * of the element that gets the focus first; `onSubmit` makes its content a form, `actions` are its buttons.
 */
export function Dialog({ title, onClose, locked = false, onBlocked, initialFocus, onSubmit, actions, wide = false, children }) {
  const ref = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog.showModal();
    initialFocus?.current?.focus();
    // Closed before it is removed, so that the focus goes back to where it was.
    return () => {
      dialog.close();
      setTimeout(rescueFocus);
    };
  }, []);
  useLayoutEffect(() => (locked ? hold(onBlocked) : undefined), [locked]);

  const cancel = (event) => {
    event.preventDefault();
    if (!locked) onClose?.();
  };
  const submit = (event) => {
    event.preventDefault();
    onSubmit?.();
  };
  const inside = html`<h2 id=${id}>${title}</h2>
    <div class="dialog-body">${children}</div>
    ${actions && html`<div class="actions">${actions}</div>`}`;
  return html`<dialog ref=${ref} class=${wide ? "wide" : ""} aria-labelledby=${id} onCancel=${cancel} closedby=${locked ? "none" : "closerequest"}>
    ${onSubmit ? html`<form novalidate onSubmit=${submit}>${inside}</form>` : inside}
  </dialog>`;
}

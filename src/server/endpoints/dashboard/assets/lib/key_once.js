// A new key, shown only once. What must hold: only "Done" closes the dialog, and then the key is gone from the page.
import { html, useRef, useState } from "./html.js";
import { release } from "./guard.js";
import { Banner, Button, Check, CopyButton, Dialog } from "./ui.js";

const NOT_YET = "Store the key first: it cannot be shown again. Then tick the box and choose Done.";

/** `onDone` must drop `created`, the only reference to the key. `note` is shown below it. */
export function KeyOnce({ created, title = "Your new key", note, onDone }) {
  const [isStored, setStored] = useState(false);
  const [warning, setWarning] = useState(null);
  const copy = useRef(null);
  const box = useRef(null);
  const done = () => {
    // Before the callback, which may navigate to another page.
    release();
    onDone();
  };
  const actions = html`<${Button} kind="primary" onClick=${done} disabled=${!isStored}>Done</${Button}>`;
  return html`<${Dialog} title=${title} wide locked onBlocked=${() => setWarning(NOT_YET)} initialFocus=${copy} actions=${actions}>
    <p>Copy it now and store it where secrets are kept. <strong>It is shown only once</strong>; the server keeps only its hash.</p>
    <div class="secret">
      <code ref=${box} tabindex="0" aria-label="The key">${created.key}</code>
      <${CopyButton} text=${created.key} label="Copy" what="the key" kind="primary" buttonRef=${copy} small=${false} />
    </div>
    ${note && html`<p class="muted">${note}</p>`}
    <${Check} label="I stored this key" checked=${isStored} onChange=${(stored) => { setStored(stored); setWarning(null); }} />
    <div aria-live="assertive">${warning && html`<${Banner} tone="warn">${warning}</${Banner}>`}</div>
  </${Dialog}>`;
}

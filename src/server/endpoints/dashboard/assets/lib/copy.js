// Copying to the clipboard.
import { html, useRef, useState, useEffect } from "./html.js";
import { onServer, serverBase } from "./server_base.js";

/** Copies; returns false if the browser refused. The old API is for pages without TLS, which have no clipboard. */
async function copy(text, near) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    area.readOnly = true;
    // Next to the button: outside an open dialog nothing can be selected.
    near.after(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    near.focus();
    return done;
  }
}

/** A button that copies `text` and confirms it in its label; `buttonRef` is the element's ref. */
export function CopyButton({ text, label = "Copy", what, small = true, kind = "secondary", buttonRef, onCopied }) {
  const own = useRef(null);
  const ref = buttonRef ?? own;
  const [state, setState] = useState("idle");
  useEffect(() => {
    if (state === "idle") return undefined;
    const timer = setTimeout(() => setState("idle"), 2500);
    return () => clearTimeout(timer);
  }, [state]);
  const click = async () => {
    const done = await copy(text, ref.current);
    setState(done ? "done" : "failed");
    if (done) onCopied?.();
  };
  const said = { idle: label, done: "Copied", failed: "Copy it by hand" }[state];
  return html`<button type="button" class=${`button copy ${kind} ${small ? "small" : ""}`} ref=${ref} onClick=${click}>
    <span aria-live="polite">${said}</span>${what && html`<span class="unseen"> ${what}</span>`}
  </button>`;
}

/** A command line within text; it wraps only between words. */
export function Command({ text }) {
  return html`<code class="command">${text.split(" ").map((word, at) => html`${at > 0 && " "}<span key=${at}>${word}</span>`)}</code>`;
}

/** A server's message, with what is between backticks as code. */
export function Said({ text }) {
  return text.split("`").map((part, at, all) => (at % 2 === 1 && at < all.length - 1 ? html`<code key=${at}>${part}</code>` : `${at % 2 === 1 ? "`" : ""}${part}`));
}

/** The command that does the same as what is above it; `isLocal` for one that only the server's machine can run. */
export function Or({ command, isLocal = false, children = "or on the command line" }) {
  return html`<p class="or">${children} <${Command} text=${isLocal ? command : onServer(command, serverBase())} /></p>`;
}

/** A command or a snippet, to be copied; `label` says what it is. */
export function Code({ text, label }) {
  return html`<figure class="code">
    ${label && html`<figcaption>${label}</figcaption>`}
    <div class="code-body"><pre tabindex="0"><code>${text}</code></pre><${CopyButton} text=${text} what=${label} /></div>
  </figure>`;
}

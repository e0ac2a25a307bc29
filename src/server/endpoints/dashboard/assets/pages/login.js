// Logging in: a console key for a session.
import { html, useEffect, useRef, useState } from "../lib/html.js";
import { api } from "../lib/api.js";
import { complaint, useAction } from "../lib/data.js";
import { Banner, Button, Command, Field, PageHead, Problem } from "../lib/ui.js";

export default function Login({ reason, onSession }) {
  const [key, setKey] = useState("");
  const [wrong, setWrong] = useState(null);
  const input = useRef(null);
  useEffect(() => input.current.focus(), []);
  const [logIn, { busy, error }] = useAction(async () => {
    const given = key.trim();
    const found = wrongWith(given);
    setWrong(found);
    if (found) {
      input.current?.focus();
      return;
    }
    const session = await api.post("v1/auth/session", { key: given }, { quiet: true });
    setKey("");
    onSession(session);
  });
  const shown = wrong ? null : error;
  const about = wrong ?? complaint(shown, "key") ?? (shown?.status === 401 ? shown.message : undefined);
  const submit = (event) => {
    event.preventDefault();
    logIn();
  };
  // The hidden name is for password managers, which keep a key under one.
  return html`<div class="door">
    <${PageHead} title="Log in" lead="With a console key of this server." />
    ${reason && html`<${Banner}>${reason}</${Banner}>`}
    ${shown && !about && html`<${Problem} error=${shown} />`}
    <form class="card" novalidate onSubmit=${submit}>
      <input type="text" name="username" autocomplete="username" value="mk console" readonly hidden />
      <${Field} label="Console key" type="password" name="key" autocomplete="current-password" placeholder="mk_console_…" value=${key} onInput=${setKey} inputRef=${input} error=${about} spellcheck=${false} />
      <${Button} kind="primary" type="submit" busy=${busy}>Log in</${Button}>
      <p class="muted">The key is exchanged for a session of at most 12 hours, and is not stored in this browser.</p>
    </form>
    <section class="aside" aria-labelledby="none-yet">
      <h2 id="none-yet">No console key yet?</h2>
      <p>Open the one-time link that <${Command} text="mk serve" /> showed at its first start, or create a key on the server's machine:</p>
      <p><${Command} text="mk keys create --service console" /></p>
    </section>
  </div>`;
}

function wrongWith(key) {
  if (!key) return "Paste a console key.";
  const service = /^mk_(verify|inference)_/.exec(key)?.[1];
  if (service) return `This is a key for ${service}. The dashboard needs a console key.`;
  return null;
}

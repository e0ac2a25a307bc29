// The first start: the one-time link becomes the first console key.
import { html, useEffect, useState } from "../lib/html.js";
import { api } from "../lib/api.js";
import { useAction } from "../lib/data.js";
import { KeyOnce } from "../lib/key_once.js";
import { Banner, Button, Or, PageHead, Problem } from "../lib/ui.js";

export default function Setup({ route, onSession }) {
  const [token] = useState(route.parts[1] ?? "");
  const [made, setMade] = useState(null);
  // Removed from the address and the history: anybody with the link can set the server up.
  useEffect(() => history.replaceState(null, "", "#/setup"), []);
  const [begin, { busy, error }] = useAction(async () => {
    setMade(await api.post("v1/auth/setup", { token }, { quiet: true }));
  });
  // A refused link stays refused; other errors may go away with a retry.
  const isVoid = error !== null && error.status >= 400 && error.status < 500 && error.status !== 429;
  const done = () => {
    const { session } = made;
    setMade(null);
    onSession(session);
  };
  return html`<div class="door">
    <${PageHead} title="Set up this server" lead="Create the first console key. You log in with it, to manage apps, keys and budgets." />
    ${!token && html`<${Banner} tone="warn">This link is incomplete. Copy the whole link that <code>mk serve</code> showed.</${Banner}>`}
    ${error && html`<${Problem} error=${error} />`}
    <div class="card">
      <p>The link works once, and the key is shown once: have your password manager ready.</p>
      <${Button} kind="primary" busy=${busy} disabled=${!token || isVoid} onClick=${begin}>Create the first console key</${Button}>
      <${Or} command="mk keys create --service console" isLocal>or on the server's machine</${Or}>
    </div>
    <p>Set up already? <a href="#/login">Log in</a>.</p>
    ${made && html`<${KeyOnce} created=${made.created} title="Your console key" note="You log in with this key, and are logged in with it now." onDone=${done} />`}
  </div>`;
}

// The request of the form as commands, for a terminal or a program.
import { html } from "../lib/html.js";
import { serverBase } from "../lib/server_base.js";
import { Code } from "../lib/ui.js";

/**
 * `commands` builds `{mk, curl}` from the address when it is shown; `service` names the key that they need, `missing`
 * what still has to be filled in.
 */
export function ShowAs({ commands, service, note, missing }) {
  const { mk, curl } = commands(serverBase());
  return html`<details class="pg-more">
    <summary>Show as command</summary>
    <p class="muted">Both read a key for ${service} from <code>MK_API_KEY</code>; create one under <a href="#/apps">Apps & keys</a>. ${note}</p>
    ${missing
      ? html`<p>Write ${missing} first: it becomes part of the commands.</p>`
      : html`<${Code} text=${mk} label="mk" /><${Code} text=${curl} label="curl" />`}
  </details>`;
}

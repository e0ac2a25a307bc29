// The playground: a verification or a chat on this server, live, on the account of an app.
import { html, useEffect } from "../lib/html.js";
import { useAll } from "../lib/data.js";
import { Button, Empty, PageHead, Problem, Select, Spinner } from "../lib/ui.js";
import { Chat } from "../playground/chat.js";
import * as conversation from "../playground/conversation.js";
import { dropAll } from "../playground/keys.js";
import { createStore, useStore } from "../playground/store.js";
import * as verification from "../playground/verification.js";
import { Verify } from "../playground/verify.js";

const TABS = [
  { part: "verify", label: "Verify" },
  { part: "chat", label: "Chat" },
];

/** The app that was chosen; null is the first one. */
const chosen = createStore({ appId: null });

/** How long a logout waits for the keys' revocation; they expire within the hour anyway. */
const PATIENCE_MS = 3000;

/** For logging out, while there is still a session: stops all runs, forgets the input, revokes the keys. */
export async function leave() {
  verification.reset();
  conversation.reset();
  await Promise.race([dropAll(), new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
}

export default function Playground({ route, session }) {
  const tab = route?.parts?.[1] === "chat" ? "chat" : "verify";
  const { rows: apps, error } = useAll("v1/apps");
  const { appId: wanted } = useStore(chosen);
  const app = apps?.find(({ id }) => id === wanted) ?? apps?.[0];

  // On another page a run is not shown and would only cost money. It continues when switching between the tabs.
  useEffect(() => () => {
    if (location.hash.startsWith("#/playground")) return;
    verification.cancel();
    conversation.cancel();
  }, []);

  const choose = (appId) => {
    verification.cancel();
    conversation.cancel();
    chosen.set({ appId });
    dropAll();
  };
  const isSandbox = session?.mode === "sandbox";
  const Tab = tab === "chat" ? Chat : Verify;
  return html`<${PageHead} title="Playground" lead="Try this server as its callers see it." />
    <div class="pg-tabs" role="navigation" aria-label="Playground"><ul>${TABS.map(({ part, label }) => html`<li key=${part}>
      <a href=${`#/playground/${part}`} aria-current=${tab === part ? "page" : undefined}>${label}</a>
    </li>`)}</ul></div>
    ${error && html`<${Problem} error=${error} />`}
    ${!apps && !error && html`<${Spinner} label="Loading apps…" />`}
    ${apps && !app && html`<${Empty} title="No app yet" action=${html`<${Button} kind="primary" href="#/apps">Go to the apps</${Button}>`} command="mk apps create NAME">
      What is run here counts as the usage of an app.
    </${Empty}>`}
    ${app && html`<div class="pg-page">
      <${Select} label="App" value=${app.id} onChange=${choose} options=${apps.map(({ id, name }) => ({ value: id, label: name }))}
        hint="Usage, limits and budget are this app's. A key named playground is made for an hour; logging out or closing the page revokes it." />
      <${Tab} appId=${app.id} isSandbox=${isSandbox} key=${tab} />
    </div>`}`;
}

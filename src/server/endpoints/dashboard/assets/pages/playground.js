// The playground: a verification or a chat on this server, live, on the account of an app.
import { html, useEffect } from "../lib/html.js";
import { useAll } from "../lib/data.js";
import { Button, Empty, PageHead, Problem, Select, Spinner, Tabs } from "../lib/ui.js";
import { Chat } from "../playground/chat.js";
import * as conversation from "../playground/conversation.js";
import { keep } from "../playground/kept.js";
import { loadOffer } from "../playground/offer.js";
import { createStore, useStore } from "../playground/store.js";
import * as verification from "../playground/verification.js";
import { Verify } from "../playground/verify.js";

const TABS = [
  { href: "#/playground/verify", label: "Verify" },
  { href: "#/playground/chat", label: "Chat" },
];

/** The app that was chosen; null is the first one. */
const chosen = createStore({ appId: null });
keep("app", chosen);

/** For logging out: stops all runs, and forgets input and results. */
export function leave() {
  verification.reset();
  conversation.reset();
  chosen.reset();
}

export default function Playground({ route }) {
  const tab = route?.parts?.[1] === "chat" ? "chat" : "verify";
  const { rows: apps, error } = useAll("v1/apps");
  const { appId: wanted } = useStore(chosen);
  const app = apps?.find(({ id }) => id === wanted) ?? apps?.[0];

  useEffect(() => {
    if (app) loadOffer(app.id);
  }, [app?.id]);

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
  };
  const Tab = tab === "chat" ? Chat : Verify;
  return html`<${PageHead} title="Playground" lead="Try this server in the browser." />
    <${Tabs} label="Playground" tabs=${TABS} current=${`#/playground/${tab}`} />
    ${error && html`<${Problem} error=${error} />`}
    ${!apps && !error && html`<${Spinner} label="Loading apps…" />`}
    ${apps && !app && html`<${Empty} title="No app yet" action=${html`<${Button} kind="primary" href="#/apps">Go to the apps</${Button}>`} command="mk apps create NAME">
      What is run here counts as the usage of an app.
    </${Empty}>`}
    ${app && html`<div class="pg-page">
      <${Select} label="App" value=${app.id} onChange=${choose} options=${apps.map(({ id, name }) => ({ value: id, label: name }))}
        hint="Usage here is charged to this app, within its budget. No key is made for it." />
      <${Tab} appId=${app.id} key=${tab} />
    </div>`}`;
}

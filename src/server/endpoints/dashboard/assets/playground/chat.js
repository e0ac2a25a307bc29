// The tab for a conversation with a model.
import { html, useEffect } from "../lib/html.js";
import { Button, Field, Select, Status } from "../lib/ui.js";
import { money } from "../lib/format.js";
import { curl, mkChat } from "./command.js";
import { askAgain, bodyOf, cancel, clear, exchanges, form, start } from "./conversation.js";
import { Exchange, stepOf } from "./exchange.js";
import { Offered } from "./offered.js";
import { offer } from "./offer.js";
import { Simulated } from "./simulated.js";
import { submitOnEnter, useHandover } from "./focus.js";
import { ShowAs } from "./show_as.js";
import { useStore } from "./store.js";
import { MAX_EXCHANGES, isOpen } from "./talk.js";
import { shown } from "./text.js";

const PATH = "inference/v1/chat/completions";

/** `appId` is the app whose account is used. */
export function Chat({ appId }) {
  const set = useStore(form);
  const all = useStore(exchanges);
  const { models, defaultModel } = useStore(offer);
  const running = isOpen(all.at(-1));
  const isFull = all.length >= MAX_EXCHANGES;
  const [stopButton, draft] = useHandover(running);
  // The model that was chosen before may not be offered any more.
  useEffect(() => {
    if (models && !models.some(({ id }) => id === form.get().model)) form.set({ model: defaultModel });
  }, [models]);

  const submit = (event) => {
    event.preventDefault();
    if (!running && !isFull && set.model !== "" && set.draft.trim() !== "") start(appId);
  };
  const startAnew = () => {
    clear();
    draft.current?.focus();
  };
  // With nothing typed yet, the commands repeat the last question.
  const last = all.at(-1);
  const isNew = set.draft.trim() !== "" || !last;
  const body = isNew ? bodyOf(set, all, set.draft) : bodyOf(set, all.slice(0, -1), last.question);
  const modelOf = (id) => models?.find((model) => model.id === id);
  return html`<${Simulated} when=${modelOf(set.model)?.is_simulated} />
    <form class="pg-form" onSubmit=${submit} onKeyDown=${submitOnEnter}>
      <${Offered} appId=${appId} />
      ${models && html`<${ModelChoice} models=${models} value=${set.model} />`}
      <${Settings} set=${set} />
      ${all.length > 0 && html`<section aria-label="Conversation"><ol class="pg-talk">
        ${all.map((exchange, index) => html`<${Exchange} key=${index} exchange=${exchange} model=${modelOf(exchange.model)} again=${index === all.length - 1 ? () => askAgain(appId) : undefined} />`)}
      </ol></section>`}
      <${Status}>${stepOf(last)}</${Status}>
      <${Field} label=${all.length === 0 ? "Message" : "Next message"} lines=${3} required dir="auto" inputRef=${draft} value=${set.draft} onInput=${(text) => form.set({ draft: text })}
        error=${isFull ? `A conversation here has at most ${MAX_EXCHANGES} messages. Start a new one.` : undefined} />
      <div class="pg-actions">
        <${Button} kind="primary" type="submit" busy=${running} disabled=${set.model === "" || isFull} aria-keyshortcuts="Control+Enter Meta+Enter">${running ? "Answering" : "Send"}</${Button}>
        ${running && html`<${Button} onClick=${cancel} buttonRef=${stopButton}>Stop</${Button}>`}
        ${all.length > 0 && !running && html`<${Button} kind="quiet" onClick=${startAnew}>New conversation</${Button}>`}
        <span class="muted pg-shortcut">Ctrl or ⌘ + Enter</span>
      </div>
    </form>
    <${ShowAs} service="inference" missing=${set.draft.trim() === "" && !last && "a message"} note=${body.messages.length > 2 ? "mk sends the last message alone; curl sends the whole conversation." : ""}
      commands=${(base) => ({ mk: mkChat(base, body), curl: curl(base, PATH, body) })} />`;
}

function ModelChoice({ models, value }) {
  if (models.length === 0) return html`<p class="problem">This server has no model to chat with. Its operator must configure a provider; <code>mk doctor</code> shows what is missing.</p>`;
  return html`<${Select} label="Model" value=${value} onChange=${(model) => form.set({ model })} hint=${priceOf(models.find(({ id }) => id === value))}
    options=${models.map(({ id }) => ({ value: id, label: shown(id, 200) }))} />`;
}

function priceOf(model) {
  if (!model) return undefined;
  if (model.is_simulated) return "Simulated: it knows few facts and costs nothing.";
  const { input_usd_per_mtok: input, output_usd_per_mtok: output } = model;
  if (input === undefined || output === undefined) return "Price unknown.";
  return `${money(input)} for a million tokens of the prompt, ${money(output)} of the answer.`;
}

function Settings({ set }) {
  const changed = ["system", "temperature", "maxTokens"].filter((name) => set[name] !== "").length;
  const change = (name) => (value) => form.set({ [name]: value });
  return html`<details class="pg-more">
    <summary>More options${changed > 0 && html` <span class="pg-chip">${changed} set</span>`}</summary>
    <${Field} label="System prompt" optional lines=${2} dir="auto" value=${set.system} onInput=${change("system")} hint="Instructions for the model, sent before the conversation." />
    <div class="pg-grid">
      <${Field} label="Temperature" optional type="number" min="0" max="2" step="any" inputmode="decimal" value=${set.temperature} onInput=${change("temperature")} hint="0 to 2; empty: the provider's default." />
      <${Field} label="Max tokens" optional type="number" min="1" step="1" inputmode="numeric" value=${set.maxTokens} onInput=${change("maxTokens")} hint="Of the answer; empty: the provider's default." />
    </div>
  </details>`;
}

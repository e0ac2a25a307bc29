// The tab for verifying a statement.
import { html, useRef } from "../lib/html.js";
import { Button, Check, Field, Select, Status } from "../lib/ui.js";
import { curl, mkVerify } from "./command.js";
import { submitOnEnter, useHandover } from "./focus.js";
import { isSimulated, offer } from "./offer.js";
import { Outcome, stepOf } from "./outcome.js";
import { isRunning } from "./run.js";
import { ShowAs } from "./show_as.js";
import { Simulated } from "./simulated.js";
import { useStore } from "./store.js";
import { DEFAULTS, bodyOf, cancel, form, run, start } from "./verification.js";

const EXAMPLES = [
  { label: "True and false", fact: "The capital of Australia is Canberra. The capital of France is Lyon." },
  { label: "Models disagree", fact: "The Nile is the longest river in the world." },
  { label: "With an opinion", fact: "Paris is the capital of France. It is the most beautiful city. 7 times 8 is 56." },
];
/** How simulated models react to a trigger word. */
const SANDBOX_EXAMPLES = [
  { label: "A model fails", fact: "The capital of Japan is Tokyo [sandbox:fail=beta]." },
  { label: "Slow models", fact: "The capital of Italy is Rome [sandbox:slow]. The capital of Spain is Porto [sandbox:slow]." },
];

/** `appId` is the app whose account is used. */
export function Verify({ appId }) {
  const set = useStore(form);
  const simulated = isSimulated(useStore(offer).domains, set.domain);
  const state = useStore(run);
  const running = isRunning(state);
  const statement = useRef(null);
  const [cancelButton, runButton] = useHandover(running);

  const submit = (event) => {
    event.preventDefault();
    if (!running) start(appId);
  };
  const choose = (fact) => {
    form.set({ fact });
    statement.current?.focus();
  };
  const examples = simulated ? [...EXAMPLES, ...SANDBOX_EXAMPLES] : EXAMPLES;
  const body = bodyOf(set);
  return html`<${Simulated} when=${simulated} />
    <form class="pg-form" onSubmit=${submit} onKeyDown=${submitOnEnter}>
      <${Field} label="Statement" lines=${4} required dir="auto" inputRef=${statement} value=${set.fact} onInput=${(fact) => form.set({ fact })}
        hint="Its claims are put to several models as neutral questions." error=${problemOf(state, "fact")} />
      <div class="pg-examples" role="group" aria-label="Examples">
        <span class="muted" aria-hidden="true">Examples:</span>
        ${examples.map(({ label, fact }) => html`<${Button} key=${label} small onClick=${() => choose(fact)}>${label}</${Button}>`)}
      </div>
      <${Options} set=${set} state=${state} />
      <div class="pg-actions">
        <${Button} kind="primary" type="submit" busy=${running} buttonRef=${runButton} aria-keyshortcuts="Control+Enter Meta+Enter">${running ? "Verifying" : "Verify"}</${Button}>
        ${running && html`<${Button} onClick=${cancel} buttonRef=${cancelButton}>Cancel</${Button}>`}
        <span class="muted pg-shortcut">Ctrl or ⌘ + Enter</span>
      </div>
    </form>
    <${Status}>${stepOf(state)}</${Status}>
    <${Outcome} run=${state} />
    <${ShowAs} service="verify" missing=${set.fact.trim() === "" && "a statement"} commands=${(base) => ({ mk: mkVerify(base, body), curl: curl(base, "verify/v1/stream", body) })} />`;
}

function Options({ set, state }) {
  const names = ["domain", "minRequired", "totalModels", "asOf", "explain", "context"];
  const changed = names.filter((name) => set[name] !== DEFAULTS[name]).length;
  // Once opened because of an error, they stay open while it is being corrected.
  const isOpen = useRef(false);
  isOpen.current ||= names.includes(state.fault?.param);
  const change = (name) => (value) => form.set({ [name]: value });
  return html`<details class="pg-more" open=${isOpen.current}>
    <summary>More options${changed > 0 && html` <span class="pg-chip">${changed} set</span>`}</summary>
    <div class="pg-grid">
      <${Select} label="Domain" value=${set.domain} onChange=${change("domain")} error=${problemOf(state, "domain")}
        options=${[{ value: "general", label: "General" }, { value: "legal", label: "Legal" }]} />
      <${Select} label="Models that must agree" value=${set.minRequired} onChange=${change("minRequired")} error=${problemOf(state, "minRequired")}
        options=${[{ value: "2", label: "2" }, { value: "3", label: "3" }]} />
      <${Field} label="Models asked" type="number" min="2" max="9" step="1" inputmode="numeric" placeholder="3" value=${set.totalModels} onInput=${change("totalModels")}
        hint="At least as many as must agree." error=${problemOf(state, "totalModels")} />
      <${Field} label="As of" type="date" value=${set.asOf} onInput=${change("asOf")} hint="Facts are judged as of this date (default: today)." error=${problemOf(state, "asOf")} />
    </div>
    <${Field} label="Context" optional lines=${3} dir="auto" value=${set.context} onInput=${change("context")}
      hint="Models answer from this text instead of from what they know." error=${problemOf(state, "context")} />
    <${Check} label="Ask each model for its reason" checked=${set.explain} onChange=${change("explain")} />
  </details>`;
}

/** The server's error for a field of the last run; the banner shows it in full. */
function problemOf(state, name) {
  return state.phase === "failed" && state.fault?.param === name ? state.fault.message : undefined;
}

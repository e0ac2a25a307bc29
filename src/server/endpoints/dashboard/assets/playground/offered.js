// While it is not known what the server offers, or if it cannot be read.
import { html } from "../lib/html.js";
import { Button, Spinner } from "../lib/ui.js";
import { Fault } from "./fault.js";
import { loadOffer, offer } from "./offer.js";
import { useStore } from "./store.js";

export function Offered({ appId }) {
  const { models, fault } = useStore(offer);
  if (fault) {
    return html`<${Fault} fault=${fault} />
      <p><${Button} small onClick=${() => loadOffer(appId, true)}>Load the models again</${Button}></p>`;
  }
  return models ? null : html`<${Spinner} label="Loading models…" />`;
}

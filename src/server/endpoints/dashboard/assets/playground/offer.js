// What the server offers to try out on the account of the chosen app: the domains of a verification, the chat models.
import { faultOf, offerOf } from "./request.js";
import { createStore } from "./store.js";
import { list, text } from "./text.js";

/** `{appId, models, domains, defaultModel, fault}`; `models` and `domains` are null until they are known. */
export const offer = createStore({ appId: null, models: null, domains: null, defaultModel: "", fault: null });

/** Reads the offer for an app, unless it has been read. */
export async function loadOffer(appId, again = false) {
  const old = offer.get();
  if (old.appId === appId && !again && !old.fault) return;
  const isCurrent = () => offer.get().appId === appId;
  offer.set({ appId, models: null, domains: null, defaultModel: "", fault: null });
  try {
    const found = await offerOf(appId);
    if (!isCurrent()) return;
    const models = list(found?.models, 1000).filter((model) => text(model?.id) !== "");
    offer.set({ models, domains: list(found?.domains, 100), defaultModel: text(found?.default_model) });
  } catch (cause) {
    if (isCurrent()) offer.set({ fault: faultOf(cause) });
  }
}

/** Whether simulated models judge a domain, as far as it is known. */
export function isSimulated(domains, name) {
  return domains?.find(({ domain }) => domain === name)?.is_simulated === true;
}

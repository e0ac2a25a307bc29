// The verification of this page: started, stopped, and read as it arrives.
import { keep } from "./kept.js";
import { faultOf, faultOfEvent, isStop, send } from "./request.js";
import { IDLE, apply, begin, isRunning } from "./run.js";
import { createStore } from "./store.js";
import { StreamError, frames, objectOf } from "./stream.js";

/** The settings of a verification; an empty string leaves the choice to the server. */
export const DEFAULTS = { fact: "", domain: "general", minRequired: "2", totalModels: "", asOf: "", explain: false, context: "" };

export const form = createStore(DEFAULTS);
export const run = createStore(IDLE);
keep("verify form", form);
// A run has ended with the page.
keep("verify", run, (state) => (isRunning(state) ? { ...state, phase: "stopped" } : state));

let stop = null;

/** The request's body, without values that are the default anyway. */
export function bodyOf(set) {
  const body = { fact: set.fact };
  if (set.domain !== DEFAULTS.domain) body.domain = set.domain;
  if (set.minRequired !== DEFAULTS.minRequired) body.minRequired = Number(set.minRequired);
  if (set.totalModels !== "") body.totalModels = Number(set.totalModels);
  if (set.asOf !== "") body.asOf = set.asOf;
  if (set.explain) body.explain = true;
  if (set.context.trim() !== "") body.context = set.context;
  return body;
}

/** Verifies the statement in the form, on an app's account. */
export async function start(appId) {
  if (isRunning(run.get())) return;
  const mine = new AbortController();
  stop = mine;
  const begun = performance.now();
  const set = (change) => stop === mine && run.set(change);
  set(begin);
  try {
    const body = bodyOf(form.get());
    const headers = { accept: "text/event-stream", "x-mk-progress": "models" };
    const response = await send(appId, "verify", { body, headers, signal: mine.signal });
    await follow(response.body, set);
  } catch (cause) {
    const end = isStop(cause) ? { phase: "stopped" } : { phase: "failed", fault: faultOf(cause) };
    set((state) => ({ ...state, ...end }));
  }
  set((state) => ({ ...state, elapsed: performance.now() - begun }));
}

async function follow(body, set) {
  for await (const { event, data } of frames(body)) {
    const object = objectOf(data);
    if (!object) continue;
    if (event === "error") {
      set((state) => ({ ...state, phase: "failed", fault: faultOfEvent(object, "The verification failed") }));
      return;
    }
    set((state) => apply(state, event, object));
    if (event === "completed") return;
  }
  throw new StreamError("cut", "The stream ended before the verification was complete.");
}

/** Stops the run: the server sees the connection close and ends its work. */
export function cancel() {
  stop?.abort();
}

/** Forgets input and results. */
export function reset() {
  cancel();
  stop = null;
  form.reset();
  run.reset();
}

// What is tried out here: sent through the session, on the account of an app, and its errors as messages.
import { ApiError, api } from "../lib/api.js";
import { sentence } from "../lib/format.js";
import { StreamError } from "./stream.js";

/** The response to a request that tries `what` out (`verify`, `chat`); anything but a 2xx is thrown as an `ApiError`. */
export function send(appId, what, { body, headers, signal }) {
  return api.open(`${pathOf(appId)}/${what}`, { body, headers, signal });
}

/** What can be tried out on the account of an app. */
export function offerOf(appId) {
  return api.get(pathOf(appId));
}

function pathOf(appId) {
  return `v1/apps/${encodeURIComponent(appId)}/try`;
}

/** Whether the request was aborted on purpose, so that there is nothing to report. */
export function isStop(cause) {
  return cause?.name === "AbortError";
}

/** The description of an error: `{title, message, hint?, code, retryAt?, param?, requestId?}`. */
export function faultOf(cause) {
  if (cause instanceof StreamError) {
    return { title: "The answer is incomplete", message: cause.message, hint: "What had come until then is kept below. Run it again.", code: cause.code };
  }
  const isKnown = cause instanceof ApiError;
  const { status = 0, code = "unknown", retryAt, param, requestId } = isKnown ? cause : {};
  const message = isKnown ? cause.message : "This page failed; reload it.";
  return { title: titleOf(status, code), message, hint: hintOf(status, code), code, retryAt, param, requestId };
}

function titleOf(status, code) {
  if (code === "unreachable") return "Not reached";
  if (status === 400 && code === "content_filter") return "The model declined";
  if (status === 400 || status === 413) return "The server does not accept this";
  if (status === 401) return "You are not logged in";
  if (status === 402) return "The budget does not allow it";
  if (status === 403) return "Not allowed";
  if (status === 404) return "Not found";
  if (status === 429) return "Too many requests";
  if (status === 503) return "Not available for now";
  return "It failed";
}

function hintOf(status, code) {
  if (status === 402) return "Raise the budget under Apps, choose another app, or wait for the next month.";
  if (status === 429) return "Usage here counts against the limits of the console key that you are logged in with.";
  if (code === "provider_auth_failed") return "The operator of this server has to check the provider's key.";
  return undefined;
}

/** The error in the `error` frame of a verification, or in a chunk of a completion. */
export function faultOfEvent(data, title) {
  const message = sentence(typeof data?.message === "string" && data.message !== "" ? data.message : "The server did not say why");
  const code = typeof data?.code === "string" ? data.code : "unknown";
  const requestId = typeof data?.requestId === "string" ? data.requestId : undefined;
  return { title, message, code, requestId, hint: hintOf(0, code) };
}

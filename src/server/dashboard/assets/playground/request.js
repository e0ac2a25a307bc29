// The playground's own requests: sent with a short-lived key instead of the session, and their errors as messages.
import { ApiError, errorOf } from "../lib/api.js";
import { sentence } from "../lib/format.js";
import { drop, keyFor } from "./keys.js";
import { StreamError } from "./stream.js";

/**
 * The response to a request of a service; anything but a 2xx is thrown as an `ApiError`, with `retryAt` (milliseconds)
 * if the server says when to retry. A key that is refused is replaced once, as it may have been revoked.
 */
export async function send(appId, service, path, { body, headers, signal }) {
  for (let hasNewKey = false; ; hasNewKey = true) {
    const key = await keyFor(appId, service);
    signal?.throwIfAborted();
    const response = await post(path, key, { body, headers, signal });
    if (response.ok) return response;
    if (response.status === 401) {
      await drop(service, key);
      if (!hasNewKey) {
        response.body?.cancel().catch(() => {});
        continue;
      }
    }
    const error = await errorOf(response);
    const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    if (seconds > 0) error.retryAt = Date.now() + seconds * 1000;
    throw error;
  }
}

async function post(path, key, { body, headers, signal }) {
  const isRead = body === undefined;
  try {
    return await fetch(path, {
      method: isRead ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, ...(isRead ? {} : { "content-type": "application/json" }), ...headers },
      body: isRead ? undefined : JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      signal,
    });
  } catch (cause) {
    if (cause.name === "AbortError") throw cause;
    throw new ApiError({ status: 0, code: "unreachable", message: "The server cannot be reached. Check that it is running, then try again." });
  }
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
  if (status === 401) return "The key was refused";
  if (status === 402) return "The budget does not allow it";
  if (status === 403) return "Not allowed";
  if (status === 404) return "Not found";
  if (status === 429) return "Too many requests";
  if (status === 503) return "Not available for now";
  return "It failed";
}

function hintOf(status, code) {
  if (status === 401) return "A new key was tried and refused as well: it may have been revoked under Apps, or your session has ended. Try again, or sign in again.";
  if (status === 402) return "Raise the budget under Apps, choose another app, or wait for the next month.";
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

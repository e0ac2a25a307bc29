// The console API. Addresses are relative (`v1/apps`), so that the page works under any path prefix; the session is a
// cookie that scripts cannot read.
import { sentence } from "./format.js";

/** An error, in the server's words. `status` is 0 without a response; `retryAt` in milliseconds, if the server says when. */
export class ApiError extends Error {
  constructor({ status, code, message, param, requestId, retryAt }) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.param = param;
    this.requestId = requestId;
    this.retryAt = retryAt;
  }
}

let lostSession = () => {};

/** Sets the callback for when the server reports that there is no session (any more). */
export function onLostSession(listener) {
  lostSession = listener;
}

const UNREACHABLE = "The server cannot be reached. Check that it is running, then try again.";

async function send(method, path, { body, accept = "application/json", headers: more, signal, quiet = false } = {}) {
  const headers = { accept, ...more };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal,
    });
  } catch (cause) {
    if (cause.name === "AbortError") throw cause;
    throw new ApiError({ status: 0, code: "unreachable", message: UNREACHABLE });
  }
  if (!response.ok) {
    const error = await errorOf(response);
    if (error.status === 401 && !quiet) lostSession(error);
    throw error;
  }
  return response;
}

/** The error in a response. */
async function errorOf(response) {
  const body = await response.json().catch(() => null);
  const text = typeof body?.message === "string" ? body.message : `The server answered with status ${response.status}.`;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new ApiError({
    retryAt: seconds > 0 ? Date.now() + seconds * 1000 : undefined,
    status: response.status,
    code: body?.code ?? "unknown",
    message: sentence(text),
    param: body?.param,
    requestId: body?.request_id ?? response.headers.get("x-request-id") ?? undefined,
  });
}

async function json(method, path, options) {
  const response = await send(method, path, options);
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch (cause) {
    if (cause.name === "AbortError") throw cause;
    throw new ApiError({ status: 0, code: "cut", message: "The connection broke during the answer. Try again." });
  }
}

// `options`: `{signal}` to abort a request, `{quiet: true}` where a 401 is a result and not a lost session.
export const api = {
  get: (path, options) => json("GET", path, options),
  post: (path, body, options) => json("POST", path, { ...options, body: body ?? {} }),
  patch: (path, body, options) => json("PATCH", path, { ...options, body }),
  del: (path, options) => json("DELETE", path, options),
  /** The response to a POST, for a body that is read as it arrives. */
  open: (path, options) => send("POST", path, options),
  /** The response as text of another type, such as `text/csv`. */
  text: async (path, accept, options) => (await send("GET", path, { ...options, accept })).text(),
};

/** `path?a=1&b=2`, without empty parameters. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

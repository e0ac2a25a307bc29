// Short-lived keys for the playground's own requests.
//
// What must hold: a key exists only in this module's memory, never in storage or the page; it expires within the hour;
// it is revoked as soon as it is no longer needed. Its name makes it easy to find in an app's list.
import { api } from "../lib/api.js";

const NAME = "playground";
const LIFE_MS = 60 * 60 * 1000;
/** A key this close to its expiry is no longer used, so that a run can finish with the key it started with. */
const MARGIN_MS = 5 * 60 * 1000;

/** Maps `service` to `{appId, made}`, where `made` is a promise of `{key, id, until}`. */
const held = new Map();

/** A key for a service (`verify`, `inference`) on an app's account. */
export async function keyFor(appId, service) {
  const old = held.get(service);
  if (old?.appId === appId) {
    const made = await old.made;
    if (Date.now() < made.until) return made.key;
  }
  // Another call may have created one meanwhile.
  if (held.get(service) === old) {
    if (old) forget(service);
    const entry = { appId, made: make(appId, service) };
    held.set(service, entry);
    entry.made.catch(() => held.get(service) === entry && held.delete(service));
  }
  const entry = held.get(service);
  return entry.appId === appId ? (await entry.made).key : keyFor(appId, service);
}

async function make(appId, service) {
  const expiresAt = new Date((await serverNow()) + LIFE_MS).toISOString();
  const created = await api.post(`v1/apps/${encodeURIComponent(appId)}/keys`, { service, name: NAME, expires_at: expiresAt });
  return { key: created.key, id: created.id, until: Date.now() + LIFE_MS - MARGIN_MS };
}

/** The server's clock decides when a key expires, and this machine's may be wrong. */
async function serverNow() {
  try {
    const response = await fetch("verify/v1/health", { cache: "no-store", credentials: "omit" });
    const told = Date.parse(response.headers.get("date") ?? "");
    return Number.isNaN(told) ? Date.now() : told;
  } catch {
    return Date.now();
  }
}

/** Drops a key of a service, unless it has been replaced already. */
export async function drop(service, key) {
  const entry = held.get(service);
  const made = await entry?.made.catch(() => null);
  if (made?.key === key && held.get(service) === entry) forget(service);
}

function forget(service, keepalive = false) {
  const entry = held.get(service);
  held.delete(service);
  return entry?.made.then(
    ({ id }) => revoke(entry.appId, id, keepalive),
    () => {},
  );
}

async function revoke(appId, id, keepalive) {
  const path = `v1/apps/${encodeURIComponent(appId)}/keys/${encodeURIComponent(id)}`;
  // Best effort: the key expires within the hour anyway.
  if (keepalive) await fetch(path, { method: "DELETE", keepalive: true, credentials: "same-origin" }).catch(() => {});
  else await api.del(path, { quiet: true }).catch(() => {});
}

/** Revokes all keys; resolves when that is done, or has failed. For a change of the app, and before logging out. */
export async function dropAll() {
  await Promise.all([...held.keys()].map((service) => forget(service)));
}

globalThis.addEventListener?.("pagehide", () => {
  for (const service of [...held.keys()]) forget(service, true);
});

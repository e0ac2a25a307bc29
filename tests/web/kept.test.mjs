import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./modules.mjs";

const stored = new Map();
globalThis.sessionStorage = {
  getItem: (name) => stored.get(name) ?? null,
  setItem: (name, value) => stored.set(name, value),
  removeItem: (name) => stored.delete(name),
};
let hide;
globalThis.addEventListener = (name, listener) => {
  assert.equal(name, "pagehide");
  hide = listener;
};

/** The page after it was loaded, with a store whose value may be kept. */
async function loaded() {
  const [{ keep, recall }] = await load("playground/kept.js");
  const store = { value: "", get: () => store.value, set: (change) => { store.value = change(store.value); } };
  keep("it", store, (value) => (value === "secret" ? null : value));
  return { recall, store };
}

const session = (id, version = "1") => ({ key: { id }, version });

test("what a page leaves behind comes back once, for the same key and version", async () => {
  const first = await loaded();
  hide();
  assert.equal(stored.size, 0, "nothing is kept without a session");
  first.recall(session("key_1"));
  first.store.value = "typed";
  hide();
  assert.equal(stored.size, 1);

  const second = await loaded();
  second.recall(session("key_1"));
  assert.deepEqual([second.store.value, stored.size], ["typed", 0]);
  for (const other of [session("key_2"), session("key_1", "2")]) {
    const mine = await loaded();
    mine.recall(session("key_1"));
    mine.store.value = "typed";
    hide();
    assert.equal(stored.size, 1);
    const theirs = await loaded();
    theirs.recall(other);
    assert.deepEqual([theirs.store.value, stored.size], ["", 0]);
  }
});

test("what is not to be kept, and what cannot be read, is nothing", async () => {
  const page = await loaded();
  page.recall(session("key_1"));
  page.store.value = "secret";
  hide();
  const next = await loaded();
  next.recall(session("key_1"));
  assert.equal(next.store.value, "");
  for (const odd of ["", "{", "7", "null", '{"owner":"key_1 1"}', '{"owner":"key_1 1","values":7}']) {
    stored.set("mk-playground", odd);
    next.recall(session("key_1"));
    assert.deepEqual([next.store.value, stored.size], ["", 0], odd);
  }
  page.recall(null);
  hide();
});

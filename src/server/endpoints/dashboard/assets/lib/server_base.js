// This server's address, for commands that are to reach it.
import { quoted } from "../playground/command.js";

/** Where `mk` and the database of a server's machine are looked for if nothing else is said. */
const USUAL = /^http:\/\/(127\.0\.0\.1|localhost):8080$/;

/** The address as callers use it: without the page's own part, but with the path prefix of a proxy. */
export function serverBase() {
  return new URL(".", document.baseURI).href.replace(/\/$/, "");
}

/** An `mk` command, told to work on the server at `base`: elsewhere it would change the database of its own machine. */
export function onServer(command, base) {
  return USUAL.test(base) ? command : command.replace(/^mk /, `mk --server ${quoted(base)} `);
}

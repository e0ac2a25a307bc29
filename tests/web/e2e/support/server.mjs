// The server under test: `mk serve` as users start it, in its own home directory and on a free port.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const MK = process.env.MK_BINARY ?? fileURLToPath(new URL("../../../../target/debug/mk", import.meta.url));
/** Tests open more pages per minute than users do. */
const PATIENT = "open_pages_per_minute = 0\nfailed_auth_per_minute = 0\n";
const DEADLINE_MS = 20_000;

/** Waits until `holds` returns something; fails with `what` if it does not. */
export async function eventually(what, holds) {
  const end = Date.now() + DEADLINE_MS;
  for (;;) {
    const found = await holds();
    if (found) return found;
    assert.ok(Date.now() < end, `never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Starts a server: with simulated models, or with the providers in `config`. `limits` are lines of TOML. */
export async function serve({ config = "", limits = PATIENT } = {}) {
  const home = await mkdtemp(join(tmpdir(), "mk-e2e-"));
  const file = join(home, "server.toml");
  await writeFile(file, `listen = "127.0.0.1:0"\ndata_dir = "data"\n[limits]\n${limits}${config}`);
  // Nothing in the environment, such as a proxy or a real key, may affect the tests.
  const env = { HOME: home, PATH: process.env.PATH };
  const args = ["serve", "--config", file, ...(config === "" ? ["--sandbox"] : [])];
  const child = spawn(MK, args, { env, stdio: ["ignore", "ignore", "pipe"] });
  const log = [];
  createInterface(child.stderr).on("line", (line) => log.push(line.startsWith("{") ? JSON.parse(line) : { message: line }));
  const ended = new Promise((resolve) => child.once("exit", (code) => resolve(code)));
  process.once("exit", () => child.kill("SIGKILL"));
  const server = new Server({ home, file, env, child, ended, log });
  const serving = () => log.find(({ message }) => message === "serving") ?? (child.exitCode !== null && log);
  const line = await eventually("mk serve serves", serving);
  assert.ok(line.address, `mk serve does not serve: ${JSON.stringify(line)}`);
  server.base = `${line.address}/`;
  return server;
}

class Server {
  #process;
  #ended;

  constructor({ home, file, env, child, ended, log }) {
    Object.assign(this, { home, file, env, log });
    this.#process = child;
    this.#ended = ended;
  }

  /** The path of the file with the setup link, as logged. */
  get linkFile() {
    return this.log.find(({ path }) => path?.endsWith("setup-link"))?.path;
  }

  async link() {
    assert.equal((await stat(this.linkFile)).mode & 0o777, 0o600);
    return (await readFile(this.linkFile, "utf8")).trim();
  }

  /** Runs `mk` on this server's database; returns its standard output. */
  async mk(...args) {
    return (await run(MK, [...args, "--config", this.file], { env: this.env })).stdout.trim();
  }

  /** A key created by a command on the machine. */
  key(service = "console", ...options) {
    return this.mk("keys", "create", "--service", service, ...options);
  }

  /** A console key for all calls; tests send more requests than users do. */
  consoleKey() {
    this.madeKey ??= this.key("console", "--name", "laptop", "--per-minute", "0", "--per-day", "0");
    return this.madeKey;
  }

  /** Sends a request with a given key or the console key; returns status, body and response. */
  async call(method, path, { body, key, accept = "application/json" } = {}) {
    const headers = { accept, authorization: `Bearer ${key ?? (await this.consoleKey())}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const response = await fetch(this.base + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, body: isJson ? JSON.parse(text) : text, response };
  }

  /** The records of a list. */
  async list(path) {
    return (await this.call("GET", path)).body.data;
  }

  /** Verifies a statement with a key, and waits until its usage can be read. */
  async verify(fact, key) {
    const tokens = async () => (await this.call("GET", "v1/usage")).body.totals.total_tokens;
    const before = await tokens();
    const answer = await this.call("POST", "verify/v1/stream", { key, body: { fact } });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const after = before + answer.body.tokenUsage.totalTokens;
    await eventually("the usage is booked", async () => (await tokens()) === after);
    return answer.body;
  }

  /** Ages all sessions, as there is no other way to advance the clock of a running server. */
  async age(column, minutes) {
    const sql = `UPDATE sessions SET ${column} = ${column} - ${minutes * 60_000}`;
    const script = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as db: print(db.execute(sys.argv[2]).rowcount)";
    const { stdout } = await run("python3", ["-c", script, join(this.home, "data", "mk.db"), sql]);
    assert.notEqual(stdout.trim(), "0");
  }

  /** The log line of a request. */
  request(path, outcome) {
    return this.log.find((line) => line.message === "request" && line.path === path && line.outcome === outcome);
  }

  async stop() {
    this.#process.kill("SIGTERM");
    const code = await this.#ended;
    await rm(this.home, { recursive: true, force: true });
    const faults = this.log.filter(({ level }) => level === "ERROR");
    assert.deepEqual({ code, faults }, { code: 0, faults: [] });
  }
}

/** Runs a program to its end; fails with its output if it fails. */
export function run(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { timeout: DEADLINE_MS, ...options }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${program} ${args.join(" ")}: ${error.code ?? error.signal}\n${stdout}${stderr}`));
      else resolve({ stdout, stderr });
    });
    // It may end before its standard input is closed.
    child.stdin.on("error", () => {});
    child.stdin.end();
  });
}

/** The path of the `mk` binary. */
export const binary = MK;

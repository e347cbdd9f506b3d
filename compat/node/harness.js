// The server under test, the people and agents of a story, and waiting with a deadline.

import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { Socket } from "phoenix";
import WebSocket from "ws";

const REPOSITORY = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const BINARY = process.env.BANDSTAND_BIN || join(REPOSITORY, "target", "debug", "bandstand");
const READY = /listening on http:\/\/127\.0\.0\.1:(\d+)/;
const DEBIAN_POSTGRESQL = "/usr/lib/postgresql";
const DEADLINE_MS = 20_000;

/** The result of a promise that must come in time. */
export async function within(promise, what, milliseconds = DEADLINE_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${milliseconds} ms: ${what}`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A PostgreSQL database of one server's own; null when the run is about SQLite. */
class Database {
  static fresh() {
    return process.env.COMPAT_ENGINE === "postgres" ? new Database(process.env.COMPAT_DATABASE_URL) : null;
  }

  constructor(cluster) {
    this.cluster = cluster;
    this.name = `compat_${randomBytes(6).toString("hex")}`;
    this.psql(`CREATE DATABASE ${this.name}`);
    const url = new URL(cluster);
    url.pathname = `/${this.name}`;
    this.url = url.toString();
  }

  drop() {
    this.psql(`DROP DATABASE IF EXISTS ${this.name} WITH (FORCE)`);
  }

  psql(statement) {
    // Debian keeps the binaries of each major version in its own folder, outside PATH.
    const versions = existsSync(DEBIAN_POSTGRESQL) ? readdirSync(DEBIAN_POSTGRESQL).sort() : [];
    const binary = versions.length > 0 ? join(DEBIAN_POSTGRESQL, versions.at(-1), "bin", "psql") : "psql";
    execFileSync(binary, ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command", statement, this.cluster]);
  }
}

/** One Bandstand server and its data; it keeps its port and its owner's key over restarts. */
export class Server {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "bandstand-compat-"));
    this.ownerKey = `band_u_${randomBytes(24).toString("hex")}`;
    this.database = Database.fresh();
    this.port = 0;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  async start() {
    if (!existsSync(BINARY)) throw new Error(`no server binary at ${BINARY}: build it, or set BANDSTAND_BIN`);
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("BANDSTAND_"));
    const place = ["--data", join(this.folder, "data"), ...(this.database ? ["--database", this.database.url] : [])];
    const log = openSync(join(this.folder, "server.log"), "a");
    const child = spawn(BINARY, ["up", "--listen", `127.0.0.1:${this.port}`, ...place], {
      env: { ...Object.fromEntries(inherited), BANDSTAND_OWNER_KEY: this.ownerKey },
      stdio: ["ignore", "pipe", log],
    });
    this.child = child;
    this.exited = once(child, "exit");
    const listening = new Promise((ready, failed) => {
      child.once("error", failed);
      const lines = createInterface({ input: child.stdout });
      lines.on("line", (line) => {
        const found = READY.exec(line);
        if (found) ready(Number(found[1]));
      });
      lines.once("close", () => failed(new Error(`the server did not get ready\n${this.log()}`)));
    });
    this.port = await within(listening, "the server listens");
    return this;
  }

  log() {
    return readFileSync(join(this.folder, "server.log"), "utf8").slice(-4000);
  }

  /** Asks it to drain, and insists that it ends well. */
  async stop() {
    this.child.kill("SIGTERM");
    const [code] = await within(this.exited, "the server ends");
    this.child = null;
    if (code !== 0) throw new Error(`the server ended with ${code} after SIGTERM\n${this.log()}`);
  }

  /** Ends it the hard way. */
  async kill() {
    this.child.kill("SIGKILL");
    await within(this.exited, "the server dies");
    this.child = null;
  }

  async close() {
    try {
      if (this.child) await this.stop();
    } finally {
      this.database?.drop();
      rmSync(this.folder, { recursive: true, force: true });
    }
  }

  async call(method, path, key, body) {
    const reply = await fetch(`${this.url}${path}`, {
      method,
      headers: { "x-api-key": key, ...(body ? { "content-type": "application/json" } : {}) },
      body: body && JSON.stringify(body),
    });
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`);
    return reply.status === 204 ? null : (await reply.json()).data;
  }

  async registerAgent(name) {
    const agent = { name, description: "A scripted agent of the compatibility suite" };
    const made = await this.call("POST", "/api/v1/me/agents/register", this.ownerKey, { agent });
    return { id: made.agent.id, key: made.credentials.api_key };
  }

  async openRoom(...agents) {
    const room = await this.call("POST", "/api/v1/me/chats", this.ownerKey, { chat: {} });
    for (const agent of agents) {
      const participant = { participant_id: agent.id };
      await this.call("POST", `/api/v1/me/chats/${room.id}/participants`, this.ownerKey, { participant });
    }
    return room.id;
  }

  async say(room, content, ...agents) {
    const message = { content, mentions: agents.map(({ id }) => ({ id })) };
    return this.call("POST", `/api/v1/me/chats/${room}/messages`, this.ownerKey, { message });
  }

  /** npm phoenix as it is used in Node: the transport is `ws`, the credentials are parameters. */
  socket(params, options = {}) {
    return new Socket(`ws://127.0.0.1:${this.port}/api/v1/socket`, { transport: WebSocket, params, ...options });
  }
}

/** Resolves with the answer to a push, or rejects with it. */
export function answered(push) {
  return new Promise((resolve, reject) => {
    push
      .receive("ok", resolve)
      .receive("error", (response) => reject(Object.assign(new Error("refused"), { response })))
      .receive("timeout", () => reject(new Error("timed out")));
  });
}

/** What arrives one after the other, to be awaited one by one. */
class Arrivals {
  #arrived = [];
  #waiting = [];

  arrive(payload) {
    const waiting = this.#waiting.shift();
    if (waiting) waiting(payload);
    else this.#arrived.push(payload);
  }

  get pending() {
    return this.#arrived.length;
  }

  next(what) {
    if (this.#arrived.length > 0) return Promise.resolve(this.#arrived.shift());
    return within(new Promise((resolve) => this.#waiting.push(resolve)), what);
  }
}

/** The pushes of one event on a channel. */
export class Pushes extends Arrivals {
  constructor(channel, event) {
    super();
    this.event = event;
    channel.on(event, (payload) => this.arrive(payload));
  }

  next(what = this.event) {
    return super.next(what);
  }
}

/** The answers of one status to a join, which the client repeats by itself. */
export class Answers extends Arrivals {
  constructor(push, status) {
    super();
    push.receive(status, (response) => this.arrive(response));
  }
}

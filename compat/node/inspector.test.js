// The official MCP inspector's command mode, unchanged, over HTTP and stdio, with an agent's key and a person's.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { BINARY, Server } from "./harness.js";

const run = promisify(execFile);
const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "node_modules", "@modelcontextprotocol", "inspector-cli");
// It looks for its own description from where it is started.
const OPTIONS = { cwd: join(PACKAGE, "build"), timeout: 30_000, env: { PATH: process.env.PATH } };

async function inspect(...parameters) {
  const { stdout } = await run(process.execPath, ["cli.js", "--cli", ...parameters], OPTIONS);
  return JSON.parse(stdout);
}

describe("the MCP inspector", () => {
  const server = new Server();
  let agent;
  let room;

  before(async () => {
    await server.start();
    agent = await server.registerAgent("Inspected agent");
    room = await server.openRoom(agent);
  });
  after(() => server.close());

  const http = (key, query = "") => [
    `${server.url}/mcp${query}`, "--transport", "http", "--header", `x-api-key: ${key}`,
  ];
  const stdio = (key) => [
    BINARY, "mcp", "-e", `BAND_AGENT_KEY=${key}`, "-e", `BAND_BASE_URL=${server.url}`, "--transport", "stdio",
  ];

  test("lists an agent's tools over HTTP and calls them", async () => {
    const { tools } = await inspect(...http(agent.key, "?tools=tasks"), "--method", "tools/list");
    const names = tools.map(({ name }) => name);
    assert.ok(names.includes("band_wait_for_message") && names.includes("band_create_task"));
    assert.ok(!names.includes("band_add_contact"));

    await server.say(room, "Are you there?", agent);
    const wait = ["--method", "tools/call", "--tool-name", "band_wait_for_message", "--tool-arg", "timeout_s=10"];
    const given = await inspect(...http(agent.key), ...wait);
    assert.match(JSON.parse(given.content[0].text).message.content, /Are you there\?$/);
  });

  test("lists a person's tools over HTTP and calls one", async () => {
    const { tools } = await inspect(...http(server.ownerKey), "--method", "tools/list");
    assert.ok(tools.some(({ name }) => name === "band_send_my_chat_message"));
    const list = ["--method", "tools/call", "--tool-name", "band_list_my_chats"];
    const chats = await inspect(...http(server.ownerKey), ...list);
    assert.deepEqual(JSON.parse(chats.content[0].text).data.map(({ id }) => id), [room]);
  });

  test("lists and calls over stdio", async () => {
    const { tools } = await inspect(...stdio(agent.key), "--method", "tools/list");
    assert.ok(tools.some(({ name }) => name === "band_send_message"));
    const called = await inspect(...stdio(agent.key), "--method", "tools/call", "--tool-name", "health_check");
    assert.equal(called.content[0].text, `OK | agent | ${server.url}`);
  });

  test("a wrong key is refused before a session opens", async () => {
    await assert.rejects(inspect(...http(`band_a_${"0".repeat(43)}`), "--method", "tools/list"), /401|key is not valid/i);
  });
});

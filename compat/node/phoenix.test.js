// npm phoenix 1.8.16, unchanged, as an agent and as a person.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";

import { answered, Answers, Pushes, Server, within } from "./harness.js";

const UNKNOWN_ID = "00000000-0000-4000-8000-000000000000";

/** Disconnects are awaited, or the timers of a socket would keep the test process alive. */
const open = [];

function connected(server, params, options) {
  const socket = server.socket(params, options);
  open.push(socket);
  socket.connect();
  return socket;
}

afterEach(async () => {
  for (const socket of open.splice(0)) {
    await within(new Promise((done) => socket.disconnect(done)), "the socket disconnects");
  }
});

describe("npm phoenix", () => {
  const server = new Server();
  let agent;

  before(async () => {
    await server.start();
    agent = await server.registerAgent("Node agent");
  });
  after(() => server.close());

  test("an agent joins with its key in the parameters and hears what mentions it", async () => {
    const room = await server.openRoom(agent);
    const socket = connected(server, { api_key: agent.key, agent_id: agent.id });
    await answered(socket.channel(`agent_control:${agent.id}`).join());
    await answered(socket.channel(`agent_rooms:${agent.id}`).join());
    const channel = socket.channel(`chat_room:${room}`);
    const created = new Pushes(channel, "message_created");
    await answered(channel.join());

    const sent = [];
    for (const number of [1, 2, 3]) sent.push((await server.say(room, `number ${number}`, agent)).id);

    const heard = [await created.next(), await created.next(), await created.next()];
    assert.deepEqual(
      heard.map(({ id, content, chat_room_id }) => ({ id, content, chat_room_id })),
      sent.map((id, index) => ({ id, content: `@[[${agent.id}]] number ${index + 1}`, chat_room_id: room })),
    );
  });

  test("an agent learns of the rooms that it is brought into and out of", async () => {
    const socket = connected(server, { api_key: agent.key });
    const channel = socket.channel(`agent_rooms:${agent.id}`);
    const [added, removed] = [new Pushes(channel, "room_added"), new Pushes(channel, "room_removed")];
    await answered(channel.join());

    const room = await server.openRoom(agent);
    assert.equal((await added.next()).id, room);
    await server.call("DELETE", `/api/v1/me/chats/${room}/participants/${agent.id}`, server.ownerKey);
    assert.equal((await removed.next()).id, room);
  });

  test("a person's token goes in the sub-protocol", async () => {
    const { access_token: authToken } = await server.call("POST", "/api/v1/sign-in", server.ownerKey);
    const profile = await server.call("GET", "/api/v1/me/profile", server.ownerKey);
    const socket = connected(server, {}, { authToken });
    await answered(socket.channel(`user_rooms:${profile.id}`).join());
  });

  test("a person sees each step of a delivery", async () => {
    const room = await server.openRoom(agent);
    const socket = connected(server, { api_key: server.ownerKey });
    const channel = socket.channel(`chat_room:${room}`);
    const [created, updated] = [new Pushes(channel, "message_created"), new Pushes(channel, "message_updated")];
    await answered(channel.join());

    const { id } = await server.say(room, "hello", agent);
    assert.equal((await created.next()).id, id);
    for (const mark of ["processing", "processed"]) {
      await server.call("POST", `/api/v1/agent/chats/${room}/messages/${id}/${mark}`, agent.key);
      let status;
      while (status !== mark) {
        const payload = await updated.next(`message_updated with ${mark}`);
        assert.equal(payload.id, id);
        status = payload.metadata.delivery_status?.[agent.id]?.status;
      }
    }
  });

  test("a channel that is not the caller's is refused with a reason, again and again", async () => {
    const socket = connected(server, { api_key: agent.key }, { rejoinAfterMs: () => 20 });
    for (const [topic, reason] of [
      [`chat_room:${UNKNOWN_ID}`, "unauthorized"],
      [`agent_control:${UNKNOWN_ID}`, "unauthorized"],
      ["weather:today", "unmatched topic"],
    ]) {
      const channel = socket.channel(topic);
      const refusals = new Answers(channel.join(), "error");
      // This client never gives up on a refused channel, and the server must bear it.
      for (let time = 0; time < 3; time++) assert.deepEqual(await refusals.next(`a refusal of ${topic}`), { reason });
      channel.leave();
    }
  });

  test("a leave is answered, and a topic can be joined anew", async () => {
    const room = await server.openRoom(agent);
    const socket = connected(server, { api_key: agent.key });
    const left = socket.channel(`chat_room:${room}`);
    const unheard = new Pushes(left, "message_created");
    await answered(left.join());
    await within(answered(left.leave()), "the leave is answered", 2000);
    await server.say(room, "nobody listens", agent);

    const joined = socket.channel(`chat_room:${room}`);
    const heard = new Pushes(joined, "message_created");
    await answered(joined.join());
    const { id } = await server.say(room, "somebody listens", agent);
    let latest;
    do latest = await heard.next();
    while (latest.id !== id);
    assert.equal(unheard.pending, 0);
  });

  test("heartbeats are answered", async () => {
    const socket = server.socket({ api_key: agent.key }, { heartbeatIntervalMs: 50 });
    open.push(socket);
    const thrice = new Promise((resolve, reject) => {
      let beats = 0;
      // It closes by itself when an answer is missing.
      socket.onClose(() => reject(new Error(`closed after ${beats} heartbeats`)));
      socket.onMessage(({ topic, event, payload }) => {
        if (topic !== "phoenix") return;
        assert.equal(event, "phx_reply");
        assert.deepEqual(payload, { status: "ok", response: {} });
        if (++beats === 3) resolve();
      });
    });
    socket.connect();
    await within(thrice, "three heartbeats are answered");
  });

  test("a wrong key does not connect", async () => {
    const socket = server.socket({ api_key: "nonsense" });
    open.push(socket);
    const opened = new Promise((_, reject) => socket.onOpen(() => reject(new Error("it connected"))));
    const refused = new Promise((resolve) => socket.onError(resolve));
    socket.connect();
    const error = await within(Promise.race([refused, opened]), "the connection is refused");
    assert.match(String(error.message ?? error.error?.message), /403/);
  });
});

for (const how of ["stop", "kill"]) {
  test(`after a server's ${how} the client comes back and rejoins everything`, async (t) => {
    const server = await new Server().start();
    t.after(() => server.close());
    const agent = await server.registerAgent("Node agent");
    const room = await server.openRoom(agent);
    const socket = connected(
      server,
      { api_key: agent.key, agent_id: agent.id },
      { reconnectAfterMs: () => 50, rejoinAfterMs: () => 50 },
    );
    const channel = socket.channel(`chat_room:${room}`);
    const created = new Pushes(channel, "message_created");
    const joins = new Answers(channel.join(), "ok");
    await joins.next("the channel is joined");
    const before = await server.say(room, "before", agent);
    assert.equal((await created.next()).id, before.id);

    await server[how]();
    await server.start();

    await joins.next("the channel is joined again");
    const after = await server.say(room, "after", agent);
    let heard;
    do heard = await created.next();
    while (heard.id !== after.id);
  });
}

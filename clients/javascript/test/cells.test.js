import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { CellError, Cells } from "../server/index.js";
import { SocketTransport } from "../src/socket.js";
import { verdict } from "../src/outcome.js";
import { KEY, Service, skip } from "./help/service.js";
import { World } from "./help/world.js";

test("what another cell has is asked for again, and what moved is joined again", () => {
  assert.equal(verdict({ status: 421, body: { code: "misdirected" } }), "again");
  assert.equal(verdict({ status: 409, body: { code: "moved" } }), "rejoin");
});

test("of cells each room has a stream at its own address, and of one service they share one", async () => {
  const world = new World();
  const rooms = ["a", "b/c"].map((roomId) => world.watch({ roomId, cells: true, view: "count" }));
  const shared = ["d", "e"].map((roomId) => world.watch({ roomId }));
  await world.pass(50);
  const paths = world.requests.map(({ url }) => url.replace("http://service", ""));
  assert.deepEqual(paths.sort(), ["/events?room=d&room=e", "/rooms/a/events?view=count", "/rooms/b%2Fc/events?view=count"]);
  for (const room of [...rooms, ...shared]) room.close();
});

test("of cells each room has a socket at its own address", async () => {
  const world = new World();
  const room = world.watch({ roomId: "b/c", cells: true, transport: SocketTransport });
  await world.pass(50);
  assert.deepEqual(world.sockets.map(({ url }) => url), ["ws://service/rooms/b%2Fc/socket"]);
  room.close();
});

async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

suite("with two real services as cells", { skip }, () => {
  let one, two, cells;
  before(async () => {
    [one, two] = await Promise.all([1, 2].map(() => Service.start({ LEASEHOLD_SERVER_KEYS: KEY })));
    cells = new Cells({ cells: { one: { url: one.url, key: KEY }, two: { url: two.url + "/", key: KEY } } });
  });
  after(() => Promise.all([one?.end(), two?.end()]));

  test("rooms and people are merged in their order, page by page", async () => {
    // More than a page in one of them.
    const ids = Array.from({ length: 130 }, (_, n) => `merge-${String(n).padStart(3, "0")}`);
    for (const id of ids) await (id.endsWith("7") ? two : one).ask("POST", `/rooms/${id}/join`, { userId: "alice" });
    assert.deepEqual((await all(cells.rooms({ prefix: "merge-" }))).map(({ roomId }) => roomId), ids);
    assert.deepEqual((await all(cells.userRooms("alice"))).map(({ roomId }) => roomId), ids);
    const sessions = await all(cells.userSessions("alice"));
    assert.deepEqual(sessions.map(({ roomId }) => roomId), ids.toReversed());
    const [alice, nobody] = await cells.whereabouts(["alice", "nobody"]);
    // Up to a hundred of each cell.
    assert.equal(alice.rooms.length, 113);
    assert.deepEqual(nobody, { userId: "nobody", rooms: [], lastSeenMs: null });
  });

  test("history that a move has left in two cells is told once", async () => {
    for (const cell of [one, two]) await cell.ask("POST", "/rooms/moved/join", { userId: "bob" });
    const sessions = await all(cells.userSessions("bob"));
    assert.deepEqual(sessions.map(({ roomId, epoch }) => [roomId, epoch]), [["moved", 1]]);
  });

  test("the feeds are read side by side, each from its position, and nothing twice", async () => {
    const latest = await cells.changes({ one: "latest", two: "latest" });
    assert.deepEqual(latest.changes, []);
    await one.ask("POST", "/rooms/feed-1/join", { userId: "carol" });
    const first = await cells.changes(latest.positions);
    await two.ask("POST", "/rooms/feed-2/join", { userId: "carol" });
    const second = await cells.changes(first.positions, { kinds: "joined" });
    const told = [first, second].map(({ changes }) => changes.map(({ cell, kind, roomId }) => [cell, kind, roomId]));
    assert.deepEqual(told, [[["one", "room_opened", "feed-1"], ["one", "joined", "feed-1"]], [["two", "joined", "feed-2"]]]);
    const swapped = { one: second.positions.two, two: second.positions.one };
    await assert.rejects(cells.changes(swapped), { name: "CellError", code: "position_expired", status: 410 });
  });

  test("who is put out or erased is so everywhere", async () => {
    for (const [cell, id] of [[one, "out-1"], [two, "out-2"]]) await cell.ask("POST", `/rooms/${id}/join`, { userId: "dave" });
    await cells.removeUser("dave", { blockForMs: 60_000 });
    assert.deepEqual(await all(cells.userRooms("dave")), []);
    for (const cell of [one, two]) assert.equal((await cell.ask("POST", "/rooms/x/join", { userId: "dave" })).code, "blocked");
    assert.equal((await all(cells.userSessions("dave"))).length, 2);
    await cells.eraseUser("dave");
    assert.deepEqual(await all(cells.userSessions("dave")), []);
  });

  test("a cell that does not answer fails the call by its name, and leaves nothing out in silence", async () => {
    const gone = new Cells({ cells: { one: { url: one.url, key: KEY }, three: { url: "http://127.0.0.1:9", key: KEY } } });
    for (const ask of [() => all(gone.rooms()), () => gone.whereabouts(["alice"]), () => gone.changes()]) {
      await assert.rejects(ask, (error) => error instanceof CellError && error.cell === "three" && error.status === 0);
    }
  });
});

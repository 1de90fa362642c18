import assert from "node:assert/strict";
import { test } from "node:test";
import { Roster } from "../src/roster.js";
import { person } from "./help/world.js";

function of(...participants) {
  const roster = new Roster();
  roster.apply("snapshot", { generation: 2, version: 10, participants });
  return roster;
}

test("what is older than what is known changes nothing", () => {
  const roster = of(person("alice", { epoch: 3 }));
  const late = [
    ["joined", { generation: 1, version: 99, participant: person("old", {}) }],
    ["joined", { generation: 2, version: 9, participant: person("old", {}) }],
    ["left", { generation: 2, version: 11, userId: "alice", epoch: 2, reason: "left" }],
    ["left", { generation: 2, version: 11, userId: "nobody", epoch: 2, reason: "left" }],
    ["room_closed", { generation: 1, version: 12, reason: "room_closed" }],
  ];
  for (const [type, event] of late) assert.deepEqual(roster.apply(type, event), [], type);
  assert.deepEqual(roster.list.map(({ userId }) => userId), ["alice"]);
});

test("a change is one update, also a join in place of the old session; nothing is changed in place", () => {
  const roster = of(person("alice"), person("bob"));
  const [alice, bob] = roster.list;
  const changes = roster.apply("joined", { generation: 2, version: 11, participant: person("alice", { epoch: 2 }) });
  assert.deepEqual(changes.map(({ type }) => type), ["updated"]);
  assert.equal(alice.epoch, 1);
  assert.equal(roster.list[1], bob);
  assert.throws(() => {
    roster.list[0].cursor = {};
  }, TypeError);
  assert.deepEqual(roster.apply("updated", { generation: 2, version: 11, participant: person("bob") }), []);
});

test("a room that closes takes everybody out, and the next lifetime begins anew", () => {
  const roster = of(person("alice"), person("bob"));
  const changes = roster.apply("room_closed", { generation: 2, version: 12, reason: "room_closed" });
  assert.deepEqual(changes.map(({ type, reason }) => [type, reason]), [["left", "room_closed"], ["left", "room_closed"]]);
  assert.equal(roster.count, 0);
  assert.equal(roster.apply("joined", { generation: 3, version: 1, participant: person("carol") })[0].type, "joined");
});

test("people are in order of arrival, and the list is the same until something changes", () => {
  const roster = of(person("zoe", { arrivedAtMs: 1 }), person("bob", { arrivedAtMs: 5 }), person("amy", { arrivedAtMs: 5 }));
  assert.deepEqual(roster.list.map(({ userId }) => userId), ["zoe", "amy", "bob"]);
  assert.equal(roster.list, roster.list);
});

test("of two tabs the newer is closed: the person is shown by the older one, whose epoch is lower", () => {
  const devices = [{ deviceId: "new", epoch: 2 }, { deviceId: "old", epoch: 1 }];
  const roster = of(person("alice", { epoch: 2, devices }));
  const changes = roster.apply("updated", { generation: 2, version: 11, participant: person("alice", { epoch: 1 }) });
  assert.deepEqual(changes.map(({ type }) => type), ["updated"]);
  assert.equal(roster.list[0].epoch, 1);
});

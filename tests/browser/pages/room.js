// A page in a room, as its address says. What it is and what it heard is on the window, for the tests.

const options = JSON.parse(new URLSearchParams(location.search).get("options"));
const { joinRoom } = await import(`${options.url}/client.js`);
const transport = options.socket && (await import(`${options.url}/client/socket.js`)).SocketTransport;
let tokens = 0;

async function token() {
  tokens++;
  const query = new URLSearchParams({ sub: options.userId, roomId: options.tokenRoomId ?? options.roomId, seconds: options.tokenSeconds });
  if (window.forged) query.set("forged", "");
  return (await fetch(`/token?${query}`)).text();
}

const heard = [];
const room = joinRoom({ ...options, transport, token: options.tokenSeconds && token });
for (const type of ["joined", "updated", "left", "status", "live", "ended", "problem"]) {
  room.on(type, (detail) => heard.push({ type, detail, at: Date.now() }));
}

Object.assign(window, {
  room,
  heard,
  look: () => ({
    status: room.status,
    epoch: room.epoch,
    deviceId: room.deviceId,
    live: room.live,
    end: room.end,
    people: room.participants.map(({ userId }) => userId),
    tokens,
  }),
});

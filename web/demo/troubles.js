import { addressOf, roomId, token } from "./address.js";

/** For longer than the lease. */
const FROZEN_MS = 9000;

const $ = (id) => document.getElementById(id);

/** What the buttons do. `current` is the room that is shown, `join` joins again and shows that one. */
export function makeTrouble({ line, current, join, openDevice, service }) {
  $("drop").addEventListener("click", () => {
    if (line.isDown) line.restore();
    else line.drop();
    $("drop").textContent = line.isDown ? "Restore the network" : "Drop the network";
    $("drop").setAttribute("aria-pressed", line.isDown);
    document.body.classList.toggle("offline", line.isDown);
    if (!line.isDown) current().reconnect();
  });
  $("freeze").addEventListener("click", freeze);
  $("close").addEventListener("click", () => {
    // The goodbye that the client sends as the page goes does not get through.
    line.drop();
    window.close();
    // Not every browser lets a page close itself.
    setTimeout(() => location.replace(addressOf({ closed: "" })), 200);
  });
  $("open-device").addEventListener("click", openDevice);
  $("race").addEventListener("click", () => race({ line, current, join, service }));
}

/** Really: nothing of this page runs meanwhile. */
function freeze() {
  $("frozen").hidden = false;
  // Once what says so is on the screen.
  requestAnimationFrame(() =>
    setTimeout(() => {
      const end = performance.now() + FROZEN_MS;
      while (performance.now() < end);
      $("frozen").hidden = true;
    }, 100),
  );
}

/** The page joins again, as after a tunnel; then arrives what its old connection had sent before. */
async function race({ line, current, join, service }) {
  const old = current();
  const { userId, deviceId, epoch } = old;
  if (!epoch) return;
  $("race").disabled = true;
  try {
    await join().ready;
    // The old connection still believes in its epoch: it asks, and is told to stop.
    const stopped = new Promise((resolve) => (old.end ? resolve() : old.on("ended", resolve)));
    old.reconnect();
    await stopped;
    const headers = { "content-type": "application/json" };
    if (token.get()) headers.authorization = `Bearer ${token.get()}`;
    const body = JSON.stringify({ userId, deviceId, epoch });
    await line.platform.fetch(`${service}/rooms/${encodeURIComponent(roomId)}/leave`, { method: "POST", headers, body });
  } catch {
    // The line is dropped: the log says so, and the race can be run again.
  } finally {
    $("race").disabled = false;
  }
}

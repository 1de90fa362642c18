import { createContext, createElement, useContext, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { joinRoom, watchRoom } from "../src/index.js";
import { retain } from "./shared.js";

const Defaults = createContext({});
const NOBODY = Object.freeze([]);
const KEYS = ["url", "roomId", "userId", "deviceId", "leaseMs", "hiddenLeaseMs", "ifPresent", "cursorsPerSecond"];

/** The service and its credential for all that is below; its rooms share one connection. */
export function LeaseholdProvider({ children, ...options }) {
  const token = useLatest(options.token);
  const defaults = useMemo(
    () => ({ ...options, ...(options.token !== undefined && { token }) }),
    [options.url, options.userId, options.transport, options.token === undefined],
  );
  return createElement(Defaults.Provider, { value: defaults }, children);
}

/**
 * Is in a room while the component is there; null for none. Components with the same options share one
 * membership. The functions are the same for the component's life.
 */
export function useRoom(options) {
  const [room, again] = useShared("room", options, joinRoom, (room) => room.leave());
  const status = useHeard(room, "status", () => room.status, "connecting");
  const current = useRef(room);
  current.current = room;
  const metadata = JSON.stringify(options?.metadata);
  const told = useRef({});
  useEffect(() => {
    // What it was joined with needs no telling.
    if (room && told.current.room === room && told.current.metadata !== metadata) room.setMetadata(options.metadata);
    told.current = { room, metadata };
  }, [room, metadata]);
  const actions = useMemo(
    () => ({
      moveCursor: (cursor) => current.current?.moveCursor(cursor),
      setMetadata: (metadata) => current.current?.setMetadata(metadata),
      /** Tries at once; after an end, joins anew. */
      reconnect: () => (current.current?.end ? again() : current.current?.reconnect()),
    }),
    [again],
  );
  return useMemo(() => ({ room, status, end: room?.end ?? null, ...actions }), [room, status, actions]);
}

/** Everybody in the room that `useRoom` answered, in order of arrival. */
export function useParticipants({ room }) {
  return useHeard(room, "participants", () => room.participants, NOBODY);
}

/** How many are in a room, without being in it; null while that is not known. */
export function useCount(options) {
  const [watch] = useShared("count", options && { ...options, view: "count" }, watchRoom, (watch) => watch.close());
  const known = useHeard(watch, "live", () => watch.live, false);
  const count = useHeard(watch, "participants", () => watch.count, 0);
  const everKnown = useRef(null);
  if (known && everKnown.current !== watch) everKnown.current = watch;
  return watch && everKnown.current === watch ? count : null;
}

/** What the components with these options share, once it is open, and how to open it anew after its end. */
function useShared(kind, options, open, end) {
  const defaults = useContext(Defaults);
  const all = options && { ...defaults, ...options };
  const token = useLatest(all?.token);
  const latest = useRef(all);
  latest.current = all;
  const key = all && JSON.stringify([kind, ...KEYS.map((name) => all[name] ?? null)]);
  const [shared, setShared] = useState({ key: null, handle: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!key) return undefined;
    const ofProvider = latest.current.token === defaults.token;
    const opened = () => open({ ...latest.current, ...(latest.current.token !== undefined && !ofProvider && { token }) });
    return retain(key, { open: opened, end }, (handle) => setShared({ key, handle }));
  }, [key, round]);
  const again = useMemo(() => () => setRound((round) => round + 1), []);
  return [shared.key === key ? shared.handle : null, again];
}

/** A function that stays the same and asks the latest one: written in place, it is another at each render. */
function useLatest(token) {
  const latest = useRef(token);
  latest.current = token;
  return useMemo(() => () => (typeof latest.current === "function" ? latest.current() : latest.current), []);
}

function useHeard(handle, type, read, before) {
  const subscribe = useMemo(
    () => (changed) => {
      if (!handle) return () => {};
      const offs = [handle.on(type, changed), handle.on("ended", changed)];
      return () => offs.forEach((off) => off());
    },
    [handle, type],
  );
  return useSyncExternalStore(subscribe, () => (handle ? read() : before), () => before);
}

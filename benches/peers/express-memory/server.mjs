import { createApp, listen } from "../app.mjs";
import { MemoryRooms } from "./rooms.mjs";

const SWEEP_INTERVAL_MS = 5_000;

const rooms = new MemoryRooms();
const sweeper = setInterval(() => rooms.sweep(), SWEEP_INTERVAL_MS);
listen(createApp(rooms), Number(process.env.PORT ?? 3000), () => clearInterval(sweeper));

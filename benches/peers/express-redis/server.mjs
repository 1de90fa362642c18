import { createApp, listen } from "../app.mjs";
import { RedisRooms } from "./rooms.mjs";

const SWEEP_INTERVAL_MS = 5_000;

const rooms = await RedisRooms.connect(process.env.REDIS_SOCKET);
const sweeper = setInterval(() => rooms.sweep().catch((error) => console.error(error)), SWEEP_INTERVAL_MS);
listen(createApp(rooms), Number(process.env.PORT ?? 3000), () => {
  clearInterval(sweeper);
  rooms.close();
});

import type { Transport } from "./index.js";

/** One WebSocket for what is heard and what is asked; for the option `transport`. */
export const SocketTransport: Transport;

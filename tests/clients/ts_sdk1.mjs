// The first-generation TypeScript client.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { drive } from "./expect.mjs";

const client = new Client({ name: "escurel-clients", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
await drive(client);
await client.ping();
await client.close();

// The second-generation TypeScript client: `auto`, `legacy` or a pinned revision.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { drive, fail } from "./expect.mjs";

const [url, mode] = process.argv.slice(2);
const negotiation = ["auto", "legacy"].includes(mode) ? mode : { pin: mode };
const client = new Client({ name: "escurel-clients", version: "1" }, { versionNegotiation: { mode: negotiation } });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const version = client.getNegotiatedProtocolVersion();
const wanted = mode === "legacy" ? "2025-11-25" : "2026-07-28";
if (version !== wanted) fail(`${mode} reached ${version}, not ${wanted}`);
await drive(client);
if (mode === "legacy") await client.ping();
await client.close();

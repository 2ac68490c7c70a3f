// What every client must see. Shared by the JavaScript clients.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));
const TOOLS = read("expected-tools.json");
const KNOWN = read("known.json");

export function fail(message) {
  console.error(`wrong: ${message}`);
  process.exit(1);
}

export function tools(names) {
  const [found, wanted] = [[...names].sort(), [...TOOLS].sort()];
  if (!isDeepStrictEqual(found, wanted)) fail(`tools differ: found ${found}, wanted ${wanted}`);
}

/// A success whose text and structured content say the same.
export function answer(call, result) {
  const text = result.content?.[0]?.text;
  if (result.isError) fail(`${call.tool} refused: ${text}`);
  if (!text) fail(`${call.tool} has no text content`);
  if (!isDeepStrictEqual(JSON.parse(text), result.structuredContent))
    fail(`${call.tool}: text and structured content differ`);
  if (!text.includes(call.contains)) fail(`${call.tool} does not contain ${call.contains}: ${text.slice(0, 300)}`);
}

/// Lists, calls and asks for a refusal, the same for every generation of client.
export async function drive(client) {
  tools((await client.listTools()).tools.map((tool) => tool.name));
  for (const call of KNOWN.calls)
    answer(call, await client.callTool({ name: call.tool, arguments: call.arguments }));
  const refused = await client.callTool({ name: KNOWN.refused.tool, arguments: KNOWN.refused.arguments });
  if (!refused.isError || !refused.content?.[0]?.text) fail("a bad argument was not refused with a text");
}

// Who only reads while another types is still there after two minutes.

import fs from "node:fs";
import { performance } from "node:perf_hooks";
import { Client, main, must, quiet, sleep } from "./common.mjs";

const SECONDS = 110;

await main(async ({ server, report }) => {
  fs.writeFileSync(server.file("plan.md"), "# Plan\n");
  await server.start();
  const ann = await new Client(server).open("plan.md");
  const bob = await new Client(server).open("plan.md");
  let pings = 0;
  bob.socket.on("ping", () => pings++);
  const begun = performance.now();
  const passed = () => (performance.now() - begun) / 1000;
  while (passed() < SECONDS) {
    ann.change((body) => body.insert(7, "a"));
    await sleep(1000);
    must(bob.closed === null, `a listener was closed with ${bob.closed} after ${passed().toFixed(0)} s and ${pings} pings, having heard all`);
  }
  await quiet([ann, bob]);
  report(`${SECONDS} s and ${pings} pings`);
});

// A client with another history is told so, and takes the page anew.

import fs from "node:fs";
import path from "node:path";
import { Client, equal, main, must, quiet, until } from "./common.mjs";

function logs(folder) {
  const entries = fs.readdirSync(folder, { recursive: true });
  return entries.filter((name) => name.endsWith(".ops")).map((name) => path.join(folder, name));
}

await main(async ({ server, report }) => {
  fs.writeFileSync(server.file("plan.md"), Array.from({ length: 40 }, (_, i) => `Line ${i} 🛶\n`).join(""));
  await server.start();
  const ann = await new Client(server).open("plan.md");

  // The same socket goes on after a hello with the right one.
  const told = await ann.hello("01AAAAAAAAAAAAAAAAAAAAAAAA");
  must(told.type === "resync_required" && told.reason === "lineage", JSON.stringify(told));
  ann.send({ type: "op", session: ann.session, op: "" });
  await until(() => ann.errors.some((error) => error.code === "unknown_session"), "a change without a seat is refused");
  must((await ann.hello()).type === "hello_ack", "the right lineage after a wrong one");
  ann.change((body) => body.insert(0, "typed 🛶\n"));
  await quiet([ann]);

  // The server's history is gone: nothing may be there twice.
  await server.kill();
  const gone = logs(server.home);
  must(gone.length > 0, "there is a log of live changes");
  for (const log of gone) fs.rmSync(log);
  ann.change((body) => body.insert(0, "pending\n"));
  await server.start();
  const before = ann.frames.length;
  await ann.connect();
  const answer = ann.frames[before];
  must(answer.type !== "hello_ack", `a client of the former history was let in: ${JSON.stringify(answer)}`);
  report(`after the log was deleted, hello is answered with ${answer.type} ${answer.reason ?? answer.code}`);
  const late = await new Client(server).open("plan.md");
  must(late.lineage !== ann.lineage, "the lineage is another one");
  must(late.text().split("Line 7 ").length === 2, "the text is there once");
  const shown = await server.call("expand", { page_id: "plan.md" });
  equal(shown.body, late.text(), "expand and a new replica");
});

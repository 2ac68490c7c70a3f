// Positions at and inside characters that are several units long.

import fs from "node:fs";
import { Cursor, LoroDoc } from "loro-crdt";
import { Client, equal, main, must, quiet } from "./common.mjs";

const CLUSTERS = { canoe: "🛶", family: "👨‍👩‍👧", accent: "e\u0301", flag: "🇩🇪", han: "𠮷" };

await main(async ({ server, report }) => {
  for (const [name, cluster] of Object.entries(CLUSTERS)) fs.writeFileSync(server.file(`${name}.md`), `x${cluster}y\n`);
  await server.start();
  const inside = [];
  for (const [name, cluster] of Object.entries(CLUSTERS)) {
    const page = `${name}.md`;
    const ann = await new Client(server, { peer: 1n }).open(page);
    const bob = await new Client(server, { peer: 2n }).open(page);
    const both = [ann, bob];
    const end = 1 + cluster.length;

    // Both insert before and after it without having heard of each other.
    const cursor = ann.body.getCursor(1);
    ann.change((body) => body.insert(1, "A"));
    bob.change((body) => body.insert(1, "B"));
    await quiet(both);
    must(["xAB", "xBA"].some((head) => ann.text() === `${head}${cluster}y\n`), `before: ${ann.text()}`);
    const found = ann.doc.getCursorPos(Cursor.decode(cursor.encode()));
    must(found.offset === 3, `${name}: the cursor before it is at ${found.offset}`);
    ann.change((body) => body.insert(end + 2, "C"));
    bob.change((body) => body.insert(end + 2, "D"));
    await quiet(both);

    // At each unit inside: refused or moved, and half of nothing ever arrives.
    for (let at = 4; at < 3 + cluster.length; at++) {
      const before = ann.doc.oplogVersion();
      const was = ann.text();
      let outcome;
      try {
        ann.body.insert(at, "!");
        ann.doc.commit();
        outcome = `at ${ann.text().indexOf("!") - 3}`;
        ann.sendSince(before);
      } catch (error) {
        outcome = "refused";
        equal(ann.text(), was, "after a refusal");
      }
      await quiet(both);
      inside.push(`${name}+${at - 3}: ${outcome}`);
      must(!/\ufffd|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(bob.text()), `${name}: half a character: ${JSON.stringify(bob.text())}`);
      ann.change((body) => body.update(was));
      await quiet(both);
    }

    // One deletes it while the other writes at both of its sides.
    ann.change((body) => body.delete(3, cluster.length));
    bob.change((body) => {
      body.insert(3 + cluster.length, ">");
      body.insert(3, "<");
    });
    await quiet(both);
    must(ann.text().includes("<>") && !ann.text().includes(cluster), `deleted: ${ann.text()}`);
    const shown = await server.call("expand", { page_id: page });
    equal(shown.body, ann.text(), "expand and replicas");
    await ann.close(true);
    await bob.close(true);
    equal(fs.readFileSync(server.file(page), "utf8"), ann.text(), "file and replicas");

    // Who comes later has the same.
    const late = new LoroDoc();
    const opened = await server.call("open_session", { page_id: page });
    late.import(Buffer.from(opened.snapshot, "base64"));
    equal(late.getText("body").toString(), ann.text(), "a later session");
  }

  // Edits through the API are heard, with what was typed in between.
  fs.writeFileSync(server.file("api.md"), "# 🛶 漢字\n\ncafe\u0301 👨‍👩‍👧 end\n");
  let ann;
  for (let tries = 0; !ann; tries++) {
    ann = await new Client(server).open("api.md").catch((error) => {
      if (tries > 200) throw error;
    });
  }
  ann.change((body) => body.insert(body.toString().indexOf(" end"), " 🛶typed"));
  await quiet([ann]);
  ann.awaited = "👨‍👩‍👦";
  await server.call("edit_page", { page_id: "api.md", find: "👨‍👩‍👧", content: "👨‍👩‍👦" });
  await quiet([ann], 5000);
  equal(ann.text(), "# 🛶 漢字\n\ncafe\u0301 👨‍👩‍👦 🛶typed end\n", "typed and edited");
  report(`${Object.keys(CLUSTERS).length} clusters; inserted inside: ${inside.join(", ")}`);
});

// The server is killed while two type: what was acknowledged is there, and all of it once.

import fs from "node:fs";
import { Client, equal, main, must, quiet, sleep, starts } from "./common.mjs";

const TIMES = 20;

function count(text, word) {
  return text.split(word).length - 1;
}

await main(async ({ server, dice, seed, report }) => {
  const file = server.file("plan.md");
  fs.writeFileSync(file, "# Plan 🛶\n");
  await server.start();
  const both = [
    await new Client(server, { peer: 21n }).open("plan.md"),
    await new Client(server, { peer: 22n, content: true }).open("plan.md"),
  ];
  const [ann, bob] = both;
  const [all, acked] = [new Set(), new Set()];
  let [resent, onDisk] = [0, 0];
  for (const client of both) {
    client.words = [];
    client.onAck = () => {
      if (client.words.length > 0) acked.add(client.words.shift());
    };
  }
  const type = (client) => {
    const word = `<${dice.letters(10)}🛶>`;
    all.add(word);
    client.words.push(word);
    client.change((body) => {
      const lines = [...body.toString().matchAll(/\n/g)].map((found) => found.index + 1);
      body.insert(dice.of(lines), `${word}\n`);
    });
  };
  for (let time = 1; time <= TIMES; time++) {
    try {
      let over = false;
      const typing = both.map(async (client) => {
        while (!over) {
          type(client);
          await sleep(dice.below(8));
        }
      });
      await sleep(60 + dice.below(300));
      await server.kill();
      const safe = [...acked];
      over = true;
      await Promise.all(typing);
      let token = null;
      if (time % 4 === 0) {
        token = `[${dice.letters(12)}]`;
        fs.writeFileSync(file, `${fs.readFileSync(file, "utf8")}${token}\n`);
        onDisk++;
      }
      await server.start();
      const shown = await server.call("expand", { page_id: "plan.md" });
      for (const word of safe) must(count(shown.body, word) === 1, `acknowledged ${word} is there ${count(shown.body, word)} times after the restart`);
      for (const client of both) {
        resent += client.unacked.length;
        for (const word of client.words.splice(0)) acked.add(word);
        if (token) client.awaited = client.text().includes(token) ? null : token;
      }
      await Promise.all(both.map((client) => client.connect()));
      await quiet(both);
      for (const word of all) must(count(ann.text(), word) === 1, `${word} is there ${count(ann.text(), word)} times`);
      must(!token || count(ann.text(), token) === 1, `${token} is there ${token && count(ann.text(), token)} times`);
      const after = await server.call("expand", { page_id: "plan.md" });
      equal(after.body, ann.text(), "expand and replicas");
      if (time % 5 === 0) {
        const { session } = await server.call("open_session", { page_id: "plan.md" });
        must((await server.call("close_session", { session, commit: true })).ok, "committed");
        equal(fs.readFileSync(file, "utf8"), ann.text(), "committed file and replicas");
      }
    } catch (error) {
      error.message = `kill ${time} of seed ${seed}: ${error.message}`;
      throw error;
    }
  }
  await ann.close(true);
  await bob.close(true);
  equal(fs.readFileSync(file, "utf8"), bob.text(), "file and replicas at the end");
  must(starts(ann.text()).length > all.size, "something was typed");
  report(`${TIMES} kills, ${all.size} changes, ${resent} of them sent again, ${onDisk} edits on disk while it was down, seed ${seed}`);
});

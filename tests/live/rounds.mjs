// Two replicas here, one in Rust, and edits on disk; after each round all have the same text.

import fs from "node:fs";
import { performance } from "node:perf_hooks";
import { Client, equal, main, must, quiet, sleep, spread, starts } from "./common.mjs";
import { Editor } from "./editor.mjs";

const PIECES = ["a", "word ", "\n", "\n\n", "- item\n", "🛶", "👨‍👩‍👧", "🇩🇪", "e\u0301", "o\u0308\u0323", "漢字", "かな", "한국", "ß", "𝒳", "\u200d", "**"];
const LONG = 5000;
/** After so many rounds all leave, and come back to a new history: the longer one is, the more each change costs Loro. */
const FRESH = 200;
const START = "---\ntitle: Plan\nstatus: open\nowner: ann\n---\n# Plan\n\nFirst 🛶 line.\n\nSecond 漢字 line, cafe\u0301.\n";

/** Where the text after the frontmatter begins. */
const bodyAt = (text) => text.indexOf("\n---\n", 3) + 5;

function editBody(client, dice) {
  const text = client.text();
  const from = bodyAt(text);
  const places = starts(text, from);
  const i = dice.below(places.length);
  client.change((body) => {
    if (dice.next() < (text.length > LONG ? 0.8 : 0.35) && i < places.length - 1) {
      const to = Math.min(places.length - 1, i + 1 + dice.below(text.length > LONG ? 200 : 8));
      body.delete(places[i], places[to] - places[i]);
      if (dice.next() < 0.5) return;
    }
    body.insert(places[i], dice.of(PIECES).repeat(1 + dice.below(3)));
  });
}

function editKey(client, dice, own) {
  const text = client.text();
  const end = bodyAt(text) - 4;
  if (dice.next() < 0.3 && !text.slice(0, end).includes(`\n${own}`)) {
    client.change((body) => body.insert(end, `${own}: ${dice.letters(3)}\n`));
    return;
  }
  const line = text.slice(0, end).match(new RegExp(`\n(${dice.of(["status", "owner", own])}: )(.*)\n`));
  if (!line) return;
  client.change((body) => {
    const at = line.index + 1 + line[1].length;
    body.delete(at, line[2].length);
    body.insert(at, dice.of(["open", "done", "späť", "🛶"]) + dice.letters(2));
  });
}

/** Reads the file as it was last committed and writes it back changed. */
function editFile(file, dice, number) {
  const text = fs.readFileSync(file, "utf8");
  // A character that is nowhere else: differences are found letter by letter, so that a word which
  // shares letters with the line that it replaces may be torn by what others type between them.
  const token = String.fromCodePoint(0x20000 + number).repeat(3);
  const lines = text.slice(bodyAt(text)).split("\n");
  lines.splice(dice.below(lines.length), dice.next() < 0.3 ? 1 : 0, `${token} 🛶`);
  let head = text.slice(0, bodyAt(text));
  if (dice.next() < 0.3) head = head.replace(/\nowner: .*\n/, `\nowner: ${dice.letters(4)}\n`);
  const changed = head + lines.join("\n");
  if (dice.next() < 0.5) {
    fs.writeFileSync(file, changed);
  } else {
    fs.writeFileSync(`${file}.tmp`, changed);
    fs.renameSync(`${file}.tmp`, file);
  }
  return token;
}

await main(async ({ server, editor, rounds, dice, seed, report }) => {
  const file = server.file("plan.md");
  fs.writeFileSync(file, START);
  await server.start();
  let ann, bob, both, rust, all;
  const come = async () => {
    ann = await new Client(server, { peer: 11n }).open("plan.md");
    bob = await new Client(server, { peer: 12n, content: true }).open("plan.md");
    both = [ann, bob];
    rust = await new Editor(editor).open(server, "plan.md");
    all = [...both, rust];
    for (const [one, other] of [[ann, bob], [bob, ann]]) {
      one.measured = true;
      one.hearsOf = other;
    }
  };
  const [acks, hears, waits] = [[], [], []];
  const leave = async () => {
    rust.end();
    await server.call("close_session", { session: rust.session, commit: true });
    for (const client of both) {
      await client.close(true);
      acks.push(...client.acks);
      hears.push(...client.hears);
    }
    equal(fs.readFileSync(file, "utf8"), ann.text(), "file and replicas when all have left");
  };
  await come();
  const begun = performance.now();
  let [onDisk, commits] = [0, 0];
  for (let round = 1; round <= rounds; round++) {
    try {
      const writesFile = round % 4 === 0 && dice.below(2 + both.length) > 0;
      const turns = 1 + dice.below(6);
      const when = dice.below(turns);
      let wrote = 0;
      const typing = rust.edit(dice.below(2 ** 32), 1 + dice.below(4));
      // Told when it is awaited.
      typing.catch(() => {});
      for (let turn = 0; turn < turns; turn++) {
        if (writesFile && turn === when) {
          // Commits happen only between rounds, so nothing is written meanwhile.
          const token = editFile(file, dice, ++onDisk);
          for (const client of both) client.awaited = token;
          wrote = performance.now();
        }
        const client = dice.of(both);
        if (dice.next() < 0.2) editKey(client, dice, client === ann ? "anns" : "bobs");
        else editBody(client, dice);
        if (dice.next() < 0.5) await sleep(dice.below(4));
      }
      await typing;
      await quiet(all);
      if (wrote) waits.push(performance.now() - wrote);
      if (round % 50 === 0) {
        const shown = await server.call("expand", { page_id: "plan.md" });
        equal(shown.body, ann.text().slice(bodyAt(ann.text())), "expand and replicas");
      }
      if (round % 10 === 0) {
        const { session } = await server.call("open_session", { page_id: "plan.md" });
        const closed = await server.call("close_session", { session, commit: true });
        must(closed.ok, `not committed: ${JSON.stringify(closed)}`);
        await quiet(all);
        equal(fs.readFileSync(file, "utf8"), ann.text(), "committed file and replicas");
        commits++;
      }
      must(!ann.text().includes("\ufffd"), "half a character");
      if (round % FRESH === 0) {
        const { lineage } = ann;
        await leave();
        await come();
        must(ann.lineage !== lineage, "a new history");
      }
    } catch (error) {
      if (typeof error === "string") throw new Error(`round ${round} of seed ${seed}: ${error}`);
      error.message = `round ${round} of seed ${seed}: ${error.message}\ntext: ${JSON.stringify(ann.text())}`;
      throw error;
    }
  }
  const seconds = (performance.now() - begun) / 1000;
  await leave();
  report(`${rounds} rounds with ${all.length} replicas, ${(rounds / seconds).toFixed(1)} rounds/s, ${onDisk} edits on disk, ${commits} commits, seed ${seed}`);
  report(`op to op_ack ${spread(acks)}, op to peer_op ${spread(hears)}`);
  report(`edit on disk until all replicas are equal ${spread(waits)}`);
});

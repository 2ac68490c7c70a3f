// The editors of tests/crash-loop: told by lines of JSON to type until the server dies, and after
// its restart to compare what is there with what they were told is safe. Each line gets one answer.

import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { Client, Dice, equal, must, quiet, Remote, sleep, until } from "./common.mjs";

const { address, folder, pages, seed } = JSON.parse(process.argv[2]);
const server = new Remote(address);
const dice = new Dice(seed);
/** Changes of one client that wait for their acknowledgement. */
const IN_FLIGHT = 4;
/** Above this a text shrinks. UTF-16 units. */
const LONG = 40_000;
/** A whole text. */
const MOST = 10_000_000;
/** Where changes through the API go. */
const HEADING = "# Live";
const TYPED = /<\d+🛶>|([\u{20000}-\u{2ffff}])\1\1/gu;

let [number, outsiders] = [0, 0];
/** A line that is nowhere else and shares no letters with others: differences are found letter by letter. */
const outside = () => String.fromCodePoint(0x20000 + outsiders++).repeat(3);

/** One page, two who type on it, and what is known of each of their lines. */
class Desk {
  constructor(page, autosave) {
    Object.assign(this, { page, autosave, file: path.join(folder, page), clients: [], commits: [] });
    /** Lines that are safe, and those that may be there or not. */
    this.safe = new Set();
    this.open = new Set();
    /** What was saved to the file while the server was dead. */
    this.saved = null;
    /** Session of the one who only commits. */
    this.passing = null;
    this.acked = 0;
    this.resent = 0;
  }

  async seat() {
    const client = await new Client(server, { autosave: this.autosave }).open(this.page);
    client.doing = [];
    client.own = [];
    client.onAck = () => client.doing.length > 0 && this.done(client.doing.shift());
    return client;
  }

  async go() {
    if (this.clients.length === 0) this.clients = [await this.seat(), await this.seat()];
    this.commits = [];
    const work = this.clients.map((client) => this.type(client));
    if (dice.next() < 0.5) work.push(this.commit(dice.below(400)));
    if (dice.next() < 0.4) work.push(this.edit(dice.below(400)));
    this.work = Promise.all(work);
    // Told when somebody waits for it.
    this.work.catch(() => {});
  }

  async type(client) {
    while (client.closed === null) {
      while (client.unacked.length < IN_FLIGHT) this.change(client);
      await sleep(1);
    }
  }

  /** A new line, or an own one less. */
  change(client) {
    const long = client.body.length > LONG;
    const old = dice.next() < (long ? 0.7 : 0.3) ? client.own.splice(dice.below(client.own.length), 1)[0] : null;
    const line = old ?? `<${number++}🛶>`;
    this.open.add(line);
    this.safe.delete(line);
    client.doing.push({ line, gone: Boolean(old) });
    if (!old) client.own.push(line);
    client.change((body) => {
      const text = body.toString();
      if (old) return body.delete(text.indexOf(line), line.length + 1);
      const from = text.indexOf("\n", dice.below(text.length));
      body.insert(from < 0 ? text.length : from + 1, `${line}\n`);
    });
  }

  /** The server said that it is safe. */
  done({ line, gone }) {
    // A line that its owner takes away meanwhile may be gone already.
    if (gone || !this.leaving(line)) this.open.delete(line);
    if (!gone && !this.leaving(line)) this.safe.add(line);
    this.acked++;
  }

  leaving(line) {
    return this.clients.some((client) => client.doing.some((one) => one.gone && one.line === line));
  }

  /** Somebody else makes a version of what all typed. */
  async commit(after) {
    await sleep(after);
    const before = [...this.safe];
    const closed = await answered(() => this.pass());
    if (!closed) return;
    must(closed.ok, `${this.page}: not committed: ${JSON.stringify(closed)}`);
    this.commits.push({ version: closed.final_version, before });
  }

  /** Opens a session and closes it again. */
  async pass() {
    const { session } = await server.call("open_session", { page_id: this.page });
    this.passing = session;
    const closed = await server.call("close_session", { session, commit: true });
    this.passing = null;
    return closed;
  }

  /** A session that a kill cut short is closed: as long as one is open, a page's live history only grows. */
  async finish() {
    if (!this.passing) return;
    await server.call("close_session", { session: this.passing, commit: true }).catch((error) => {
      if (error.result?.error.code !== "unknown_session") throw error;
    });
    this.passing = null;
  }

  /** Somebody writes to the page past the editors. */
  async edit(after) {
    await sleep(after);
    const line = outside();
    this.open.add(line);
    const edit = { page_id: this.page, find: HEADING, content: `\n${line}`, position: "after" };
    const answer = await answered(() => server.call("edit_page", edit));
    if (!answer) return;
    must(answer.ok, `${this.page}: not edited: ${JSON.stringify(answer)}`);
    this.done({ line });
  }

  /** The server is dead: they notice, and go on for a moment. */
  async dead() {
    for (const client of this.clients) await until(() => client.closed !== null, "the connection outlives the server");
    await this.work;
    for (const client of this.clients) {
      for (let times = dice.below(3); times > 0; times--) this.change(client);
    }
    if (dice.next() < 0.2) {
      this.saved = outside();
      fs.appendFileSync(this.file, `${this.saved}\n`);
    }
  }

  async check() {
    this.holds(await this.shown(), this.safe, [...this.open, this.saved], "after the restart");
    for (const { version, before } of this.commits) await this.committed(version, before);
    await this.again();
    await this.finish();
    await this.leave();
  }

  /** The text has each of these lines once, perhaps some of those, and no others. */
  holds(text, lines, others, when) {
    const counts = count(text);
    for (const line of lines) must(counts.has(line), `${this.page}: ${line} is lost ${when}`);
    const known = new Set([...lines, ...others]);
    for (const [line, times] of counts) {
      must(known.has(line), `${this.page}: ${line}, which was taken away, is there ${when}`);
      must(times === 1, `${this.page}: ${line} is there ${times} times ${when}`);
    }
    return counts;
  }

  async committed(version, before) {
    const shown = await server.call("expand", { page_id: this.page, version, max_chars: MOST });
    const counts = count(shown.body);
    for (const line of before) {
      // What its owner took away since may be missing.
      if (this.safe.has(line)) must(counts.get(line) === 1, `${this.page}: ${line} is not in ${version}, which was made of it`);
    }
  }

  /** They come back and send what was not acknowledged; then all is there, and all of it once. */
  async again() {
    const sent = this.clients.flatMap((client) => client.doing.splice(0));
    for (const client of this.clients) {
      this.resent += client.unacked.length;
      if (this.saved) client.awaited = client.text().includes(this.saved) ? null : this.saved;
      await client.connect();
      const answer = client.frames.at(-1);
      must(answer.type === "hello_ack", `${this.page}: hello is answered with ${JSON.stringify(answer)}`);
    }
    await quiet(this.clients);
    const text = this.clients[0].text();
    equal(await this.shown(), text, `${this.page}: expand and the replicas`);
    const gone = new Set(sent.filter((one) => one.gone).map((one) => one.line));
    const lines = sent.map((one) => one.line).filter((line) => !gone.has(line));
    if (this.saved) lines.push(this.saved);
    for (const line of [...lines, ...gone]) this.open.delete(line);
    // Open are only changes through the API now; the server alone knows of them.
    const counts = this.holds(text, [...this.safe, ...lines], this.open, "after all was sent again");
    this.acked += sent.length;
    this.safe = new Set(counts.keys());
    this.open.clear();
    this.saved = null;
  }

  /** Now and then one leaves or all do, and come back with nothing. */
  async leave() {
    const chance = dice.below(10);
    const leaving = chance < 2 ? [0, 1] : chance < 4 ? [dice.below(2)] : [];
    const text = this.clients[0].text();
    for (const who of leaving) {
      await this.clients[who].close(true);
      equal(fs.readFileSync(this.file, "utf8"), text, `${this.page}: the committed file and the replicas`);
    }
    for (const who of leaving) {
      const { own } = this.clients[who];
      this.clients[who] = await this.seat();
      this.clients[who].own = own;
      equal(this.clients[who].text(), text, `${this.page}: a new replica and those before`);
    }
  }

  async shown() {
    return (await server.call("expand", { page_id: this.page, max_chars: MOST })).body;
  }
}

function count(text) {
  const counts = new Map();
  for (const [line] of text.matchAll(TYPED)) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

/** The answer, or null if the server died before it came. */
async function answered(call) {
  try {
    return await call();
  } catch (error) {
    if (error.result) throw error;
    return null;
  }
}

const desks = pages.map((page, at) => new Desk(page, at % 2 === 1));
const sum = (key) => desks.reduce((all, desk) => all + desk[key], 0);

for await (const line of readline.createInterface({ input: process.stdin })) {
  let answer;
  try {
    const what = JSON.parse(line).do;
    must(["go", "dead", "check"].includes(what), `cannot ${what}`);
    for (const desk of desks) await desk[what]();
    answer = { acknowledged: sum("acked"), resent: sum("resent") };
  } catch (error) {
    // Loro throws texts as well.
    answer = { problem: error.message ?? String(error) };
  }
  console.log(JSON.stringify(answer));
}
process.exit();

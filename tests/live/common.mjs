// What the scripts share: the server as a process, a client on a page, figures.

import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { LoroDoc, VersionVector } from "loro-crdt";
import WebSocket from "ws";

export const PATIENCE = 30_000;
/** What run.py wants: binary, editor, scratch, seed, rounds. */
export const wanted = () => JSON.parse(process.argv[2]);
export const sleep = (ms) => new Promise((go) => setTimeout(go, ms));
export const b64 = (bytes) => Buffer.from(bytes).toString("base64");
export const unb64 = (text) => new Uint8Array(Buffer.from(text, "base64"));

export function must(holds, what) {
  if (!holds) throw new Error(what);
}

export function equal(one, other, what) {
  if (one === other) return;
  let at = 0;
  while (one[at] === other[at] && at < one.length && at < other.length) at++;
  const near = (text) => JSON.stringify(text.slice(Math.max(0, at - 30), at + 30));
  throw new Error(`${what}: ${one.length} and ${other.length} long, differ at ${at}: ${near(one)} and ${near(other)}`);
}

/** Waits until it says yes; `why` tells what was missing. */
export async function until(yes, why, ms = PATIENCE) {
  const end = performance.now() + ms;
  while (!(await yes())) {
    if (performance.now() > end) throw new Error(`after ${ms} ms: ${typeof why === "function" ? why() : why}`);
    await sleep(1);
  }
}

/** The same numbers for the same seed (mulberry32). */
export class Dice {
  constructor(seed) {
    this.state = seed >>> 0;
  }
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }
  below(n) {
    return Math.floor(this.next() * n);
  }
  of(list) {
    return list[this.below(list.length)];
  }
  letters(n) {
    return Array.from({ length: n }, () => String.fromCharCode(97 + this.below(26))).join("");
  }
}

/** A server that somebody else started. */
export class Remote {
  constructor(address) {
    this.address = address;
  }

  async call(tool, args) {
    const answer = await fetch(`http://${this.address}/api/tools/${tool}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(args),
    });
    const result = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(`${tool}: ${answer.status} ${JSON.stringify(result)}`), { result });
    return result;
  }
}

export class Server extends Remote {
  constructor(binary, home) {
    super();
    this.binary = binary;
    this.home = home;
    this.vault = path.join(home, "vault");
    fs.mkdirSync(this.vault, { recursive: true });
  }

  file(name) {
    return path.join(this.vault, name);
  }

  /** The first start takes any port, each later one the same. */
  async start() {
    const keep = Object.entries(process.env).filter(([key]) => !/^(ESCUREL_|XDG_)/.test(key));
    const log = fs.openSync(path.join(this.home, "server.log"), "a");
    this.process = spawn(this.binary, ["serve", this.vault, "--listen", this.address ?? "127.0.0.1:0"], {
      cwd: this.home,
      env: { ...Object.fromEntries(keep), HOME: this.home },
      stdio: ["ignore", "pipe", log],
    });
    fs.closeSync(log);
    this.ended = once(this.process, "exit");
    let said = "";
    this.process.stdout.on("data", (text) => (said += text));
    await until(
      () => {
        must(this.process.exitCode === null, `the server ended with ${this.process.exitCode}: ${this.tail()}`);
        return said.includes("/mcp");
      },
      "the server named no address",
    );
    this.address = said.match(/http:\/\/([^/\s]+)/)[1];
    await until(async () => {
      const answer = await fetch(`http://${this.address}/readyz`).catch(() => null);
      return answer?.status === 200;
    }, "not ready");
  }

  async kill() {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  /** Asks it to end. */
  async stop() {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.kill("SIGTERM");
    const late = setTimeout(() => this.process.kill("SIGKILL"), 20_000);
    const [code] = await this.ended;
    clearTimeout(late);
    must(code === 0, `asked to end, the server answered ${code}: ${this.tail()}`);
  }

  tail() {
    return fs.readFileSync(path.join(this.home, "server.log"), "utf8").slice(-2000);
  }

  /** Memory in MB, now and at most since `forgetPeak`; null where there is no /proc. */
  memory() {
    try {
      const status = fs.readFileSync(`/proc/${this.process.pid}/status`, "utf8");
      const mb = (key) => Math.round(Number(status.match(new RegExp(`${key}:\\s+(\\d+)`))[1]) / 1024);
      return { now: mb("VmRSS"), peak: mb("VmHWM") };
    } catch {
      return null;
    }
  }

  forgetPeak() {
    try {
      fs.writeFileSync(`/proc/${this.process.pid}/clear_refs`, "5");
    } catch {
      // Not everywhere allowed; the peak is then that since the start.
    }
  }
}

/** One replica of a page and its socket. */
export class Client {
  constructor(server, { content = false, peer, autosave = false } = {}) {
    Object.assign(this, { server, content, peer, autosave, unacked: [], acks: [], hears: [], errors: [], frames: [] });
    this.sentAt = new Map();
  }

  async open(page_id) {
    const opened = await this.server.call("open_session", { page_id, autosave: this.autosave });
    this.session = opened.session;
    this.lineage = opened.lineage;
    this.doc = new LoroDoc();
    this.doc.import(unb64(opened.snapshot));
    if (this.peer !== undefined) this.doc.setPeerId(this.peer);
    this.body = this.doc.getText("body");
    // All that the server is known to have on its disk.
    this.saved = this.doc.oplogVersion().encode();
    await this.connect();
    return this;
  }

  async connect() {
    this.socket = new WebSocket(`ws://${this.server.address}/ws`, { perMessageDeflate: false });
    const socket = this.socket;
    this.closed = null;
    socket.on("message", (text) => this.socket === socket && this.take(JSON.parse(text), performance.now()));
    socket.on("close", (code) => this.socket === socket && (this.closed = code));
    socket.on("error", () => {});
    await until(() => socket.readyState !== WebSocket.CONNECTING, "no connection");
    must(socket.readyState === WebSocket.OPEN, "the connection was refused");
    await this.hello();
  }

  /** Says what it has, takes what it lacks and sends again what was not acknowledged. */
  async hello(lineage = this.lineage) {
    const before = this.frames.length;
    const have = b64(this.doc.oplogVersion().encode());
    this.send({ type: "hello", session: this.session, lineage, have, content: this.content });
    const answer = () => this.frames.slice(before).find((f) => ["hello_ack", "resync_required", "error"].includes(f.type));
    await until(answer, () => `no answer to hello, closed with ${this.closed}`);
    if (answer().type === "hello_ack" && this.unacked.length > 0) {
      this.unacked = [];
      this.sendSince(VersionVector.decode(this.saved));
    }
    return answer();
  }

  send(frame) {
    this.socket.send(JSON.stringify(frame), () => {});
  }

  take(frame, now) {
    const { type } = frame;
    if (type === "op_ack") {
      const { at, version } = this.unacked.shift();
      this.acks.push(now - at);
      this.saved = version;
      this.onAck?.();
    } else if (type === "peer_op") {
      if (this.hearsOf?.sentAt.has(frame.op)) {
        this.hears.push(now - this.hearsOf.sentAt.get(frame.op));
        this.hearsOf.sentAt.delete(frame.op);
      }
      this.import(frame.op);
    } else {
      if (type === "hello_ack") this.import(frame.update);
      if (type === "error") this.errors.push(frame);
      this.frames.push(frame);
    }
  }

  import(update) {
    this.doc.import(unb64(update));
    if (this.awaited && this.text().includes(this.awaited)) this.awaited = null;
  }

  text() {
    return this.body.toString();
  }

  version() {
    return JSON.stringify([...this.doc.oplogVersion().toJSON()].sort());
  }

  /** Makes a change and sends it. */
  change(how) {
    const before = this.doc.oplogVersion();
    how(this.body);
    this.doc.commit();
    this.sendSince(before);
  }

  sendSince(version) {
    const op = b64(this.doc.export({ mode: "update", from: version }));
    const at = performance.now();
    this.unacked.push({ at, version: this.doc.oplogVersion().encode() });
    if (this.measured) this.sentAt.set(op, at);
    this.send({ type: "op", session: this.session, op });
  }

  async close(commit = true) {
    const socket = this.socket;
    this.send({ type: "close", session: this.session, commit });
    await until(() => this.frames.some((f) => f.type === "closed"), () => `not closed: ${JSON.stringify(this.errors)}`);
    socket.close();
    return this.frames.findLast((f) => f.type === "closed");
  }

  drop() {
    this.socket.terminate();
  }
}

/** Replicas with nothing on its way between them. */
export async function quiet(clients, ms = PATIENCE) {
  const [first, ...others] = clients;
  const state = () =>
    clients.map((c) => `${c.unacked.length} unacknowledged, awaits ${c.awaited ?? "nothing"}, closed ${c.closed}, ${c.version()}, errors ${JSON.stringify(c.errors)}`);
  await until(
    async () => {
      if (!clients.every((c) => c.refresh || (c.unacked.length === 0 && !c.awaited))) return false;
      await Promise.all(clients.map((c) => c.refresh?.()));
      return clients.every((c) => c.unacked.length === 0) && others.every((c) => c.version() === first.version());
    },
    () => `not quiet: ${state().join(" | ")}`,
    ms,
  );
  for (const other of others) equal(first.text(), other.text(), "replicas of one version");
}

export function share(numbers, part) {
  if (numbers.length === 0) return NaN;
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

export function spread(numbers) {
  const ms = (part) => share(numbers, part).toFixed(1);
  return `p50 ${ms(0.5)} ms p95 ${ms(0.95)} ms (${numbers.length})`;
}

/** Where characters begin, as utf-16 positions from `from` on, and the end. */
export function starts(text, from = 0) {
  const found = [];
  for (let at = from; at < text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) found.push(at);
  found.push(text.length);
  return found;
}

/** Runs a script's checks on a server of its own. */
export async function main(body) {
  const { binary, editor, scratch, seed, rounds } = wanted();
  const server = new Server(binary, scratch);
  const report = (line) => console.log(line);
  let code = 0;
  try {
    await body({ server, editor, seed, rounds, dice: new Dice(seed), report });
    if (server.process) await server.stop();
  } catch (error) {
    // Loro throws texts as well.
    console.error(error.stack ?? error);
    code = 1;
  }
  if (server.process?.exitCode === null && server.process.signalCode === null) await server.kill();
  process.exit(code);
}

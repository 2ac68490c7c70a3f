// Clients that send nonsense, too much, or nothing; the others go on.

import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import { performance } from "node:perf_hooks";
import { Worker } from "node:worker_threads";
import WebSocket from "ws";
import { Client, b64, equal, main, must, quiet, sleep, spread, starts, until } from "./common.mjs";

const MB = 1 << 20;
/** A paste may take so long, on a machine that does something else as well. */
const PASTE_MS = 5000;

/** XXH32, with which Loro guards what it exports. */
function xxh32(bytes, seed) {
  const [P1, P2, P3, P4, P5] = [2654435761, 2246822519, 3266489917, 668265263, 374761393];
  const rotate = (x, n) => (x << n) | (x >>> (32 - n));
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  let hash;
  if (data.length >= 16) {
    const lanes = [seed + P1 + P2, seed + P2, seed, seed - P1].map((lane) => lane | 0);
    for (; at + 16 <= data.length; at += 16) {
      for (let i = 0; i < 4; i++) {
        const sum = (lanes[i] + Math.imul(data.readUInt32LE(at + 4 * i), P2)) | 0;
        lanes[i] = Math.imul(rotate(sum, 13), P1);
      }
    }
    hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
  } else {
    hash = seed + P5;
  }
  hash = (hash + data.length) | 0;
  for (; at + 4 <= data.length; at += 4) {
    hash = Math.imul(rotate((hash + Math.imul(data.readUInt32LE(at), P3)) | 0, 17), P4);
  }
  for (; at < data.length; at++) hash = Math.imul(rotate((hash + Math.imul(data[at], P5)) | 0, 11), P1);
  hash = Math.imul(hash ^ (hash >>> 15), P2);
  hash = Math.imul(hash ^ (hash >>> 13), P3);
  return (hash ^ (hash >>> 16)) >>> 0;
}

const GUARDED = 20;
const guard = (update) => xxh32(update.subarray(GUARDED), 0x4f524f4c);

/** Makes the checksum right again, so that more than the checksum is tried. */
function sealed(update) {
  const copy = Buffer.from(update);
  if (copy.length > GUARDED) copy.writeUInt32LE(guard(copy), 16);
  return copy;
}

function malformed(valid, dice, kind) {
  const bytes = Buffer.from(valid);
  const flip = () => {
    for (let n = 1 + dice.below(4); n > 0; n--) bytes[dice.below(bytes.length)] ^= 1 << dice.below(8);
    return bytes;
  };
  const flipBehind = () => {
    for (let n = 1 + dice.below(3); n > 0; n--) bytes[22 + dice.below(bytes.length - 22)] ^= 1 << dice.below(8);
    return sealed(bytes);
  };
  switch (kind) {
    case "random":
      return Buffer.from(Array.from({ length: dice.below(300) }, () => dice.below(256)));
    case "truncated":
      return bytes.subarray(0, dice.below(bytes.length));
    case "flipped":
      return flip();
    case "truncated and sealed":
      return sealed(bytes.subarray(0, 22 + dice.below(bytes.length - 22)));
    default:
      return flipBehind();
  }
}

async function malformedUpdates({ server, dice, report }) {
  const ann = await new Client(server).open("hostile.md");
  const bob = await new Client(server).open("hostile.md");
  const counts = new Map();
  const kinds = ["random", "truncated", "flipped", "truncated and sealed", "flipped and sealed"];
  let lastTaken = "none";
  for (let i = 0; i < 1000; i++) {
    const kind = kinds[i % kinds.length];
    let fork;
    try {
      fork = ann.doc.fork();
    } catch (error) {
      const opened = await server.call("open_session", { page_id: "hostile.md" }).then(() => "works", (why) => why.message);
      throw new Error(`update ${i}: another client's document is broken (${error}), open_session: ${opened}; the last that was taken: ${lastTaken}`);
    }
    const body = fork.getText("body");
    const places = starts(body.toString());
    if (dice.next() < 0.5) body.delete(0, places[Math.min(3, places.length - 1)]);
    body.insert(0, "🛶evil");
    fork.commit();
    const valid = Buffer.from(fork.export({ mode: "update", from: ann.doc.oplogVersion() }));
    if (i === 0) must(valid.readUInt32LE(16) === guard(valid), "the checksum is understood");
    const op = malformed(valid, dice, kind);
    const socket = new WebSocket(`ws://${server.address}/ws`);
    socket.on("error", () => {});
    await once(socket, "open");
    const frames = [];
    let closed = null;
    socket.on("message", (text) => frames.push(JSON.parse(text)));
    socket.on("close", (code) => (closed = code));
    socket.send(JSON.stringify({ type: "hello", session: ann.session, content: false }));
    socket.send(JSON.stringify({ type: "op", session: ann.session, op: b64(op) }));
    const answer = () => frames.find((frame) => ["op_ack", "error"].includes(frame.type));
    await until(() => answer() || closed, `no answer to ${op.toString("hex")}`);
    const outcome = answer()?.type === "op_ack" ? "taken" : (answer()?.code ?? `closed ${closed}`);
    if (!["op_invalid", "op_incomplete", "taken"].includes(outcome)) report(`${kind}: ${JSON.stringify(answer())} ${op.toString("hex")}`);
    if (outcome === "taken") lastTaken = `${kind} ${op.toString("hex")}`;
    const key = `${kind}: ${outcome}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    socket.terminate();
    fork.free();
  }
  await quiet([ann, bob]);
  const late = await new Client(server).open("hostile.md");
  await quiet([ann, bob, late]);
  ann.change((text) => text.insert(0, "after "));
  await quiet([ann, bob, late]);
  equal((await server.call("expand", { page_id: "hostile.md" })).body, ann.text(), "expand and replicas");
  for (const client of [ann, bob, late]) client.drop();
  return [...counts].sort().map(([key, n]) => `${key} ${n}`).join(", ");
}

async function paste({ server }) {
  const said = [];
  let slowest = 0;
  for (const content of [false, true]) {
    const page = content ? "paste2.md" : "paste.md";
    const ann = await new Client(server, { content }).open(page);
    const bob = await new Client(server, { content }).open(page);
    const big = "🛶".repeat((5 * MB) / 4);
    const begun = performance.now();
    ann.change((body) => body.insert(2, big));
    const local = performance.now() - begun;
    await quiet([ann, bob], 120_000);
    const there = performance.now() - begun;
    said.push(`${content ? "with" : "without"} content: made in ${local.toFixed(0)} ms, op_ack after ${ann.acks[0].toFixed(0)} ms, at the other's after ${there.toFixed(0)} ms`);
    slowest = Math.max(slowest, ann.acks[0], there);
    const small = [];
    for (let i = 0; i < 20; i++) {
      ann.acks.length = 0;
      ann.change((body) => body.insert(body.length - 1, "x"));
      await quiet([ann, bob], 60_000);
      small.push(ann.acks[0]);
    }
    said.push(`a letter more: op_ack ${spread(small)}`);
    ann.drop();
    bob.drop();
  }
  must(slowest < PASTE_MS, said.join("; "));
  return said.join("; ");
}

async function slowReader({ server, report }) {
  const slow = await new Client(server, { content: true }).open("slow.md");
  const writer = await new Client(server).open("slow.md");
  slow.socket._socket.pause();
  const begun = performance.now();
  for (let i = 0; i < 5000; i++) {
    writer.change((body) => body.insert(0, "🛶"));
    if (i % 50 === 49) await until(() => writer.unacked.length < 200, "not acknowledged");
  }
  await until(() => writer.unacked.length === 0, "not acknowledged");
  const seconds = (performance.now() - begun) / 1000;
  report(`    slow reader: memory before it reads on ${JSON.stringify(server.memory())}`);
  slow.socket._socket.resume();
  const told = () => slow.frames.find((frame) => frame.type === "resync_required");
  await until(() => told() || slow.closed, "a slow reader was not told");
  let how = `closed with ${slow.closed}`;
  if (slow.closed) {
    await slow.connect();
  } else {
    how = `told of ${told().skipped} skipped (${told().reason})`;
    must((await slow.hello()).type === "hello_ack", "hello again on the same socket");
  }
  await quiet([slow, writer]);
  slow.change((body) => body.insert(0, "again "));
  await quiet([slow, writer]);
  slow.drop();
  writer.drop();
  return `5,000 changes acknowledged in ${seconds.toFixed(1)} s, then ${how}`;
}

async function hugeFrame({ server }) {
  const said = [];
  for (const pieces of [1, 200]) {
    const socket = new WebSocket(`ws://${server.address}/ws`, { perMessageDeflate: false });
    socket.on("error", () => {});
    await once(socket, "open");
    const frames = [];
    let closed = null;
    socket.on("message", (text) => frames.push(JSON.parse(text)));
    socket.on("close", (code) => (closed = code));
    const piece = Buffer.alloc((200 * MB) / pieces, "a");
    for (let i = 1; i <= pieces; i++) socket.send(piece, { binary: false, fin: i === pieces }, () => {});
    await until(() => closed !== null, "still open");
    said.push(`${pieces} frame${pieces > 1 ? "s" : ""}: ${frames.map((frame) => frame.code)} closed ${closed}`);
  }
  return said.join("; ");
}

async function silent({ server }) {
  const begun = performance.now();
  let closed = 0;
  const sockets = Array.from({ length: 500 }, () => {
    const socket = new WebSocket(`ws://${server.address}/ws`);
    socket.on("error", () => {});
    socket.on("close", () => closed++);
    return socket;
  });
  await until(() => closed === sockets.length, () => `${closed} of 500 silent sockets were closed`);
  return `all closed after ${((performance.now() - begun) / 1000).toFixed(1)} s`;
}

async function resets({ server }) {
  const [host, port] = server.address.split(":");
  for (let i = 0; i < 200; i++) {
    const socket = net.connect(Number(port), host);
    socket.on("error", () => {});
    await once(socket, "connect");
    const head = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    socket.write(head.slice(0, i % 2 ? head.length : i));
    if (i % 3) await sleep(1);
    socket.resetAndDestroy();
  }
  return "200 connections";
}

await main(async (bench) => {
  const { server, report } = bench;
  const pages = ["typists", "hostile", "paste", "paste2"];
  for (const page of pages) fs.writeFileSync(server.file(`${page}.md`), "# Page\n");
  fs.writeFileSync(server.file("slow.md"), `# Page\n\n${"Words of a longer page. ".repeat(1000)}\n`);
  await server.start();
  const typists = new Worker(new URL("./typists.mjs", import.meta.url), { workerData: { address: server.address, page: "typists.md" } });
  const asked = async (what) => {
    typists.postMessage(what);
    return (await once(typists, "message"))[0];
  };
  await once(typists, "message");
  const calm = async () => {
    await sleep(3000);
    return "3 s";
  };
  // Malformed updates come last: what they break, here or there, stays broken.
  const trials = {
    calm,
    "slow reader": slowReader,
    "200 MB": hugeFrame,
    "500 silent sockets": silent,
    "resets while upgrading": resets,
    "5 MB of emoji": paste,
    "malformed updates": malformedUpdates,
    "calm again": calm,
  };
  let wrong = 0;
  for (const [name, trial] of Object.entries(trials)) {
    server.forgetPeak();
    await asked("figures");
    const before = server.memory();
    let outcome;
    try {
      outcome = await trial(bench);
    } catch (error) {
      outcome = `WRONG: ${error.stack ?? error}`;
      wrong++;
    }
    if ((await fetch(`http://${server.address}/readyz`)).status !== 200) wrong++;
    must(server.process.exitCode === null && server.process.signalCode === null, `${name}: the server is gone: ${server.tail()}`);
    const after = server.memory();
    const { acks, hears } = await asked("figures");
    report(`${name}: ${outcome}`);
    if (after) report(`    server ${before.now} MB before, ${after.now} MB after, at most ${after.peak} MB`);
    report(`    others: op to op_ack ${spread(acks)}, op to peer_op ${spread(hears)}`);
  }
  const { text, error } = await asked("end");
  must(!error, error);
  equal((await server.call("expand", { page_id: "typists.md" })).body, text, "expand and the typists");
  await sleep(1000);
  report(`at the end ${server.memory()?.now} MB`);
  must(wrong === 0, `${wrong} wrong`);
});

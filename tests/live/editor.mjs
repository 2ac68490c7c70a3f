// The editor in Rust (client/), as one of the clients of a script.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { PATIENCE } from "./common.mjs";

export class Editor {
  /** `program` is the binary of client/. */
  constructor(program) {
    Object.assign(this, { waiting: [], unacked: [], errors: [], closed: null });
    this.process = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
    this.process.stdin.on("error", () => {});
    createInterface({ input: this.process.stdout }).on("line", (line) => this.waiting.shift()?.(JSON.parse(line)));
    const ended = (why) => {
      this.closed = `ended: ${why}`;
      for (const tell of this.waiting.splice(0)) tell({ problem: this.closed });
    };
    this.process.once("error", (error) => ended(error.message));
    this.process.once("exit", (code, signal) => ended(code ?? signal));
  }

  async open(server, page_id) {
    this.session = (await server.call("open_session", { page_id })).session;
    await this.ask({ do: "open", url: `ws://${server.address}/ws`, session: this.session });
    return this;
  }

  /** Makes changes by itself; answered when they are sent. */
  edit(seed, times) {
    return this.ask({ do: "edit", seed, times });
  }

  /** Asks what there is now. */
  async refresh() {
    const { text, version, unacknowledged } = await this.ask({ do: "report" });
    Object.assign(this, { there: text, known: version });
    this.unacked.length = unacknowledged;
  }

  text() {
    return this.there;
  }

  version() {
    return JSON.stringify(Object.entries(this.known ?? {}).sort());
  }

  async ask(what) {
    if (this.closed) throw new Error(`the editor in Rust ${this.closed}`);
    let late;
    const answer = await new Promise((tell) => {
      this.waiting.push(tell);
      late = setTimeout(() => tell({ problem: `no answer within ${PATIENCE} ms` }), PATIENCE);
      this.process.stdin.write(`${JSON.stringify(what)}\n`);
    });
    clearTimeout(late);
    if (answer.problem) throw new Error(`the editor in Rust, asked to ${what.do}: ${answer.problem}`);
    return answer;
  }

  end() {
    this.process.kill();
  }
}

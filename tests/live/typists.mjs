// Two who type all the time, in a thread of their own: how long others' misuse makes them wait.

import { parentPort, workerData } from "node:worker_threads";
import { Client, quiet, Remote, sleep } from "./common.mjs";

const server = new Remote(workerData.address);
const ann = await new Client(server).open(workerData.page);
const bob = await new Client(server).open(workerData.page);
ann.measured = true;
bob.hearsOf = ann;
// Who only listens is another check; here the figures matter.
const alive = setInterval(() => bob.socket.ping(), 20_000);
let going = true;
parentPort.on("message", async (what) => {
  if (what === "figures") {
    parentPort.postMessage({ acks: ann.acks.splice(0), hears: bob.hears.splice(0) });
    return;
  }
  going = false;
  clearInterval(alive);
  await quiet([ann, bob]).then(
    () => parentPort.postMessage({ text: ann.text() }),
    (error) => parentPort.postMessage({ error: error.message }),
  );
  ann.drop();
  bob.drop();
  parentPort.close();
});
parentPort.postMessage("ready");
while (going) {
  ann.change((body) => {
    if (body.length > 2007) body.delete(7, 1000);
    body.insert(body.length, "🛶");
  });
  await sleep(20);
}

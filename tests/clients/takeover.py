"""Several agents on one folder: whoever owns it may be killed at any moment.

Every agent starts its own `escurel mcp`. The first owns the folder, the others
pass requests to it. Killed without warning, its place is taken: each request,
also one in flight at that moment, is answered correctly within two seconds.
"""

import json
import queue
import subprocess
import sys
import threading
import time

import expect

LIMIT = 2.0
START_LIMIT = 30.0


class Agent:
    def __init__(self, binary, folder):
        self.process = subprocess.Popen(
            [binary, "mcp", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.replies = queue.Queue()
        self.early = {}
        self.next_id = 0
        threading.Thread(target=self.read, daemon=True).start()
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
        self.receive(self.send("initialize", params), START_LIMIT)
        self.notify("notifications/initialized")

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "id" in message:
                self.replies.put(message)

    def notify(self, method):
        self.write({"jsonrpc": "2.0", "method": method})

    def send(self, method, params):
        self.next_id += 1
        self.write({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        return self.next_id

    def write(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def receive(self, wanted, limit):
        """The answer to one request; answers may overtake each other."""
        end = time.monotonic() + limit
        while wanted not in self.early:
            try:
                reply = self.replies.get(timeout=max(end - time.monotonic(), 0))
            except queue.Empty:
                expect.fail(f"no answer within {limit:.1f} s")
            self.early[reply["id"]] = reply
        reply = self.early.pop(wanted)
        if "result" not in reply:
            expect.fail(f"request {wanted} was answered by {reply}")
        return reply["result"]

    def ask(self):
        """Sends every known call at once and returns what to wait for."""
        return [
            (self.send("tools/call", {"name": call["tool"], "arguments": call["arguments"]}), call)
            for call in expect.KNOWN["calls"]
        ]

    def hear(self, asked, end):
        for wanted, call in asked:
            result = self.receive(wanted, end - time.monotonic())
            texts = [c.get("text") for c in result["content"]]
            expect.answer(call, result.get("isError", False), texts, result.get("structuredContent"))


def command_line(binary, folder, limit):
    known = expect.KNOWN["cli"]
    arguments = [a.replace("{folder}", folder) for a in known["arguments"]]
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=limit)
    if done.returncode != 0 or known["contains"] not in done.stdout:
        expect.fail(f"the command line answered {done.returncode}: {done.stdout[-300:]} {done.stderr[-300:]}")


def main(binary, folder):
    agents = [Agent(binary, folder) for _ in range(3)]
    for agent in agents:
        agent.hear(agent.ask(), time.monotonic() + START_LIMIT)
    command_line(binary, folder, START_LIMIT)
    while len(agents) > 1:
        owner, *agents = agents
        before = [agent.ask() for agent in agents]
        owner.process.kill()
        end = time.monotonic() + LIMIT
        after = [agent.ask() for agent in agents]
        for agent, *asked in zip(agents, before, after):
            for calls in asked:
                agent.hear(calls, end)
        # A new process starts afresh, so its limit begins with it.
        command_line(binary, folder, LIMIT)
        owner.process.wait()
    last = agents[0].process
    last.stdin.close()
    if last.wait(10) != 0:
        expect.fail(f"the last one ended with {last.returncode} when its input ended")


main(*sys.argv[1:])

"""The real binary over one folder, and the doors through which it is called."""

import http.client
import json
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients"))
import server  # noqa: E402

READY_SECONDS = 60
CALL_SECONDS = 30
PATIENCE_SECONDS = 20


class Lost(Exception):
    """Something acknowledged that is not there, something that is there twice, or a server that fails."""


class Dead(Exception):
    """The server went away during a call: nobody knows what became of it."""


class Refused(Exception):
    """An answer that says why nothing was done."""

    def __init__(self, tool, status, body):
        super().__init__(f"{tool} was refused with {status}: {body}")
        self.code, self.retryable = body.get("code"), body.get("retryable")


class Api:
    """POST /api/tools/{name} over one connection."""

    def __init__(self, port):
        self.link = http.client.HTTPConnection("127.0.0.1", port, timeout=CALL_SECONDS)

    def call(self, tool, **arguments):
        status, answer = self.post(f"/api/tools/{tool}", arguments)
        if status != 200:
            raise Refused(tool, status, answer.get("error", answer))
        return answer

    def post(self, path, body, **headers):
        headers = {"content-type": "application/json", **headers}
        try:
            self.link.request("POST", path, json.dumps(body), headers)
            answer = self.link.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.link.close()
            raise Dead(str(error)) from error
        return answer.status, json.loads(text) if text else {}


class Mcp(Api):
    """Streamable HTTP: a handshake, then JSON-RPC requests."""

    VERSION = "2025-11-25"

    def __init__(self, port):
        super().__init__(port)
        self.number = 0
        client = {"name": "crash-loop", "version": "1"}
        self.ask("initialize", protocolVersion=self.VERSION, capabilities={}, clientInfo=client)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool, **arguments):
        result = self.ask("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            raise Refused(tool, 200, result["_meta"]["escurel/error"])
        return result["structuredContent"]

    def ask(self, method, **params):
        self.number += 1
        status, answer = self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        if status != 200 or answer.get("id") != self.number or "result" not in answer:
            raise Lost(f"{method} is answered with {status} {answer}")
        return answer["result"]

    def send(self, message):
        both = {"accept": "application/json, text/event-stream", "mcp-protocol-version": self.VERSION}
        return self.post("/mcp", message, **both)


class Kb:
    def __init__(self, binary, home):
        self.binary, self.home = binary, home
        self.folder = home / "notes"
        self.folder.mkdir(parents=True)
        self.port = server.free_port()
        self.env = server.environment(home)
        self.process = None

    def launch(self):
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", str(self.folder), "--listen", f"127.0.0.1:{self.port}"],
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the loop, which ends it.
                start_new_session=True,
            )

    def start(self):
        self.launch()
        end = time.monotonic() + READY_SECONDS
        while not self.ready():
            if self.process.poll() is not None:
                raise Lost(f"the server does not start, it ended with {self.process.returncode}\n{self.tail()}")
            if time.monotonic() > end:
                raise Lost(f"the server is not ready after {READY_SECONDS} s\n{self.tail()}")
            time.sleep(0.02)

    def ready(self):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CALL_SECONDS)
        try:
            link.request("GET", "/readyz")
            return link.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            link.close()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def api(self):
        return Api(self.port)

    def mcp(self):
        return Mcp(self.port)

    def read(self, tool, **arguments):
        """The answer, None if there is no such page. What can be had in a moment is waited for."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return self.api().call(tool, **arguments)
            except Refused as refused:
                if refused.code == "page_not_found":
                    return None
                if not refused.retryable or time.monotonic() > end:
                    raise Lost(str(refused)) from refused
                time.sleep(0.05)
            except Dead as dead:
                raise Lost(f"the server is gone without having been killed: {dead}\n{self.tail()}") from dead

    def page(self, page_id, **arguments):
        """Its expand, or None."""
        shown = self.read("expand", page_id=page_id, max_chars=10_000_000, **arguments)
        return shown if shown and shown["page"] else None

    def verify(self):
        command = [self.binary, "verify", "--folder", str(self.folder)]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise Lost(f"verify ends with {done.returncode}: {done.stdout[-1500:]} {done.stderr[-1500:]}")

    def tail(self):
        return "\n".join((self.home / "server.log").read_text(errors="replace").splitlines()[-20:])

"""Starts the binary under test on a free loopback port, away from the user's files."""

import os
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.request

READY_SECONDS = 60


class Server:
    """`escurel serve` on the demo corpus, with its data under `home`."""

    def __init__(self, binary, home, fixtures):
        self.home = pathlib.Path(home)
        self.home.mkdir(parents=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.log = self.home / "server.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [binary, "serve", "--listen", f"127.0.0.1:{self.port}"],
                cwd=self.home,
                env=environment(self.home, fixtures),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.wait()

    def wait(self):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}\n{self.tail()}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise RuntimeError(f"not ready after {READY_SECONDS} s\n{self.tail()}")

    def stop(self):
        """Asks it to end, and says how it ended."""
        self.process.terminate()
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def tail(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])


def environment(home, fixtures=False):
    """The caller's environment without escurel's settings and the user's folders."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ESCUREL_", "XDG_"))}
    env["HOME"] = str(home)
    if fixtures:
        env["ESCUREL_TEST_FIXTURES"] = "1"
    return env


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

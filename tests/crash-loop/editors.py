"""Live editors in node (tests/live/crash.mjs): a child process that outlives the server."""

import json
import pathlib
import subprocess
import sys
import threading

from kb import Lost

LIVE = pathlib.Path(__file__).resolve().parent.parent / "live"
sys.path.insert(0, str(LIVE.parent / "clients"))
import install  # noqa: E402

OLDEST_NODE = 20
PAGES = ("live0.md", "live1.md")
TEXT = "# Live\n\nTyped by several 🛶 at once.\n"
ANSWER_SECONDS = 120


class Editors:
    def __init__(self, node, scripts, kb, seed):
        for page in PAGES:
            (kb.folder / page).write_text(TEXT)
        wanted = {"address": f"127.0.0.1:{kb.port}", "folder": str(kb.folder), "pages": PAGES, "seed": seed}
        with (kb.home / "editors.log").open("ab") as log:
            self.process = subprocess.Popen(
                [node, str(scripts / "crash.mjs"), json.dumps(wanted)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.acknowledged = self.resent = 0

    def tell(self, what):
        late = threading.Timer(ANSWER_SECONDS, self.process.kill)
        late.start()
        try:
            self.process.stdin.write(json.dumps({"do": what}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late.cancel()
        if not line:
            raise Lost(f"the live editors ended, or gave no answer to {what} within {ANSWER_SECONDS} s")
        answer = json.loads(line)
        if "problem" in answer:
            raise Lost(f"live editors, {what}: {answer['problem']}")
        self.acknowledged, self.resent = answer["acknowledged"], answer["resent"]

    def end(self):
        self.process.kill()
        self.process.wait()


class Nobody:
    """Where node is not installed."""

    acknowledged = resent = 0

    def tell(self, what):
        pass

    def end(self):
        pass


def installed(cache):
    """Node and the folder with the scripts, or why there is none."""
    return install.node_env(cache, LIVE, OLDEST_NODE)


Absent = install.Absent

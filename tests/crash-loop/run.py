"""Kills the server at random moments while many write, and holds it to its word after each restart.

Needs the standard library; the live editors need node and npm, too. Without
them they are left out, with CI=true that is a failure. Ctrl-C ends the loop.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

import checks
import editors
import kb as knowledge
import writers

STRICT = os.environ.get("CI") in ("true", "1")
CLIENTS = 4
PAGES_EACH = 5
LOAD_SECONDS = (0.01, 0.9)
# So often a kill is followed by another one while the server recovers.
KILLED_AGAIN = 0.2
RECOVERY_SECONDS = (0.0, 0.4)
# Every so many kills all that was ever acknowledged is looked at, not only what is new.
EVERYTHING = 50
TOLD = 10


class Loop:
    def __init__(self, binary, home, seed, live):
        self.seed, self.number = seed, 0
        self.kb, self.log = knowledge.Kb(binary, home), writers.Log()
        (self.kb.folder / writers.PERSON).write_text("# Person\n")
        self.pages = [
            [writers.Page(f"page{client}-{number}") for number in range(PAGES_EACH)] for client in range(CLIENTS)
        ]
        self.editors = editors.Editors(*live, self.kb, seed) if live else editors.Nobody()

    def life(self):
        """Load, a kill in the middle of it, a restart, and the checks."""
        self.number += 1
        dice = random.Random(f"{self.seed} {self.number}")
        self.load_and_kill(dice)
        if dice.random() < KILLED_AGAIN:
            self.kb.launch()
            time.sleep(dice.uniform(*RECOVERY_SECONDS))
            self.kb.kill()
        self.kb.start()
        self.check(dice, self.number % EVERYTHING == 0)
        self.editors.tell("check")
        self.kb.verify()

    def load_and_kill(self, dice):
        doors = [self.kb.api, self.kb.mcp]
        crowd = [
            writers.Client(doors[name % 2], chr(ord("a") + name), self.number, pages, self.log)
            for name, pages in enumerate(self.pages)
        ]
        stop = threading.Event()
        person = threading.Thread(target=writers.person, args=(self.kb, dice, stop), daemon=True)
        try:
            self.editors.tell("go")
            for thread in [*crowd, person]:
                thread.start()
            time.sleep(dice.uniform(*LOAD_SECONDS))
            self.kb.kill()
            for client in crowd:
                client.join()
            self.editors.tell("dead")
        finally:
            stop.set()
        person.join()
        for client in crowd:
            if client.failure:
                raise client.failure

    def check(self, dice, everything):
        pages = [page for several in self.pages for page in several]
        for page in pages:
            checks.check_page(self.kb, page, dice, self.log)
        checks.repeat_named(self.kb, self.log)
        checks.check_events(self.kb, self.log, everything)
        checks.check_messages(self.kb, self.log, everything)
        checks.check_person(self.kb)
        if everything:
            checks.check_all_versions(self.kb, pages)

    def end(self):
        self.kb.kill()
        self.editors.end()

    def told(self):
        counts = self.log.counts
        on_pages = sum(counts[tool] for tool in counts if tool.endswith("_page"))
        return (
            f"{on_pages} writes of pages, {counts['capture_event']} events ({counts['assign_event']} assigned), "
            f"{counts['append_message']} messages and {self.editors.acknowledged} live changes acknowledged"
        )


def run(loop, times):
    """Why it ended before its time, if it did."""
    begun = time.monotonic()
    try:
        loop.kb.start()
        for _ in range(times):
            loop.life()
            if loop.number % TOLD == 0 or loop.number == times:
                each = (time.monotonic() - begun) / loop.number
                print(f"{loop.number}/{times} kills, {each:.1f} s each: {loop.told()}", flush=True)
        loop.check(random.Random(loop.seed), everything=True)
    except KeyboardInterrupt:
        return "stopped"
    except (knowledge.Lost, knowledge.Refused) as lost:
        print(f"LOSS at kill {loop.number} of seed {loop.seed}: {lost}", flush=True)
        return "LOSS"
    return None


def live_editors(chosen):
    try:
        return editors.installed(chosen.cache)
    except editors.Absent as absent:
        if STRICT:
            sys.exit(f"crash-loop: no live editors: {absent}")
        print(f"left out: live editors: {absent}", flush=True)
        return None


def options():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, help="the escurel binary to kill")
    parser.add_argument("--times", type=int, default=500, help="kills (500)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeats who does what, not when")
    parser.add_argument("--keep", action="store_true", help="leave the folder there after a loss")
    parser.add_argument("--cache", default=str(cache / "escurel/clients"), help="where node's packages are installed")
    return parser.parse_args()


def main():
    chosen = options()
    # Also when it was started in the background.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.default_int_handler)
    live = live_editors(chosen)
    home = pathlib.Path(tempfile.mkdtemp(prefix="escurel-crash-"))
    loop, ended = None, "LOSS"
    try:
        loop = Loop(str(pathlib.Path(chosen.binary).resolve()), home, chosen.seed, live)
        ended = run(loop, chosen.times)
    finally:
        if loop:
            loop.end()
        if ended == "LOSS" and chosen.keep:
            print(f"kept: {home}", flush=True)
        else:
            shutil.rmtree(home, ignore_errors=True)
    result = ended or "nothing lost, nothing twice"
    print(f"crash-loop: {loop.number} kills, seed {chosen.seed}: {loop.told()}; {result}")
    return {None: 0, "stopped": 130}.get(ended, 1)


if __name__ == "__main__":
    sys.exit(main())

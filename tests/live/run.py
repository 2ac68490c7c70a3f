"""Drives live editing of the real binary with real Loro clients, and prints one line per check.

Needs the standard library, node and npm. What cannot run here is a SKIP, and
with CI=true a FAIL.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))

import install  # noqa: E402

STRICT = os.environ.get("CI") in ("true", "1")
OLDEST_NODE = 20
SCRIPTS = ("boundaries", "lineage", "kill", "listener", "hostile", "rounds")
QUICK = ("boundaries", "lineage", "kill", "rounds")
QUICK_ROUNDS = 30
WITH_EDITOR = ("rounds",)
CHECK_SECONDS = 1800


def run(script, node, home, chosen, scratch):
    """What the script printed, and whether all was right."""
    wanted = {
        "binary": str(pathlib.Path(chosen.binary).resolve()),
        "editor": editor(chosen) if script in WITH_EDITOR else None,
        "scratch": str(scratch),
        "seed": chosen.seed,
        "rounds": chosen.rounds,
    }
    command = [node, str(home / f"{script}.mjs"), json.dumps(wanted)]
    try:
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=CHECK_SECONDS)
    except subprocess.TimeoutExpired:
        return False, f"no end after {CHECK_SECONDS} s"
    said = done.stdout.strip()
    if done.returncode != 0:
        said += f"\nexit code {done.returncode}\n" + done.stderr.strip()[-4000:]
    return done.returncode == 0, said.strip()


def options():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, help="the escurel binary to drive")
    parser.add_argument("--editor", help="the editor in Rust; without, the one beside the binary")
    parser.add_argument("--cache", default=str(cache / "escurel/clients"))
    parser.add_argument("--filter", default="", help="only checks whose name contains this")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}, {QUICK_ROUNDS} rounds")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    chosen.rounds = chosen.rounds or (QUICK_ROUNDS if chosen.quick else 1000)
    return chosen


def editor(chosen):
    """The editor in Rust."""
    beside = pathlib.Path(chosen.binary).with_name("escurel-live-client" + (".exe" if os.name == "nt" else ""))
    path = pathlib.Path(chosen.editor or beside).resolve()
    if not path.exists():
        raise install.Absent(f"{path} is not there: cargo build --release -p escurel-live-client")
    return str(path)


def outcome(script, chosen, scratch):
    try:
        node, home = install.node_env(chosen.cache, HERE, OLDEST_NODE)
        right, said = run(script, node, home, chosen, scratch)
    except install.Absent as absent:
        return ("FAIL" if STRICT else "SKIP"), str(absent)
    return ("ok" if right else "FAIL"), said


def main():
    chosen = options()
    count = {"ok": 0, "FAIL": 0, "SKIP": 0}
    for script in QUICK if chosen.quick else SCRIPTS:
        if chosen.filter not in script:
            continue
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="escurel-live-", ignore_cleanup_errors=True) as scratch:
            word, said = outcome(script, chosen, scratch)
        count[word] += 1
        print(f"{script} ... {word} ({time.monotonic() - begun:.1f} s)", flush=True)
        if said:
            print("    " + said.replace("\n", "\n    "), flush=True)
    print(f"live: {count['ok']} passed, {count['FAIL']} failed, {count['SKIP']} skipped")
    return 1 if count["FAIL"] else 0


sys.exit(main())

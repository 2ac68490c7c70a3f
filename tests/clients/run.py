"""Drives the real binary with real MCP clients and prints one line per check.

Needs the standard library only; the clients themselves are installed into a
cache folder (see install.py). What cannot run here is a SKIP, and with CI=true
a FAIL, so that a build server leaves nothing out unseen.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import install
import server

HERE = pathlib.Path(__file__).resolve().parent
DEMO = HERE.parent.parent / "markdown"
STRICT = os.environ.get("CI") in ("true", "1")
CHECK_SECONDS = 120
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Wrong(Exception):
    """A client that did not see what it should."""


class Bench:
    """What the checks share: installations and servers, made when first asked for."""

    def __init__(self, binary, cache, scratch):
        self.binary, self.cache, self.scratch = binary, cache, pathlib.Path(scratch)
        self.servers, self.made = {}, {}

    def server(self, fixtures=False):
        if fixtures not in self.servers:
            home = self.scratch / ("fixtures" if fixtures else "plain")
            self.servers[fixtures] = server.Server(self.binary, home, fixtures)
        return self.servers[fixtures]

    def url(self, fixtures=False):
        return self.server(fixtures).url

    def once(self, key, make):
        """Makes it, or repeats why it could not be made."""
        if key not in self.made:
            try:
                self.made[key] = make()
            except install.Absent as absent:
                self.made[key] = absent
        if isinstance(self.made[key], install.Absent):
            raise self.made[key]
        return self.made[key]

    def python(self, requirements):
        return self.once(requirements, lambda: install.python_env(self.cache, requirements))

    def node(self):
        return self.once("node", lambda: install.node_env(self.cache))

    def folder(self, name):
        """A fresh copy of the demo corpus, as a person's folder of notes."""
        target = self.scratch / name
        shutil.copytree(DEMO, target)
        return str(target)

    def stop(self):
        for running in self.servers.values():
            running.stop()


def python_client(requirements, script, *args):
    def check(bench):
        python = bench.python(requirements)
        execute([python, "-W", "ignore", str(HERE / script), bench.url(), *args])

    return check


def node_client(script, *args):
    def check(bench):
        node, home = bench.node()
        execute([node, str(home / script), bench.url(), *args], cwd=home)

    return check


def inspector(bench):
    """Its command line drops tools that it finds invalid, so names are compared."""
    node, home = bench.node()
    known = json.loads((HERE / "known.json").read_text())
    wanted = json.loads((HERE / "expected-tools.json").read_text())

    def ask(*args):
        program = [node, str(home / "node_modules/.bin/mcp-inspector"), "--cli", bench.url()]
        text = execute([*program, "--transport", "http", "--format", "json", "-q", *args], cwd=home)
        return json.loads(text)["result"]

    names = [tool["name"] for tool in ask("--method", "tools/list")["tools"]]
    if sorted(names) != sorted(wanted):
        raise Wrong(f"tools differ: {names}")
    for call in known["calls"]:
        arguments = json.dumps(call["arguments"])
        result = ask("--method", "tools/call", "--tool-name", call["tool"], "--tool-args-json", arguments)
        if result.get("isError") or call["contains"] not in json.dumps(result, ensure_ascii=False):
            raise Wrong(f"{call['tool']}: {json.dumps(result)[:300]}")


def conformance(revision, fixtures, scenario=None):
    """A whole requirement set, or one scenario that the set does not score."""

    def check(bench):
        node, home = bench.node()
        command = [node, str(home / "node_modules/.bin/conformance"), "server"]
        command += ["--url", bench.url(fixtures), "-o", str(bench.scratch / "conformance")]
        if scenario:
            command += ["--spec-version", revision, "--scenario", scenario]
        else:
            baseline = HERE / "conformance" / f"{revision}-{'fixtures' if fixtures else 'plain'}.yml"
            command += ["--requirements", revision, "--expected-failures", str(baseline)]
        execute(command, cwd=home)

    return check


def stdio(bench):
    python = bench.python("requirements-mcp2.txt")
    script = [python, "-W", "ignore", str(HERE / "py_mcp2.py"), "stdio"]
    execute([*script, bench.binary, bench.folder("stdio")], env=server.environment(bench.scratch))


def takeover(bench):
    script = [sys.executable, str(HERE / "takeover.py"), bench.binary]
    execute([*script, bench.folder("takeover")], env=server.environment(bench.scratch))


def shutdown(bench):
    """After all those clients it is still there, and ends when asked to."""
    running = bench.server()
    if running.process.poll() is not None:
        raise Wrong(f"the server had ended by itself:\n{running.tail()}")
    del bench.servers[False]
    code = running.stop()
    if os.name != "nt" and code != 0:
        raise Wrong(f"asked to end, it answered {code}:\n{running.tail()}")


def checks():
    one, two = "requirements-mcp1.txt", "requirements-mcp2.txt"
    for mode in ("auto", "legacy", "2026-07-28"):
        yield f"python-mcp-2.3.0-{mode}", python_client(two, "py_mcp2.py", mode)
    yield "python-mcp-1.30.0", python_client(one, "py_mcp1.py")
    yield "fastmcp-4.2.3", python_client(two, "py_fastmcp.py")
    yield "typescript-sdk-1.32.2", node_client("ts_sdk1.mjs")
    for mode in ("auto", "legacy", "2026-07-28"):
        yield f"typescript-client-2.4.0-{mode}", node_client("ts_client2.mjs", mode)
    yield "inspector-2.12.0", inspector
    for revision in ("2025-11-25", "2026-07-28"):
        yield f"conformance-{revision}", conformance(revision, fixtures=False)
        yield f"conformance-{revision}-fixtures", conformance(revision, fixtures=True)
        yield f"conformance-{revision}-json-schema", conformance(revision, True, "json-schema-2020-12")
    yield "conformance-session-lifecycle", conformance("2025-11-25", False, "server-session-lifecycle")
    yield "conformance-header-validation", conformance("2026-07-28", False, "http-header-validation")
    yield "stdio", stdio
    yield "takeover", takeover
    yield "shutdown", shutdown


def execute(command, cwd=None, env=None):
    """Runs a client; what it printed is shown only if it failed."""
    env = {**(env or os.environ), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, text=True, timeout=CHECK_SECONDS
        )
    except subprocess.TimeoutExpired as late:
        raise Wrong(f"no end after {CHECK_SECONDS} s: {late.stderr or late.stdout}") from late
    if done.returncode != 0:
        text = COLOUR.sub("", done.stdout.strip() + "\n" + done.stderr.strip())
        raise Wrong(f"exit code {done.returncode}\n" + "\n".join(text.strip().splitlines()[-40:]))
    return done.stdout


def outcome(check, bench):
    try:
        check(bench)
        return "ok", ""
    except install.Absent as absent:
        return ("FAIL" if STRICT else "SKIP"), str(absent)
    except (Wrong, OSError, RuntimeError, ValueError, KeyError) as wrong:
        return "FAIL", f"{type(wrong).__name__}: {wrong}"


def options():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, help="the escurel binary to drive")
    parser.add_argument("--cache", default=str(cache / "escurel/clients"))
    parser.add_argument("--filter", default="", help="only checks whose name contains this")
    return parser.parse_args()


def main():
    chosen = options()
    binary = str(pathlib.Path(chosen.binary).resolve())
    count = {"ok": 0, "FAIL": 0, "SKIP": 0}
    with tempfile.TemporaryDirectory(prefix="escurel-clients-") as scratch:
        bench = Bench(binary, chosen.cache, scratch)
        try:
            for name, check in checks():
                if chosen.filter not in name:
                    continue
                begun = time.monotonic()
                word, why = outcome(check, bench)
                count[word] += 1
                print(f"{name} ... {word} ({time.monotonic() - begun:.1f} s)", flush=True)
                if why:
                    print("    " + why.replace("\n", "\n    "), flush=True)
        finally:
            bench.stop()
    print(f"clients: {count['ok']} passed, {count['FAIL']} failed, {count['SKIP']} skipped")
    return 1 if count["FAIL"] else 0


sys.exit(main())

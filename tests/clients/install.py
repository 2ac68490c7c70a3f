"""Installs the clients outside the checkout, once per lock file.

Each installation lives in a folder named by the hash of what it was made from,
so a changed lock file makes a new one and a warm run only looks for a marker.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MARKER = ".complete"
INSTALL_SECONDS = 900


class Absent(Exception):
    """A tool or package that this machine does not have."""


def python_env(cache, requirements):
    """The interpreter of a virtual environment with these requirements."""
    lock = (HERE / requirements).read_bytes()
    home = home_for(cache, requirements.removesuffix(".txt"), lock + sys.version.encode())
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (home / MARKER).exists():
        begin(home)
        run([sys.executable, "-m", "venv", str(home)], "python3's venv module (Debian: python3-venv)")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "-r", str(HERE / requirements)], requirements)
        (home / MARKER).touch()
    return str(python)


def node_env(cache, here=HERE, oldest=22):
    """The node program and a folder in which the JavaScript clients of `here` can run."""
    lock = (here / "package-lock.json").read_bytes()
    home = home_for(cache, "node", lock)
    if not (home / MARKER).exists():
        npm = shutil.which("npm")
        if not npm:
            raise Absent("npm is not installed")
        begin(home)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(here / name, home / name)
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        # Not `ci`: it refuses a lock file in which an optional package for
        # another system could not be recorded.
        run([npm, "install", *flags], "the npm packages", cwd=home)
        (home / MARKER).touch()
    for script in [*here.glob("*.mjs"), *here.glob("*.json")]:
        shutil.copy(script, home / script.name)
    return node_program(home, oldest), home


def node_program(home, oldest):
    """The one that came with the packages, else a recent one of the machine."""
    for own in home.glob("node_modules/node-*/bin/node"):
        return str(own)
    node = shutil.which("node")
    if node:
        version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
        if int(version.strip().lstrip("v").split(".")[0] or 0) >= oldest:
            return node
    raise Absent(f"node {oldest} or newer is not installed")


def home_for(cache, kind, content):
    return pathlib.Path(cache) / f"{kind}-{hashlib.sha256(content).hexdigest()[:12]}"


def begin(home):
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)


def run(command, what, cwd=None):
    print(f"installing {what} ...", flush=True)
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise Absent(f"{what} could not be installed within {INSTALL_SECONDS} s") from late
    if done.returncode != 0:
        raise Absent(f"{what} could not be installed: {reason(done)}")


def reason(done):
    """The last words of pip, the first of npm: 300 letters hold either."""
    text = " ".join((done.stderr or done.stdout).split())
    return text if len(text) <= 300 else f"{text[:200]} ... {text[-100:]}"

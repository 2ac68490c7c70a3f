"""What every client must see. Shared by the Python clients.

A client hands over plain values, so that each one's own types stay its own.
"""

import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = json.loads((HERE / "expected-tools.json").read_text())
KNOWN = json.loads((HERE / "known.json").read_text())


def fail(message):
    """Ends at once: unwinding through a client's tasks would bury the message."""
    print(f"wrong: {message}", file=sys.stderr, flush=True)
    os._exit(1)


def tools(names):
    """The names as listed, in any order, none twice."""
    if sorted(names) != sorted(TOOLS):
        missing, more = set(TOOLS) - set(names), set(names) - set(TOOLS)
        fail(f"tools differ: missing {sorted(missing)}, not expected {sorted(more)}, {len(names)} in all")


def answer(call, is_error, texts, structured):
    """A success whose text and structured content say the same."""
    name = call["tool"]
    if is_error:
        fail(f"{name} refused: {texts}")
    if not texts:
        fail(f"{name} has no text content")
    if not isinstance(structured, dict):
        fail(f"{name} has no structured content")
    if json.loads(texts[0]) != structured:
        fail(f"{name}: text and structured content differ")
    if call["contains"] not in texts[0]:
        fail(f"{name} does not contain {call['contains']!r}: {texts[0][:300]}")


def refusal(is_error, texts):
    """A bad argument is a tool result that the model can read."""
    if not is_error or not texts or not texts[0]:
        fail(f"a bad argument was not refused with a text: {texts}")

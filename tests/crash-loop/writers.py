"""Who writes while the server is killed, and what they were told."""

import collections
import hashlib
import random
import threading

from kb import Dead, Lost, Refused

# So many of a page's latest texts may be brought back.
RECENT = 6
LINES = 12
PERSON = "person.md"
WORDS = 120
# The server's own faults; any other refusal is an answer like others.
FAULTS = ("internal", "io_error", "index_damaged", "journal_broken", "disk_full")


def digest(text):
    return hashlib.sha256(text.encode()).digest()


class Call:
    """A write with a key of its own, and the text that its page has after it."""

    def __init__(self, tool, text, arguments):
        self.tool, self.text, self.arguments = tool, text, arguments


class Page:
    """What its only writer knows of a page."""

    def __init__(self, name):
        self.path, self.uid = f"{name}.md", None
        # The text that stands; None: deleted, or never made.
        self.head = None
        # Version to digest of its text: all, and those since the last check.
        self.versions, self.fresh = {}, {}
        self.recent = collections.deque(maxlen=RECENT)
        # The call that got no answer.
        self.pending = None
        # Uid and versions of deleted pages that it stands in the place of.
        self.former = []

    def settle(self, answer):
        """Takes over what the pending call has done."""
        call, self.pending = self.pending, None
        if self.head is None and call.tool == "update_page":
            self.begin_anew()
        self.head, self.path = call.text, answer.get("page_id") or self.path
        if call.text is not None:
            self.know(answer["new_version"], call.text)

    def begin_anew(self):
        if self.uid and self.versions:
            self.former.append((self.uid, self.versions))
        self.uid, self.versions, self.fresh = None, {}, {}
        self.recent.clear()

    def know(self, version, text):
        self.versions[version] = self.fresh[version] = digest(text)
        self.recent.append((version, text))


class Log:
    """What was acknowledged of things that are not pages, and counts. Several write to it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts, self.refused = collections.Counter(), collections.Counter()
        # Calls without an answer.
        self.open = []
        # Event or message to its text; those since the last check; events that were taken out of the inbox.
        self.events, self.messages, self.assigned = {}, {}, set()
        self.fresh_events, self.fresh_messages = set(), set()

    def begin(self, call):
        with self.lock:
            self.open.append(call)

    def refuse(self, tool, code):
        with self.lock:
            self.refused[f"{tool}: {code}"] += 1

    def end(self, call, done):
        tool, arguments = call
        with self.lock:
            self.open.remove(call)
            if not done:
                return
            self.counts[tool] += 1
            if tool == "capture_event":
                self.events[arguments["event_id"]] = arguments["body"]
                self.fresh_events.add(arguments["event_id"])
            elif tool == "assign_event":
                self.assigned.add(arguments["event_id"])
                self.fresh_events.add(arguments["event_id"])
            elif tool == "append_message":
                message = (arguments["chat_group_id"], arguments["msg_id"])
                self.messages[message] = arguments["content"]
                self.fresh_messages.add(message)


class Client(threading.Thread):
    """Writes to its own pages, one call after the other, until the server is gone."""

    def __init__(self, door, name, seed, pages, log):
        super().__init__(daemon=True)
        self.door, self.stem, self.pages, self.log = door, f"m{seed}{name}x", pages, log
        self.group, self.dice, self.count = f"group-{name}", random.Random(f"{seed}{name}"), 0
        self.captured, self.failure = [], None
        deeds = {self.update: 5, self.edit: 5, self.restore: 2, self.delete: 1, self.move: 1}
        deeds |= {self.capture: 2, self.assign: 1, self.append: 2}
        self.deeds = [deed for deed, times in deeds.items() for _ in range(times)]

    def run(self):
        try:
            self.link = self.door()
            while True:
                self.dice.choice(self.deeds)(self.dice.choice(self.pages))
        except Dead:
            pass
        except Exception as error:  # noqa: BLE001 - told by whoever waits for the thread
            self.failure = error

    def mark(self):
        self.count += 1
        return f"{self.stem}{self.count}"

    def ask(self, tool, **arguments):
        """The answer, or None where the tool refused."""
        try:
            return self.link.call(tool, **arguments)
        except Refused as refused:
            if refused.code in FAULTS:
                raise Lost(str(refused)) from refused
            self.log.refuse(tool, refused.code)
            return None

    def write(self, page, tool, text, **arguments):
        arguments["idempotency_key"] = self.mark()
        page.pending = Call(tool, text, arguments)
        call = (tool, arguments)
        self.log.begin(call)
        answer = self.ask(tool, **arguments)
        done = bool(answer and answer["ok"])
        self.log.end(call, done)
        if done:
            page.settle(answer)
        page.pending = None

    def update(self, page):
        kept = (page.head or f"# {page.path}\n").splitlines()[-LINES:]
        words = f"{self.mark()} 🛶 {'words ' * self.dice.randrange(1, WORDS)}"
        text = "\n".join([*kept, words, ""])
        self.write(page, "update_page", text, page_id=page.path, content=text)
        if page.uid is None and page.head is not None:
            page.uid = self.link.call("expand", page_id=page.path)["page"]["uid"]

    def edit(self, page):
        if page.head is None:
            return
        found = self.dice.choice(page.head.splitlines())
        if found and page.head.count(found) == 1:
            # With what was found in it: carried out twice, it would show.
            content = f"{found}, {self.mark()}"
            text = page.head.replace(found, content)
            self.write(page, "edit_page", text, page_id=page.path, find=found, content=content)

    def delete(self, page):
        if page.head is not None:
            self.write(page, "delete_page", None, page_id=page.path)

    def restore(self, page):
        if page.recent:
            version, text = self.dice.choice(page.recent)
            self.write(page, "restore_page", text, page_id=page.uid or page.path, version=version)

    def move(self, page):
        if page.head is not None:
            self.write(page, "move_page", page.head, page_id=page.path, to=f"{self.mark()}.md")

    def named(self, tool, **arguments):
        """A call that makes one thing, however often it is repeated."""
        call = (tool, arguments)
        self.log.begin(call)
        answer = self.ask(tool, **arguments)
        self.log.end(call, answer is not None)
        return answer

    def capture(self, _page):
        name = self.mark()
        if self.named("capture_event", event_id=name, title=name, body=f"{name} 🛶"):
            self.captured.append(name)

    def assign(self, page):
        if self.captured and page.head is not None and page.uid:
            name = self.captured.pop()
            self.named("assign_event", event_id=name, instance_page_id=page.uid, idempotency_key=self.mark())

    def append(self, _page):
        name = self.mark()
        self.named("append_message", chat_group_id=self.group, msg_id=name, content=f"{name} 🛶")


def person(kb, dice, stop):
    """Saves a page in an editor now and then, in one of the two ways in which editors save."""
    file, beside, number = kb.folder / PERSON, kb.home / "saving", 0
    while not stop.is_set():
        number += 1
        text = f"# Person\n\nsaved {number} {dice.random()} 🛶\n"
        if dice.random() < 0.3:
            file.write_text(text)
        else:
            beside.write_text(text)
            beside.replace(file)
        stop.wait(dice.uniform(0.0, 0.1))

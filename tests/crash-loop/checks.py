"""What has to hold after a restart."""

import time

from kb import Lost, Refused
from writers import PERSON, digest

# Older versions of a page that are looked at again each time.
SAMPLE = 3
# Entries of a history in one answer.
MOST = 1000
PERSON_SECONDS = 20


def clip(text):
    return None if text is None else f"{text[:60]!r}...{text[-60:]!r} ({len(text)})"


def check_page(kb, page, dice, log):
    allowed = [page.head]
    if page.pending:
        # Repeated by half of those who got no answer; with its key, it is carried out once.
        allowed = repeat(kb, page, log) if dice.random() < 0.5 else [page.head, page.pending.text]
    shown = kb.page(page.uid) if page.uid else None
    shown = shown or kb.page(page.path)
    head = shown and shown["body"]
    if head not in allowed:
        raise Lost(f"{page.path} says {clip(head)}, not one of {[clip(one) for one in allowed]}")
    page.pending, page.head = None, head
    if shown:
        stands(kb, page, shown)
    if page.uid:
        check_history(kb, page)
    older = dice.sample(sorted(page.versions), min(SAMPLE, len(page.versions)))
    check_versions(kb, page.uid, head is None, {version: page.versions[version] for version in {*page.fresh, *older}})
    page.fresh = {}


def repeat(kb, page, log):
    """The texts that may stand after the page's pending call was made again."""
    call = page.pending
    log.counts["repeated"] += 1
    try:
        answer = kb.api().call(call.tool, **call.arguments)
    except Refused as refused:
        if refused.code == "request_interrupted":
            return [call.text]
        raise Lost(f"{page.path}: repeated after the restart, {refused}") from refused
    if not answer["ok"]:
        raise Lost(f"{page.path}: repeated after the restart, {call.tool} is not ok: {answer['issues']}")
    page.settle(answer)
    return [page.head]


def stands(kb, page, shown):
    """Takes over what an unanswered call may have done, and looks at the file."""
    there = shown["page"]
    if page.uid and page.uid != there["uid"]:
        page.begin_anew()
    page.uid, page.path = there["uid"], there["page_id"]
    if there["version"] not in page.versions:
        page.know(there["version"], page.head)
    if page.head != (kb.folder / page.path).read_text():
        raise Lost(f"{page.path}: the file is not the text")


def check_history(kb, page):
    history = kb.read("page_history", page_id=page.uid, limit=min(MOST, 4 * len(page.fresh) + 20))
    if history is None:
        raise Lost(f"{page.path}: {page.uid} has no history")
    entries = history["versions"]
    # A rename and a deletion are entries with the version that they found.
    moved = [one["version"] == old["version"] and one["path"] != old["path"] for one, old in zip(entries, entries[1:])]
    made = [one["version"] for one, renamed in zip(entries, [*moved, False]) if not (one["deleted"] or renamed)]
    if len(set(made)) != len(made):
        raise Lost(f"{page.path}: versions are there twice: {made}")
    missing = set(page.fresh) - set(made)
    if missing:
        raise Lost(f"{page.path}: acknowledged and not in the history: {sorted(missing)}, only {made}")


def check_versions(kb, uid, deleted, versions):
    """Each version has its text. A deleted page has only moments to ask for, of the newest versions."""
    if not versions:
        return
    entries = kb.read("page_history", page_id=uid, limit=MOST)["versions"] if deleted else []
    moments = {entry["version"]: entry["at"] for entry in reversed(entries) if not entry["deleted"]}
    for version, wanted in versions.items():
        if deleted and version not in moments and len(entries) == MOST:
            continue
        shown = kb.page(uid, **({"as_of": moments.get(version)} if deleted else {"version": version}))
        if shown is None or digest(shown["body"]) != wanted:
            raise Lost(f"{uid}: {version} was acknowledged and says {clip(shown and shown['body'])}")


def check_all_versions(kb, pages):
    for page in pages:
        check_versions(kb, page.uid, page.head is None, page.versions)
        for uid, versions in page.former:
            check_versions(kb, uid, True, versions)


def repeat_named(kb, log):
    """Who got no answer asks again; afterwards it is there once. Calls on pages are the pages' matter."""
    for call in list(log.open):
        tool, arguments = call
        if tool in ("capture_event", "append_message", "assign_event"):
            try:
                kb.api().call(tool, **arguments)
            except Refused as refused:
                # Recorded before the kill: nobody else takes this event.
                if refused.code != "request_interrupted":
                    raise Lost(f"repeated after the restart, {refused}") from refused
            log.end(call, True)
    log.open.clear()


def check_events(kb, log, everything):
    wanted = set(log.events if everything else log.fresh_events)
    waiting = wanted - log.assigned
    found = listed(kb, "list_inbox", "events", "event_id", waiting, everything)
    compare(found, {name: log.events[name] for name in waiting}, "body", "the inbox")
    back = log.assigned.intersection(found)
    if back:
        raise Lost(f"taken out of the inbox and there again: {sorted(back)}")
    for name in wanted & log.assigned:
        # What there is already is answered as it is.
        event = kb.read("capture_event", event_id=name)
        if event["status"] != "processed" or event["body"] != log.events[name]:
            raise Lost(f"{name} was assigned and is {event}")
    log.fresh_events = set()


def check_messages(kb, log, everything):
    wanted = set(log.messages if everything else log.fresh_messages)
    for group in {group for group, _ in wanted}:
        names = {name for other, name in wanted if other == group}
        found = listed(kb, "list_messages", "messages", "msg_id", names, everything, chat_group_id=group, direction="desc")
        compare(found, {name: log.messages[group, name] for name in names}, "content", group)
    log.fresh_messages = set()


def listed(kb, tool, key, name, wanted, everything, **arguments):
    """What is listed, newest first, until all that is wanted was seen; with `everything` to the end."""
    found, more = {}, {}
    while everything or not wanted <= found.keys():
        answer = kb.read(tool, limit=500, **arguments, **more)
        for one in answer[key]:
            if one[name] in found:
                raise Lost(f"{tool}: {one[name]} is there twice")
            found[one[name]] = one
        if not answer.get("next_cursor"):
            break
        more = {"cursor": answer["next_cursor"]}
    return found


def compare(found, wanted, key, where):
    missing = wanted.keys() - found.keys()
    if missing:
        raise Lost(f"{where}: acknowledged and gone: {sorted(missing)}")
    for name, text in wanted.items():
        if found[name][key] != text:
            raise Lost(f"{where}: {name} says {clip(found[name][key])}, not {clip(text)}")


def check_person(kb):
    """What a person saved last is the text, be it that the server was dead then."""
    wanted = (kb.folder / PERSON).read_text()
    end = time.monotonic() + PERSON_SECONDS
    while True:
        shown = kb.page(PERSON)
        if shown and shown["body"] == wanted:
            return
        if time.monotonic() > end:
            raise Lost(f"{PERSON}: the file is {clip(wanted)}, the page {clip(shown and shown['body'])}")
        time.sleep(0.05)

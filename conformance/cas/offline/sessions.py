"""Section sessions: what was asked for at creation, shown afterwards, and gone in the end."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from conformance.cas.examination import error_in
from conformance.cas.offline.view import CasView, about_the_request
from conformance.cas.sessions import steady
from conformance.cas.snapshots import DEFAULT_NAME
from conformance.cas.variables import LARGEST_VALUE, MOST
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import rule

Found = Iterator[Exchange | str]
GIVEN = ("title", "metadata", "vault_ids", "memory_store_ids")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
RESERVED = ("SERVER_ENDPOINT", "USER_ID", "WORK_DIR")
PREFIXES = ("CAW_", "QODER_")
LONGEST_KEY, LONGEST_VALUE, MOST_KEYS = 64, 512, 16


def _created(view: CasView) -> Iterator[tuple[Exchange, dict[str, Any], dict[str, Any]]]:
    """Every session that was made well-formed: what was sent and what was shown."""
    for item, body in view.looks:
        if item.path == "/sessions" and isinstance(item.sent, dict):
            yield item, item.sent, body


def _attempts(view: CasView) -> Iterator[tuple[Exchange, dict[str, Any]]]:
    for item, _ in view.recording.of("POST /sessions"):
        if about_the_request(item) and isinstance(item.sent, dict):
            yield item, item.sent


@rule("CAS-SESS-01", needs="session that was created")
def what_is_given_comes_back(view: CasView) -> Found:
    """Title, metadata and attachments are those of the request, and empty where it names none."""
    for item, sent, body in _created(view):
        yield item
        for name in ("vault_ids", "memory_store_ids", "metadata"):
            expect.equal(name, sent.get(name) or type(body[name])(), body[name])
        if isinstance(sent.get("title"), str):
            expect.equal("title", sent["title"], body["title"])
        state = (body["status"], body["turn_status"], body["archived_at"])
        expect.equal("status, turn_status and archived_at", ("idle", "idle", None), state)
        expect.equal("the id of the snapshot", body["agent_id"], body["agent"]["id"])
        if not sent.get("resources"):
            expect.equal("resources", [], body["resources"])


@rule("CAS-SESS-02", needs="session that was shown more than once")
def every_answer_is_the_session(view: CasView) -> Found:
    """From one look to the next a session changes only by what was asked to change."""
    last: dict[str, tuple[Exchange, Any]] = {}
    for item, body in view.looks:
        before = last.get(body["id"])
        if before is not None and not _touched(view, body["id"], before[0], item):
            yield item
            changed = set(GIVEN) | {"archived_at", "resources"} if item.method == "POST" else set()
            shown = [{name: it[name] for name in steady(it) if name not in changed} for it in (before[1], body)]
            expect.equal(f"the session as {before[0].place} showed it", shown[0], shown[1])
        last[body["id"]] = (item, body)


def _touched(view: CasView, session: str, first: Exchange, second: Exchange) -> bool:
    """Whether something else may have changed the session between the two."""
    below = f"/sessions/{session}"
    others = [item for item in view.recording.exchanges if item.path.startswith(below) and item.method != "GET"]
    between = [it for it in others if first.order < it.order < second.ended and it is not second]
    return bool(between) or first.ended > second.order


@rule("CAS-SESS-03", needs="look at a session whose state a stream shows")
def a_session_says_whether_it_runs(view: CasView) -> Found:
    """While a turn runs status and turn_status are running; before and after both are idle."""
    for item, body in view.looks:
        state = view.known_state(body["id"], item.order, item.ended) if item.method == "GET" else None
        if state is not None:
            yield item
            expect.equal("status and turn_status", [state, state], [body["status"], body["turn_status"]])


@rule("CAS-SESS-04", needs="session that was created for a named agent")
def the_agent_is_the_one_named(view: CasView) -> Found:
    """agent is an id or an object with one; agent_id is that id, and a version that is named is caught."""
    for item, sent, body in _created(view):
        wanted = sent.get("agent") if isinstance(sent.get("agent"), str) else mapping(sent.get("agent")).get("id")
        if wanted:
            yield item
            expect.equal("agent_id", wanted, body["agent_id"])
            version = mapping(sent.get("agent")).get("version")
            expect.that(not version or body["agent"].get("version") == version, f"version {version}", body["agent"])


@rule("CAS-SESS-04", needs="session asked for without an agent, or refused for it")
def an_unknown_agent_is_refused(view: CasView) -> Found:
    """No agent at all is a 404 or 400."""
    for item, sent in _attempts(view):
        if not sent.get("agent") or (mapping(sent["agent"]) and "id" not in sent["agent"]):
            yield item
            error_in(expect.status(item.reply, 400, 404))


@rule("CAS-SESS-04", needs="session that was shown after its agent was updated")
def the_snapshot_does_not_change(view: CasView) -> Found:
    """The snapshot of the agent is the same whenever the session is shown."""
    first: dict[str, Any] = {}
    for item, body in view.looks:
        before = first.setdefault(body["id"], body["agent"])
        if before is not body["agent"]:
            yield item
            expect.equal("the snapshot", before, body["agent"])


@rule("CAS-SESS-05", needs="session in a named environment")
def the_environment_is_the_one_named(view: CasView) -> Found:
    """environment_id and environment both take an id, and it comes back."""
    for item, sent, body in _created(view):
        wanted = sent.get("environment_id") or sent.get("environment")
        if isinstance(wanted, str):
            yield item
            expect.equal("environment_id", wanted, body["environment_id"])


@rule("CAS-SESS-05", needs="session with an environment given inline")
def an_environment_needs_a_config(view: CasView) -> Found:
    """An inline environment without config is a 400; one without a name is called Session Environment."""
    looks = [item for item, _ in view.recording.of("GET /environments/{}") if item.is_done]
    shown = {mapping(item.json).get("id"): item.json for item in looks}
    for item, sent in _attempts(view):
        inline = sent.get("environment")
        if isinstance(inline, dict):
            yield item
            if "config" not in inline:
                error_in(expect.status(item.reply, 400))
            made = shown.get(mapping(item.json).get("environment_id"))
            if made is not None and item.status == 201:
                expect.equal("its name", str(inline.get("name") or "").strip() or DEFAULT_NAME, made.get("name"))


@rule("CAS-SESS-06", needs="session with environment variables")
def variables_come_back_as_an_object(view: CasView) -> Found:
    """A string of KEY=VALUE comes back as the object it spells."""
    for item, sent, body in _created(view):
        given = sent.get("environment_variables")
        if isinstance(given, str) and given and len(given) < LARGEST_VALUE:
            yield item
            entries = [entry.strip() for entry in re.split(r"[;\n]", given) if entry.strip()]
            wanted = {name: value for name, _, value in (entry.partition("=") for entry in entries)}
            expect.equal("environment_variables", wanted, body["environment_variables"])


@rule("CAS-SESS-06", needs="session with environment variables that break a rule")
def wrong_variables_are_refused(view: CasView) -> Found:
    """A wrong or reserved name, an entry without an equals sign, or too many of them, is a 400 naming the variable."""
    for item, sent in _attempts(view):
        given = sent.get("environment_variables")
        entries = [it.strip() for it in re.split(r"[;\n]", given) if it.strip()] if isinstance(given, str) else []
        wrong = [entry.partition("=")[0] for entry in entries if _is_wrong(entry)]
        if wrong or len(entries) > MOST:
            yield item
            error = error_in(expect.status(item.reply, 400))["error"]
            words = f"{error['message']} {error.get('param') or ''}"
            expect.that(not wrong or any(name in words for name in wrong), f"a refusal that names {wrong}", error)


def _is_wrong(entry: str) -> bool:
    name, sign, _ = entry.partition("=")
    return not sign or not NAME.match(name) or name in RESERVED or name.startswith(PREFIXES)


@rule("CAS-SESS-07", needs="session with a file")
def files_are_mounted_below_data(view: CasView) -> Found:
    """A file comes back with its normalised path, which is the given one below /data/, or /data/{file_id}."""
    for item, sent, body in _created(view):
        given = [it for it in mappings(sent.get("resources")) if it.get("type", "file") == "file"]
        shown = [it for it in body["resources"] if it.get("type") == "file"]
        if given:
            yield item
            wanted = [_path(it) for it in given]
            expect.equal("the paths of the files", wanted, [it.get("path") for it in shown])


def _path(resource: dict[str, Any]) -> str:
    path = str(resource.get("path") or resource.get("mount_path") or resource.get("file_id"))
    return posixpath.normpath(posixpath.join("/data", path))


@rule("CAS-SESS-07", needs="file with a path that is not allowed")
def files_do_not_leave_data(view: CasView) -> Found:
    """A path that leaves /data/, is too long, or differs from mount_path is a 400."""
    for item, sent in _attempts(view):
        for it in mappings(sent.get("resources")):
            path, alias = it.get("path"), it.get("mount_path")
            is_two = path is not None and alias is not None and path != alias
            is_away = it.get("type", "file") == "file" and not _path(it).startswith("/data/")
            if is_two or is_away or len(_path(it)) > 2 * LONGEST_VALUE:
                yield item
                error_in(expect.status(item.reply, 400))


@rule("CAS-SESS-08", needs="session with a repository")
def repositories_need_a_url(view: CasView) -> Found:
    """A github_repository without a url is a 400; its authorization_token never comes back."""
    for item, sent in _attempts(view):
        for it in mappings(sent.get("resources")):
            if it.get("type") == "github_repository":
                yield item
                if not it.get("url"):
                    error_in(expect.status(item.reply, 400))
                token = str(it.get("authorization_token") or "")
                hidden = "authorization_token" not in item.reply.text and (not token or token not in item.reply.text)
                expect.that(hidden, "no authorization_token in the answer", item.reply.told)


@rule("CAS-SESS-09", needs="session with metadata beyond the limits")
def metadata_has_limits(view: CasView) -> Found:
    """More than 16 keys, a key of more than 64 or a value of more than 512 characters is a 400."""
    for item, sent in _attempts(view):
        given = mapping(sent.get("metadata"))
        long = any(len(name) > LONGEST_KEY or len(str(value)) > LONGEST_VALUE for name, value in given.items())
        if long or len(given) > MOST_KEYS:
            yield item
            error_in(expect.status(item.reply, 400))

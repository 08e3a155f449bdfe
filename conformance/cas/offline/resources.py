"""Section other resources: what was made is read, listed and gone; secrets stay; tools are those enabled."""

from collections.abc import Iterator
from typing import Any

from conformance.cas.examination import error_in
from conformance.cas.offline.view import CasView, about_the_request
from conformance.kit import expect
from conformance.offline.recording import Exchange, mapping, mappings
from conformance.offline.rule import Rule, rule

Found = Iterator[Exchange | str]
SHELVES = {
    "CAS-RES-01": ("/agents", ("name", "system", "description", "metadata")),
    "CAS-RES-05": ("/environments", ("name", "description", "metadata")),
    "CAS-RES-06": ("/files", ()),
    "CAS-RES-08": ("/vaults", ("display_name",)),
    "CAS-RES-09": ("/memory_stores", ("name", "description")),
}


def _kept(requirement: str, path: str, fields: tuple[str, ...]) -> Rule:
    def check(view: CasView) -> Found:
        for item, _ in view.recording.of(f"POST {path}"):
            sent, made = mapping(item.sent), mapping(item.json)
            if not item.is_done or "id" not in made:
                continue
            yield item
            given = {name: sent[name] for name in fields if name in sent}
            expect.equal("what was given", given, {name: made.get(name) for name in given})
            for read, _ in view.recording.of(f"GET {path}/{made['id']}"):
                if read.is_done and read.order > item.ended:
                    expect.equal("the id", made["id"], mapping(read.json).get("id"))

    check.__name__ = f"{path.strip('/')}_are_made_and_read"
    check.__doc__ = f"What POST {path} was given comes back, and is found under its id."
    return rule(requirement, needs=f"answer to POST {path}")(check)


def _gone(requirement: str, path: str) -> Rule:
    def check(view: CasView) -> Found:
        deleted = {name: item for item, (name,) in view.recording.of(f"DELETE {path}/{{}}") if item.is_done}
        for item, (name,) in view.recording.of(f"GET {path}/{{}}"):
            if name in deleted and deleted[name].ended < item.order and about_the_request(item):
                yield item
                error_in(expect.status(item.reply, 404))

    check.__name__ = f"deleted_{path.strip('/')}_are_gone"
    check.__doc__ = f"What was deleted under {path} is a 404."
    return rule(requirement, needs=f"look at something below {path} that was deleted")(check)


KEPT = tuple(_kept(requirement, *shelf) for requirement, shelf in SHELVES.items())
GONE = tuple(_gone("CAS-RES-03" if path == "/agents" else name, path) for name, (path, _) in SHELVES.items())


@rule("CAS-RES-02", needs="update of an agent")
def an_update_names_the_current_version(view: CasView) -> Found:
    """Naming the current version makes the next one; naming an older one is a 409."""
    current: dict[str, int] = {}
    touched = [*view.recording.of("POST /agents"), *view.recording.of("POST /agents/{}")]
    for item, names in sorted(touched, key=lambda pair: pair[0].order):
        body, sent = mapping(item.json), mapping(item.sent)
        name = names[0] if names else str(body.get("id"))
        known, given = current.get(name), sent.get("version")
        if names and known is not None and isinstance(given, int) and about_the_request(item):
            yield item
            if given < known:
                error_in(expect.status(item.reply, 409))
            elif item.is_done:
                expect.that(int(body.get("version", 0)) > known, "a new version", body.get("version"))
        if item.is_done and isinstance(body.get("version"), int):
            current[name] = body["version"]


@rule("CAS-RES-02", needs="look at an older version of an agent")
def older_versions_can_be_read(view: CasView) -> Found:
    """GET /agents/{id}?version=N is that version."""
    for item, _ in view.recording.of("GET /agents/{}"):
        wanted = item.param("version")
        if wanted and wanted.isdigit() and int(wanted) > 0 and item.is_done:
            yield item
            expect.equal("version", int(wanted), mapping(item.json).get("version"))


@rule("CAS-RES-03", needs="agent that was archived")
def an_agent_is_archived(view: CasView) -> Found:
    """An archived agent says when it was archived."""
    archived = {name: item for item, (name,) in view.recording.of("POST /agents/{}/archive") if item.is_done}
    for item, (name,) in view.recording.of("GET /agents/{}"):
        if name in archived and archived[name].ended < item.order and item.is_done:
            yield item
            expect.that(mapping(item.json).get("archived_at") is not None, "archived_at to be set", item.json)


def _policies(agent: dict[str, Any]) -> dict[str, str] | None:
    """What the agent may call, and how; None if its toolset cannot be told."""
    found: dict[str, str] = {}
    for tool in mappings(agent.get("tools")):
        if tool.get("type") == "custom":
            continue
        if not isinstance(tool.get("enabled_tools"), list):
            return None
        found |= {str(name): "always_allow" for name in tool["enabled_tools"]}
        for config in mappings(tool.get("configs")):
            policy = mapping(config.get("permission_policy")).get("type")
            if policy and config.get("name") in found:
                found[str(config["name"])] = str(policy)
    return found


@rule("CAS-RES-04", needs="call of a server tool by an agent that was made in the recording")
def policies_are_obeyed(view: CasView) -> Found:
    """Only enabled tools run, and each call is evaluated as its policy says."""
    made_agents = [item for item, _ in view.recording.of("POST /agents") if item.is_done]
    agents = {str(mapping(item.json).get("id")): mapping(item.sent) for item in made_agents}
    known = {name for agent in agents.values() for name in _policies(agent) or {}}
    evaluated = {"always_allow": "allow", "always_ask": "ask", "always_deny": "deny"}
    for item, run, stream in view.runs:
        made = view.created.get(stream.session)
        policies = _policies(agents.get(str(mapping(made.json).get("agent_id")), {})) if made is not None else None
        if policies is None or made is None or mapping(made.json).get("agent_id") not in agents:
            continue
        for call in [it for it in run.root if it["type"] == "agent.tool_use"]:
            yield item
            policy = policies.get(call["name"], "always_deny" if call["name"] in known else None)
            wanted = evaluated.get(policy or "", call["evaluated_permission"])
            expect.equal(f"evaluated_permission of {call['name']}", wanted, call["evaluated_permission"])


@rule("CAS-RES-08", needs="credential")
def secrets_never_come_back(view: CasView) -> Found:
    """No answer below the vault has the secret of a credential."""
    for item, (vault,) in view.recording.of("POST /vaults/{}/credentials"):
        sent = mapping(item.sent)
        secrets = {str(it) for it in (sent.get("access_token"), mapping(sent.get("auth")).get("token")) if it}
        for it in view.recording.exchanges:
            if secrets and it.path.startswith(f"/vaults/{vault}") and it.order >= item.order and it.status:
                yield it
                expect.that(not any(secret in it.reply.text for secret in secrets), "no secret", it.reply.told)


@rule("CAS-RES-09", needs="memory that was written")
def memories_are_kept(view: CasView) -> Found:
    """A memory has the path and content it was given."""
    for item, _ in view.recording.of("POST /memory_stores/{}/memories"):
        if item.is_done:
            yield item
            name = mapping(item.json).get("id")
            for read, names in view.recording.of("GET /memory_stores/{}/memories/{}"):
                if names[1] == name and read.is_done:
                    sent = mapping(item.sent)
                    seen = {it: mapping(read.json).get(it) for it in ("path", "content")}
                    expect.equal("path and content", {it: sent.get(it) for it in seen}, seen)

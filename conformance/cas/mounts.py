"""Section sessions, mounted resources: files, repositories, and the list of them."""

from typing import Any
from uuid import uuid4

from conformance.cas.examination import Body, CasExamination
from conformance.cas.requirement_owners import need
from conformance.kit import expect
from conformance.kit.case import requirement

LONGEST = 512
REPOSITORY = "https://github.com/example/repository"


def _long(length: int) -> str:
    """A path under /data/ of this length, in pieces of reasonable size."""
    path = "/data/" + "/".join(["x" * 99] * 6)
    return path[: length - 1].rstrip("/").ljust(length - 1, "y") + "z"


def _known(resources: list[Body]) -> list[Body]:
    """The resources by their documented fields."""
    names = ("type", "file_id", "path", "url", "mount_path")
    return [{name: item[name] for name in names if item.get(name) is not None} for item in resources]


async def _mounted(exam: CasExamination, resource: Body) -> Body:
    """The one resource of a session created with it."""
    talk = await exam.admit(resources=[resource])
    need("session", talk.session, "resources")
    expect.that(len(talk.session["resources"]) == 1, "one resource", talk.session["resources"])
    read = await talk.info()
    need("session", read, "resources")
    expect.equal("the resources from GET", _known(talk.session["resources"]), _known(read["resources"]))
    found: Body = talk.session["resources"][0]
    return found


async def _paths(exam: CasExamination, *cases: tuple[Body, str]) -> None:
    file = await exam.new_file()
    for given, wanted in cases:
        resource = await _mounted(exam, {"type": "file", "file_id": file["id"], **given})
        expect.equal(f"the path for {given}", wanted, resource["path"])


async def _refused(exam: CasExamination, *cases: Body) -> None:
    file = await exam.new_file()
    for given in cases:
        exam.refused(await exam.attempt(resources=[{"type": "file", "file_id": file["id"], **given}]), 400)


@requirement("CAS-SESS-07")
async def a_file_is_mounted_under_its_id(exam: CasExamination) -> None:
    """Without a type it is a file, without a path it is at /data/{file_id}."""
    file = await exam.new_file()
    resource = await _mounted(exam, {"file_id": file["id"]})
    seen = {name: resource[name] for name in ("type", "file_id", "path")}
    expect.equal("the resource", {"type": "file", "file_id": file["id"], "path": f"/data/{file['id']}"}, seen)


@requirement("CAS-SESS-07")
async def paths_are_normalised(exam: CasExamination) -> None:
    """Relative paths go under /data/, and what can be left out of a path is."""
    await _paths(
        exam,
        ({"path": "/data/in/here.txt"}, "/data/in/here.txt"),
        ({"path": "here.txt"}, "/data/here.txt"),
        ({"path": "in/./../here.txt"}, "/data/here.txt"),
        ({"path": "/data//in///here.txt"}, "/data/in/here.txt"),
    )


@requirement("CAS-SESS-07")
async def a_path_stays_under_data(exam: CasExamination) -> None:
    """A path that is not under /data/ once it is normalised is a 400."""
    outside = ("/etc/passwd", "../here.txt", "in/../../here.txt", "/data/../etc/passwd", "/database/here.txt")
    await _refused(exam, *({"path": path} for path in outside))


@requirement("CAS-SESS-07")
async def a_path_has_at_most_512_characters(exam: CasExamination) -> None:
    """512 characters are taken, 513 are a 400."""
    await _paths(exam, ({"path": _long(LONGEST)}, _long(LONGEST)))
    await _refused(exam, {"path": _long(LONGEST + 1)})


@requirement("CAS-SESS-07")
async def mount_path_is_an_alias(exam: CasExamination) -> None:
    """mount_path alone, or equal to path, is the path; with another path it is a 400."""
    await _paths(
        exam,
        ({"mount_path": "/data/a.txt"}, "/data/a.txt"),
        ({"mount_path": "a.txt"}, "/data/a.txt"),
        ({"path": "/data/a.txt", "mount_path": "/data/a.txt"}, "/data/a.txt"),
    )
    await _refused(exam, {"path": "/data/a.txt", "mount_path": "/data/b.txt"})


@requirement("CAS-SESS-07")
async def a_file_must_be_there(exam: CasExamination) -> None:
    """A file resource without file_id is a 400, one with an unknown file a 400 or 404."""
    exam.refused(await exam.attempt(resources=[{"type": "file", "path": "/data/a.txt"}]), 400)
    exam.refused(await exam.attempt(resources=[{"file_id": exam.stranger("file")}]), 400, 404)


@requirement("CAS-SESS-08")
async def a_repository_is_mounted(exam: CasExamination) -> None:
    """url comes back, and mount_path if given; without a url, or with words in its place, it is a 400."""
    for given in ({}, {"mount_path": "/workspace/repository"}):
        wanted = {"type": "github_repository", "url": REPOSITORY, **given}
        resource = await _mounted(exam, wanted)
        expect.equal("the resource", wanted, {name: resource.get(name) for name in wanted})
    for wrong in ({"mount_path": "/workspace/x"}, {"url": "not a url"}):
        exam.refused(await exam.attempt(resources=[{"type": "github_repository", **wrong}]), 400)


@requirement("CAS-SESS-08")
async def a_token_never_comes_back(exam: CasExamination) -> None:
    """The authorization_token is in no answer: not of creating, reading, listing, nor in the resources."""
    token, agent = f"secret-{uuid4().hex}", await exam.own_agent()
    resource = {"type": "github_repository", "url": REPOSITORY, "authorization_token": token}
    created = expect.status(await exam.attempt(resources=[resource]), 201)
    path = f"/sessions/{created.json()['id']}"
    read, updated = await exam.ask("GET", path), await exam.ask("POST", path, {"title": "x"})
    listed = await exam.ask("GET", "/sessions", query={"agent_id": agent})
    mounted = created.json()["resources"]
    for reply in (read, updated):
        session = exam.fitting("session", reply)
        need("session", session, "resources")
        expect.equal(f"the resources from {reply.asked}", _known(mounted), _known(session["resources"]))
    sessions = exam.fitting("sessions", listed)["data"]
    expect.equal("the sessions in the list", [created.json()["id"]], [session["id"] for session in sessions])
    expect.equal(f"the resources from {listed.asked}", _known(mounted), _known(sessions[0]["resources"]))
    for reply in (created, read, updated, listed, await exam.ask("GET", f"{path}/resources")):
        expect.that(token not in reply.text, f"the answer to {reply.asked} without the token", reply.text)


@requirement("CAS-SESS-14")
async def resources_come_and_go(exam: CasExamination) -> None:
    """A resource can be added, listed, read and removed, and the session shows it."""
    talk = await exam.open()
    file = await exam.new_file()
    body = {"type": "file", "file_id": file["id"], "path": "late.txt"}
    reply = expect.status(await exam.ask("POST", f"{talk.path}/resources", body), 200, 201)
    made = exam.fitting("resource", reply)
    expect.equal("the path", "/data/late.txt", made["path"])
    path = f"{talk.path}/resources/{made.get('id')}"
    expect.equal("the resource", _told(made), _told(await exam.have("resource", "GET", path)))
    listed: list[Any] = (await exam.have("resources", "GET", f"{talk.path}/resources"))["data"]
    expect.equal("the resources", [_told(made)], [_told(item) for item in listed])
    with expect.owned("CAS-SESS-07"):
        shown = (await talk.info())["resources"]
        expect.equal("the session's resources", [_told(made)], [_told(item) for item in shown])
    expect.status(await exam.ask("DELETE", path), 200, 204)
    exam.refused(await exam.ask("GET", path), 404)
    expect.equal("the session's resources", [], (await talk.info())["resources"])


def _told(resource: Body) -> Body:
    return {name: resource.get(name) for name in ("id", "type", "file_id", "path")}

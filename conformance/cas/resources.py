"""Section other resources: environments, files, models, vaults and memory stores."""

from typing import Any
from uuid import uuid4

from conformance.cas.examination import Body, CasExamination
from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.multipart import form

CONTENT = "Written by the examiners."


async def _listed(exam: CasExamination, schema: str, path: str, name: str) -> None:
    """Expect the list at the path to have the thing of this name, or more pages."""
    page = await exam.have(schema, "GET", path, query={"limit": "100"})
    names = [item.get("id") for item in page["data"] if isinstance(item, dict)]
    expect.that(name in names or page["has_more"], f"{name} in {path}", names)


async def _deleted(exam: CasExamination, path: str) -> None:
    """Expect the thing to be gone once it is deleted."""
    expect.status(await exam.ask("DELETE", path), 200, 204)
    exam.refused(await exam.ask("GET", path), 404)


@requirement("CAS-RES-05")
async def an_environment_lives(exam: CasExamination) -> None:
    """It is made, read, listed, updated and archived, and keeps its config."""
    config = exam.profile.environment_config
    body = {"name": "Mine", "description": "of the examiners", "config": config, "metadata": {"a": "1"}}
    made = await exam.make("environment", "/environments", body)
    path = f"/environments/{made['id']}"
    read = await exam.have("environment", "GET", path)
    for told in (made, read):
        seen = (told["name"], told["config"].get("type"), told.get("metadata"))
        expect.equal("name, type and metadata", ("Mine", config.get("type"), {"a": "1"}), seen)
    await _listed(exam, "environments", "/environments", made["id"])
    await exam.have("environment", "POST", path, {"name": "Ours"})
    expect.equal("the new name", "Ours", (await exam.have("environment", "GET", path))["name"])
    await exam.have("environment", "POST", f"{path}/archive", {})
    archived = await exam.have("environment", "GET", path)
    expect.that(archived.get("archived_at") is not None, "archived_at to be set", archived)


@requirement("CAS-RES-05")
async def an_environment_is_deleted(exam: CasExamination) -> None:
    """DELETE is answered with environment_deleted, and then it is a 404."""
    made = await exam.make("environment", "/environments", {"name": "Mine", "config": exam.profile.environment_config})
    path = f"/environments/{made['id']}"
    expect.equal("the id", made["id"], (await exam.have("environment_deleted", "DELETE", path))["id"])
    exam.refused(await exam.ask("GET", path), 404)


@requirement("CAS-RES-06")
async def a_file_lives(exam: CasExamination) -> None:
    """It is uploaded, read and listed; its content is behind a url that expires; it is deleted."""
    made = await exam.upload(CONTENT.encode())
    path = f"/files/{made['id']}"
    expect.equal("the id", made["id"], (await exam.have("file", "GET", path))["id"])
    await _listed(exam, "files", "/files", made["id"])
    await exam.have("file_content", "GET", f"{path}/content")
    await _deleted(exam, path)


@requirement("CAS-RES-06")
async def an_upload_needs_a_file(exam: CasExamination) -> None:
    """An upload that is not multipart, or without a file, is a 400."""
    exam.refused(await exam.ask("POST", "/files", {"file": CONTENT}), 400)
    empty = form({"other": CONTENT})
    exam.refused(await exam.ask("POST", "/files", body=empty.body, content_type=empty.content_type), 400)


@requirement("CAS-RES-07")
async def models_are_listed(exam: CasExamination) -> None:
    """Every model has an id, a name and whether it is enabled; ids are unique."""
    models = (await exam.have("models", "GET", "/models"))["data"]
    names = [model["id"] for model in models]
    expect.that(len(set(names)) == len(names), "models with ids of their own", names)


@requirement("CAS-RES-08")
async def a_vault_lives(exam: CasExamination) -> None:
    """It is made, read, listed, given to a session, and deleted."""
    made = await exam.make("vault", "/vaults", {"display_name": "Mine", "metadata": {}})
    path = f"/vaults/{made['id']}"
    expect.equal("the name", "Mine", (await exam.have("vault", "GET", path))["display_name"])
    await _listed(exam, "page", "/vaults", made["id"])
    talk = await exam.open(vault_ids=[made["id"]])
    expect.equal("vault_ids", [made["id"]], (await talk.info())["vault_ids"])
    await _deleted(exam, path)


def _credential(secret: str) -> Body:
    """A credential in both spellings of the product's documentation."""
    url = "https://mcp.example.com/mcp"
    flat = {"mcp_server_url": url, "protocol": "streamable_http", "type": "static_bearer", "access_token": secret}
    return flat | {"auth": {"type": "static_bearer", "mcp_server_url": url, "token": secret}, "display_name": "Mine"}


@requirement("CAS-RES-08")
async def secrets_never_come_back(exam: CasExamination) -> None:
    """A credential is made, listed and deleted, and no answer has its secret."""
    vault = await exam.make("vault", "/vaults", {"display_name": "Mine"})
    path, secret = f"/vaults/{vault['id']}", f"secret-{uuid4().hex}"
    created = expect.status(await exam.ask("POST", f"{path}/credentials", _credential(secret)), 200, 201)
    name = exam.fitting("credential", created)["id"]
    listed = expect.status(await exam.ask("GET", f"{path}/credentials"), 200)
    expect.that(name in listed.text, "the credential in the list", listed.text)
    for reply in (created, listed, await exam.ask("GET", path), await exam.ask("GET", f"{path}/credentials/{name}")):
        expect.that(secret not in reply.text, f"the answer to {reply.asked} without the secret", reply.text)
    expect.status(await exam.ask("DELETE", f"{path}/credentials/{name}"), 200, 204)
    rest = expect.status(await exam.ask("GET", f"{path}/credentials"), 200)
    expect.that(name not in rest.text, "the credential to be gone", rest.text)


@requirement("CAS-RES-09")
async def a_memory_store_lives(exam: CasExamination) -> None:
    """It is made, read, listed, given to a session, and deleted."""
    made = await exam.make("memory_store", "/memory_stores", {"name": "Mine", "description": "of the examiners"})
    path = f"/memory_stores/{made['id']}"
    expect.equal("the name", "Mine", (await exam.have("memory_store", "GET", path))["name"])
    await _listed(exam, "page", "/memory_stores", made["id"])
    talk = await exam.open(memory_store_ids=[made["id"]])
    expect.equal("memory_store_ids", [made["id"]], (await talk.info())["memory_store_ids"])
    await _deleted(exam, path)


@requirement("CAS-RES-09")
async def memories_come_and_go(exam: CasExamination) -> None:
    """A memory is written, read, listed and deleted."""
    store = await exam.make("memory_store", "/memory_stores", {"name": "Mine"})
    path = f"/memory_stores/{store['id']}/memories"
    body: dict[str, Any] = {"path": "/notes/one.md", "content": CONTENT}
    made = exam.fitting("memory", expect.status(await exam.ask("POST", path, body), 200, 201))
    read = await exam.have("memory", "GET", f"{path}/{made['id']}")
    expect.equal("path and content", (body["path"], CONTENT), (read.get("path"), read.get("content")))
    await _listed(exam, "page", path, made["id"])
    await _deleted(exam, f"{path}/{made['id']}")

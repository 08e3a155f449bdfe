"""ZenFlux's skills over HTTP: the library, copies of agents, files and uploads; every danger of an upload is tried."""

import stat
import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from tests.support.dialects.zenflux.client import API, Client, keyed, talking
from tests.support.skill_zips import FILES, SKILL, skill_text, with_entry, zipped

TIDY = {"skill_name": "tidy", "agent_id": "demo"}
MIB = 1024 * 1024


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    offer(tmp_path)
    async with talking(tmp_path, management={"skills": "skills"}) as client:
        yield client


def offer(folder: Path) -> None:
    """A skill of the operator, and a secret beside it."""
    for path, content in FILES.items():
        place = folder / "skills" / "offered" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    (folder / "skills" / "offered" / "scripts" / "link.py").symlink_to(folder / "secret.py")
    (folder / "secret.py").write_text("hidden words")
    (folder / "skills" / "offered" / "scripts-private").mkdir()
    (folder / "skills" / "offered" / "scripts-private" / "x.py").write_text("hidden words")


def form(content: bytes, name: str = "tidy.zip", **fields: str) -> aiohttp.FormData:
    made = aiohttp.FormData()
    for field, value in fields.items():
        made.add_field(field, value)
    made.add_field("file", BytesIO(content), filename=name, content_type="application/zip")
    return made


async def upload(client: Client, content: bytes | None = None, name: str = "tidy", status: int = 200) -> Any:
    return await client.call(
        "POST", f"/skills/upload?skill_name={name}", data=form(zipped() if content is None else content), status=status)


async def word_of(client: Client, method: str, path: str, **options: Any) -> tuple[int, str]:
    """The status of a refusal, and its word."""
    url = client.served.url(f"{API}{path}")
    async with client.served.http.request(method, url, headers=client.headers, **options) as answer:
        return answer.status, (await answer.json())["detail"]["code"]


async def names(client: Client, path: str = "/skills/global") -> list[str]:
    return [one["name"] for one in (await client.call("GET", path))["skills"]]


async def test_an_upload_is_in_the_library(client: Client) -> None:
    made = await upload(client)
    assert made == {"skill_name": "tidy", "description": "Cleans tables.", "agent_id": "global"}
    body = await client.call("GET", "/skills/global")
    assert (body["total"], [one["name"] for one in body["skills"]]) == (2, ["offered", "tidy"])
    assert body["skills"][1].items() >= {
        "description": "Cleans tables.", "agent_id": "global", "is_enabled": True, "status": "ready",
        "status_message": "", "is_registered": False, "skill_id": None}.items()
    assert set(body["skills"][1]) == {
        "name", "description", "agent_id", "is_enabled", "status", "status_message", "is_registered", "skill_id",
        "created_at"}


async def test_the_front_end_reads_beside_the_wrapper(client: Client) -> None:
    url = client.served.url(f"{API}/skills/global")
    async with client.served.http.get(url) as answer:
        body = await answer.json()
    assert body["skills"] == body["data"]["skills"]
    assert (body["success"], body["message"]) == (True, "success")


async def test_a_field_may_name_the_skill(client: Client) -> None:
    await client.call("POST", "/skills/upload", data=form(zipped(below="folder/"), skill_name="named"))
    assert "named" in await names(client)


@pytest.mark.parametrize("name", ["offered", "tidy"])
async def test_a_skill_and_its_files_are_shown(client: Client, name: str) -> None:
    await upload(client)
    shown = await client.call("GET", f"/skills/detail/{name}")
    assert shown.items() >= {
        "name": name, "description": "Cleans tables.", "priority": "medium", "preferred_for": ["tables"],
        "scripts": ["tidy.py"], "resources": ["deep/logo.bin", "template.csv"], "content": SKILL,
        "agent_id": "global", "is_enabled": True, "status": "ready", "required_env": [], "registered_at": None}.items()
    script = await client.call("GET", f"/skills/file/{name}/scripts/tidy.py?agent_id=global")
    assert script == {
        "skill_name": name, "file_type": "scripts", "file_name": "tidy.py", "content": "print('tidy')\n",
        "is_binary": False, "size": 14, "language": "python"}
    logo = await client.call("GET", f"/skills/file/{name}/resources/deep/logo.bin")
    assert (logo["content"], logo["is_binary"], logo["size"]) == (None, True, 3)


@pytest.mark.parametrize("name", ["offered", "tidy"])
@pytest.mark.parametrize("path", [
    "scripts/../SKILL.md", "scripts/%2e%2e/SKILL.md", "scripts/%2e%2e%2fSKILL.md", "scripts/..%2f..%2f..%2fsecret.py",
    "scripts/%2fetc%2fpasswd", "scripts/link.py", "scripts/nobody.py", "scripts/.", "scripts/a%5c..%5cb",
    "scripts/~root", "scripts/%00", "resources/deep", "scripts-private/x.py", "scripts/..%2fscripts-private%2fx.py",
    "SKILL.md/x",
])
async def test_no_path_leads_out(client: Client, name: str, path: str) -> None:
    await upload(client)
    url = URL(f"{client.served.url(API)}/skills/file/{name}/{path}", encoded=True)
    async with client.served.http.get(url) as answer:
        assert answer.status in (400, 404), await answer.text()
        assert "hidden words" not in await answer.text()


async def test_a_skill_is_installed_switched_edited_and_removed(client: Client) -> None:
    await upload(client)
    assert await client.call("POST", "/skills/install", json=TIDY) == TIDY
    [listed] = (await client.call("GET", "/skills/instance/demo"))["skills"]
    assert (listed["name"], listed["agent_id"], listed["is_enabled"]) == ("tidy", "demo", True)
    assert (await client.call("GET", "/agents/demo"))["skills"] == ["tidy"]
    for enabled in (False, False, True):
        said = await client.call("POST", "/skills/toggle", json={**TIDY, "enabled": enabled})
        assert said == {**TIDY, "enabled": enabled}
        [listed] = (await client.call("GET", "/skills/instance/demo"))["skills"]
        assert listed["is_enabled"] is enabled
    text = skill_text(description="Tidies.")
    assert await client.call("POST", "/skills/update_content", json={**TIDY, "content": text}) == TIDY
    shown = await client.call("GET", "/skills/detail/tidy?agent_id=demo")
    assert (shown["description"], shown["content"], shown["agent_id"]) == ("Tidies.", text, "demo")
    assert (await client.call("GET", "/skills/detail/tidy"))["description"] == "Cleans tables."
    assert (await client.call("GET", "/skills/file/tidy/scripts/tidy.py?agent_id=demo"))["language"] == "python"
    assert await client.call("POST", "/skills/uninstall", json=TIDY) == TIDY
    assert await names(client, "/skills/instance/demo") == []
    assert await names(client) == ["offered", "tidy"]


async def test_ones_own_upload_is_edited_and_removed(client: Client) -> None:
    await upload(client)
    own = {"skill_name": "tidy", "agent_id": "global"}
    await client.call("POST", "/skills/update_content", json={**own, "content": skill_text(description="Tidies.")})
    assert (await client.call("GET", "/skills/detail/tidy"))["description"] == "Tidies."
    await client.call("POST", "/skills/uninstall", json=own)
    assert await names(client) == ["offered"]
    theirs = {"skill_name": "offered", "agent_id": "global"}
    assert await word_of(client, "POST", "/skills/uninstall", json=theirs) == (403, "FORBIDDEN")
    changed = {**theirs, "content": SKILL}
    assert await word_of(client, "POST", "/skills/update_content", json=changed) == (403, "FORBIDDEN")
    wrong = {**theirs, "content": "x"}
    assert await word_of(client, "POST", "/skills/update_content", json=wrong) == (400, "VALIDATION_FAILED")


async def test_a_deleted_agent_takes_its_skills_along(client: Client) -> None:
    for _ in range(2):
        await client.call("POST", "/agents", json={"agent_id": "7tutor", "name": "Tutor", "prompt": "You teach."})
        await client.call("POST", "/skills/install", json={"skill_name": "offered", "agent_id": "7tutor"})
        assert await names(client, "/skills/instance/7tutor") == ["offered"]
        await client.call("DELETE", "/agents/7tutor")
        assert await word_of(client, "GET", "/skills/instance/7tutor") == (404, "AGENT_NOT_FOUND")


async def test_what_is_not_there_is_refused_with_its_word(client: Client) -> None:
    await client.call("POST", "/skills/install", json={"skill_name": "offered", "agent_id": "demo"})
    for method, path, body, refusal in (
        ("POST", "/skills/install", {"skill_name": "nobody", "agent_id": "demo"}, (404, "SKILL_NOT_FOUND")),
        ("POST", "/skills/install", {"skill_name": "offered", "agent_id": "nobody"}, (404, "AGENT_NOT_FOUND")),
        ("POST", "/skills/install", {"skill_name": "offered", "agent_id": "demo"}, (409, "SKILL_EXISTS")),
        ("POST", "/skills/install", {"skill_name": "../x", "agent_id": "demo"}, (400, "VALIDATION_ERROR")),
        ("POST", "/skills/install", {"skill_name": "x", "agent_id": "../demo"}, (400, "VALIDATION_ERROR")),
        ("POST", "/skills/install", {}, (400, "VALIDATION_ERROR")),
        ("POST", "/skills/uninstall", TIDY, (404, "SKILL_NOT_FOUND")),
        ("POST", "/skills/toggle", TIDY, (400, "VALIDATION_ERROR")),
        ("POST", "/skills/toggle", {**TIDY, "enabled": True}, (404, "SKILL_NOT_FOUND")),
        ("POST", "/skills/update_content", {**TIDY, "content": SKILL}, (404, "SKILL_NOT_FOUND")),
        ("POST", "/skills/update_content", {**TIDY, "content": "#"}, (400, "VALIDATION_FAILED")),
        ("POST", "/skills/update_content", {**TIDY, "content": SKILL + "x" * 300_000}, (413, "TOO_LARGE")),
        ("GET", "/skills/instance/nobody", None, (404, "AGENT_NOT_FOUND")),
        ("GET", "/skills/instance/..%2fdemo", None, (404, "AGENT_NOT_FOUND")),
        ("GET", "/skills/detail/nobody", None, (404, "SKILL_NOT_FOUND")),
        ("GET", "/skills/detail/tidy?agent_id=nobody", None, (404, "AGENT_NOT_FOUND")),
        ("GET", "/skills/detail/tidy?agent_id=demo", None, (404, "SKILL_NOT_FOUND")),
        ("GET", "/skills/file/offered/other/x", None, (400, "INVALID_FILE_TYPE")),
        ("GET", "/skills/file/offered/scripts/x", None, (404, "FILE_NOT_FOUND")),
        ("GET", "/skills/file/nobody/scripts/x", None, (404, "SKILL_NOT_FOUND")),
        ("GET", "/skills/file/offered/scripts/..%2fx", None, (400, "INVALID_PATH")),
    ):
        assert await word_of(client, method, path, json=body) == refusal, (path, body)


def link() -> bytes:
    entry = zipfile.ZipInfo("resources/passwd")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return with_entry(entry, b"/etc/passwd")


def encrypted() -> bytes:
    content = bytearray(zipped({"SKILL.md": SKILL.encode()}))
    content[content.index(b"PK\1\2") + 8] |= 1
    return bytes(content)


def odd() -> bytes:
    entry = zipfile.ZipInfo("resources/odd")
    entry.compress_type = zipfile.ZIP_LZMA
    return with_entry(entry)


DANGERS = {
    "no zip": (b"no zip", 400, "INVALID_ZIP"),
    "cut": (zipped()[:200], 400, "INVALID_ZIP"),
    "a link": (link(), 400, "INVALID_ZIP"),
    "encrypted": (encrypted(), 400, "INVALID_ZIP"),
    "another compression": (odd(), 400, "INVALID_ZIP"),
    "the folder above": (zipped({**FILES, "../x": b"x"}), 400, "INVALID_PATH"),
    "an absolute path": (zipped({**FILES, "/etc/x": b"x"}), 400, "INVALID_PATH"),
    "no skill": (zipped({"readme.md": b""}), 400, "INVALID_STRUCTURE"),
    "no front matter": (zipped({"SKILL.md": b"# no front matter"}), 400, "VALIDATION_FAILED"),
    "the name of a vendor": (zipped({"SKILL.md": skill_text("claude-tidy").encode()}), 400, "VALIDATION_FAILED"),
    "tags": (zipped({"SKILL.md": skill_text(description="<b>x</b>").encode()}), 400, "VALIDATION_FAILED"),
    "a bomb": (zipped({**FILES, "resources/bomb": b"\0" * 9 * MIB}), 413, "TOO_LARGE"),
    "many entries": (zipped({**FILES, **{f"resources/{number}": b"" for number in range(200)}}), 413, "TOO_LARGE"),
    "many bytes": (b"\0" * (8 * MIB + 1), 413, "TOO_LARGE"),
}


@pytest.mark.parametrize("danger", DANGERS)
async def test_a_dangerous_upload_is_refused_and_leaves_nothing(
    client: Client, danger: str,
) -> None:
    content, status, word = DANGERS[danger]
    assert await word_of(client, "POST", "/skills/upload?skill_name=tidy", data=form(content)) == (status, word)
    assert await names(client) == ["offered"]
    resources = client.served.gateway.resources
    for kind in ("skill", "skill_files"):
        assert await resources.list(kind, "") == []
    await upload(client)


async def test_an_upload_needs_a_name_and_one_zip(client: Client) -> None:
    for path, data, refusal in (
        ("?skill_name=tidy", form(zipped(), "tidy.tar"), (400, "INVALID_ZIP")),
        ("?skill_name=..%2fx", form(zipped()), (400, "VALIDATION_ERROR")),
        ("", form(zipped()), (400, "VALIDATION_ERROR")),
        ("?skill_name=offered", form(zipped()), (409, "SKILL_EXISTS")),
        ("?skill_name=tidy", {"other": "x"}, (400, "VALIDATION_ERROR")),
    ):
        assert await word_of(client, "POST", f"/skills/upload{path}", data=data) == refusal
    two = form(zipped())
    two.add_field("file", BytesIO(zipped()), filename="b.zip")
    assert await word_of(client, "POST", "/skills/upload?skill_name=tidy", data=two) == (400, "INVALID_ZIP")


async def test_skills_are_each_users_own(tmp_path: Path) -> None:
    async with talking(tmp_path, auth="keys") as server:
        ann, bob = await keyed(server, "ann"), await keyed(server, "bob")
        await upload(ann)
        await ann.call("POST", "/skills/install", json=TIDY)
        assert await names(bob) == await names(bob, "/skills/instance/demo") == []
        assert await word_of(bob, "GET", "/skills/detail/tidy") == (404, "SKILL_NOT_FOUND")
        assert await word_of(bob, "GET", "/skills/file/tidy/scripts/tidy.py?agent_id=demo") == (404, "SKILL_NOT_FOUND")
        assert await word_of(bob, "POST", "/skills/uninstall", json=TIDY) == (404, "SKILL_NOT_FOUND")
        await upload(bob)
        assert (await ann.call("GET", "/skills/global"))["total"] == 1


async def test_the_operator_may_forbid_changes(tmp_path: Path) -> None:
    offer(tmp_path)
    async with talking(tmp_path, management={"skills": "skills", "changes": "off"}) as client:
        said = {"skill_name": "offered", "agent_id": "demo"}
        assert await word_of(client, "POST", "/skills/install", json={}) == (400, "VALIDATION_ERROR")
        assert await word_of(client, "POST", "/skills/install", json=said) == (403, "FORBIDDEN")
        assert await word_of(client, "POST", "/skills/upload?skill_name=t", data=form(zipped())) == (403, "FORBIDDEN")
        assert await client.served.gateway.resources.list("skill_files", "") == []
        assert await names(client) == ["offered"]


async def test_skills_survive_a_restart(tmp_path: Path) -> None:
    offer(tmp_path)
    async with talking(tmp_path, log="sqlite") as client:
        await upload(client)
        await client.call("POST", "/skills/install", json=TIDY)
        await client.call("POST", "/skills/toggle", json={**TIDY, "enabled": False})
        await client.call("POST", "/agents", json={"agent_id": "tutor", "name": "Tutor", "prompt": "You teach."})
        await client.call("POST", "/skills/install", json={"skill_name": "tidy", "agent_id": "tutor"})
    async with talking(tmp_path, log="sqlite") as client:
        assert await names(client) == ["tidy"]
        [listed] = (await client.call("GET", "/skills/instance/demo"))["skills"]
        assert listed["is_enabled"] is False
        logo = await client.call("GET", "/skills/file/tidy/resources/deep/logo.bin?agent_id=demo")
        assert logo["size"] == 3
        await client.call("DELETE", "/agents/tutor")
        resources = client.served.gateway.resources
        assert len(await resources.list("installed_skill", "")) == 1
        assert len(await resources.list("skill_files", "")) == 2

"""What a client gives in confidence reaches the agent, and neither a file, nor an answer, nor the journal."""

import asyncio
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest
import socketio

from adapters.blade.server.turn_state import wire_call_id
from gateway import logging
from gateway.storage.log import export_sessions
from gateway.storage.sealing import FILE
from gateway.storage_factory import make_seal
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.gateway_server import Served, serving
from tests.support.secret_recording_agent import RECEIVED

CAS, BLADE, AAP, ZENFLUX = "/api/v1/cloud", "/api", "/aap", "/api/v1"
SETTINGS: dict[str, Any] = {
    "dialects": ALL_DIALECTS,
    "agents": {"confidant": {"backend": "tests.support.secret_recording_agent:SecretRecordingAgent"}},
    "logging": {"format": "json", "level": "debug"},
}
MARK = "s3cr3t-"
"""So begins every secret of this test; what follows tells by which way it came."""


@pytest.fixture(autouse=True)
def told() -> Iterator[StringIO]:
    """What the server says about itself, all of it."""
    RECEIVED.clear()
    stream = StringIO()
    logging.configure_logging("json", "debug", stream)
    yield stream
    logging.configure_logging()


class Client:
    """Gives secrets away, and keeps every byte that it gets back."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.got: list[bytes] = []

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        async with self.served.http.request(method, self.served.url(path), json=body, headers=headers) as response:
            content = await response.read()
        self.got += [content, str(response.headers).encode()]
        if response.content_type == "application/zip":
            with zipfile.ZipFile(BytesIO(content)) as archive:
                self.got += [archive.read(name) for name in archive.namelist()]
        return orjson.loads(content) if response.content_type == "application/json" and content else content

    async def emit(self, *events: tuple[str, dict[str, Any]]) -> None:
        """Over Socket.IO, one after the other, each chat to its end or to what it asks."""
        sio, ended = socketio.AsyncClient(reconnection=False), asyncio.Event()

        async def hear(event: str, said: Any) -> None:
            self.got.append(repr((event, said)).encode())
            if event in ("chat:end", "chat:error"):
                ended.set()

        sio.on("*", hear)
        await sio.connect(self.served.address, wait_timeout=30)
        try:
            for event, said in events:
                ended.clear()
                ack = await sio.call(event, said, timeout=30)
                self.got.append(repr(ack).encode())
                if isinstance(ack, dict) and ack.get("status") == "ok":
                    await asyncio.wait_for(ended.wait(), 30)
        finally:
            await sio.disconnect()
            await sio.shutdown()

    async def speak(self, **params: Any) -> None:
        """Over ZenFlux's socket, to the end of the run."""
        async with self.served.http.ws_connect(self.served.url(f"{ZENFLUX}/ws/chat")) as ws:
            await ws.send_json({"type": "req", "id": "1", "method": "chat.send", "params": params})
            async with asyncio.timeout(30):
                async for message in ws:
                    self.got.append(message.data.encode())
                    if '"session_end"' in message.data or '"message_stop"' in message.data:
                        return


@asynccontextmanager
async def confiding(folder: Path, **settings: Any) -> AsyncIterator[Client]:
    async with serving(folder, log="sqlite", **{**SETTINGS, **settings}) as served:
        yield Client(served)


# -- the ways in ------------------------------------------------------------------------------------------------------

async def by_blade(client: Client) -> list[str]:
    made = await client.call("POST", f"{BLADE}/sessions", {"intent": "x", "env": {"MADE": f"{MARK}blade-env"}})
    session = made["session_id"]
    await client.call("PUT", f"{BLADE}/sessions/{session}/env", {"env": {"PUT": f"{MARK}blade-put-env"}})
    await client.emit(
        ("chat:send", {"session_id": session, "message": "hi", "runtime_env": {"SENT": f"{MARK}blade-runtime"}}),
        ("chat:send", {"session_id": session, "message": "", "runtime_env": {"A": f"{MARK}blade-unsaid"}}),
        ("chat:send", {"session_id": session, "message": "hi", "runtime_env": {"A": [f"{MARK}blade-odd"]}}),
        ("chat:send", {"session_id": session, "message": "hi", "runtime_env": f"{MARK}blade-no-object"}),
        ("chat:send", {"session_id": "nobody", "message": "hi", "runtime_env": {"A": f"{MARK}blade-nobody"}}),
    )
    await client.call("PUT", f"{BLADE}/sessions/{session}/env", {"env": [f"{MARK}blade-put-odd"]})
    assert RECEIVED[-1]["PUT"] == f"{MARK}blade-put-env"
    assert RECEIVED[-1]["SENT"] == f"{MARK}blade-runtime"
    await client.call("POST", f"{BLADE}/sessions/{session}/replay", {"speed": 100})
    return [session]


async def by_aap(client: Client) -> list[str]:
    options = {"api_key": f"{MARK}aap-option"}
    made = await client.call("POST", f"{AAP}/sessions", {"agent": {"name": "confidant", "options": options}})
    at = f"{AAP}/sessions/{made['sessionId']}"
    messages = [{"role": "user", "content": "hi"}]
    await client.call("POST", f"{at}/turns", {"messages": messages})
    assert RECEIVED[-1]["api_key"] == f"{MARK}aap-option"
    for stream in ("none", "delta"):
        changed = {"options": {"api_key": f"{MARK}aap-changed-{stream}"}}
        await client.call("POST", f"{at}/turns", {"messages": messages, "agent": changed, "stream": stream})
        assert RECEIVED[-1]["api_key"] == f"{MARK}aap-changed-{stream}"
    for wrong in ({"api_key": f"{MARK}aap-beside", "tone": "loud"}, {"api_kee": f"{MARK}aap-misspelt"},
                  {"api_key": {"a": f"{MARK}aap-odd"}}):
        await client.call("POST", f"{at}/turns", {"messages": messages, "agent": {"options": wrong}})
        await client.call("POST", f"{AAP}/sessions", {"agent": {"name": "confidant", "options": wrong}})
    return [made["sessionId"]]


async def by_cas(client: Client) -> list[str]:
    vault = await client.call("POST", f"{CAS}/vaults", {"display_name": "v"})
    at = f"{CAS}/vaults/{vault['id']}/credentials"
    refresh = {"client_id": "c", "token_endpoint": "https://t.example", "refresh_token": f"{MARK}cas-refresh",
               "token_endpoint_auth": {"type": "client_secret_post", "client_secret": f"{MARK}cas-client"}}
    for number, auth in enumerate((
        {"type": "static_bearer", "mcp_server_url": "https://m.example", "token": f"{MARK}cas-bearer"},
        {"type": "environment_variable", "secret_name": "A", "secret_value": f"{MARK}cas-variable"},
        {"type": "mcp_oauth", "mcp_server_url": "https://o.example", "access_token": f"{MARK}cas-access",
         "refresh": refresh},
    )):
        made = await client.call("POST", at, {"auth": auth}, **{"Idempotency-Key": f"k{number}"})
        assert made["id"], made
        changed = {**auth, **{word: f"{value}-anew" for word, value in auth.items() if MARK in str(value)
                              and isinstance(value, str)}}
        await client.call("POST", f"{at}/{made['id']}", {"auth": changed})
        await client.call("GET", f"{at}/{made['id']}")
    await client.call("POST", at, {"auth": {"type": "static_bearer", "token": [f"{MARK}cas-odd"]}})
    await client.call("GET", at)
    repository = {"type": "github_repository", "url": "https://github.com/a/b",
                  "authorization_token": f"{MARK}cas-repository"}
    new = {"agent": "agent_confidant", "environment": {"config": {"type": "cloud"}}, "vault_ids": [vault["id"]]}
    session = await client.call("POST", f"{CAS}/sessions", {**new, "resources": [repository]})
    await client.call("POST", f"{CAS}/sessions/{session['id']}/resources", {
        **repository, "url": "https://github.com/a/c", "authorization_token": f"{MARK}cas-mounted"})
    await client.call("GET", f"{CAS}/sessions/{session['id']}/resources")
    wrong = {"environment_variables": f"1A={MARK}cas-misnamed"}
    await client.call("POST", f"{CAS}/sessions", {**new, **wrong})
    return [session["id"]]


async def by_zenflux(client: Client) -> list[str]:
    await client.speak(message="hi", user_id="local", variables={"TOKEN": f"{MARK}zenflux-socket"})
    assert RECEIVED[-1] == {"api_key": "", "TOKEN": f"{MARK}zenflux-socket"}
    body = {"message": "hi", "userId": "local", "variables": {"deep": {"TOKEN": [f"{MARK}zenflux-rest"]}}}
    for stream in (True, False):
        await client.call("POST", f"{ZENFLUX}/chat", {**body, "stream": stream})
        assert RECEIVED[-1]["deep"] == {"TOKEN": [f"{MARK}zenflux-rest"]}
    await client.call("POST", f"{ZENFLUX}/chat", {**body, "variables": f"{MARK}zenflux-odd"})
    return []


WAYS = (by_blade, by_aap, by_cas, by_zenflux)


async def read_everything(client: Client, sessions: list[str]) -> None:
    for path in (f"{CAS}/sessions", f"{CAS}/vaults", f"{BLADE}/sessions", f"{AAP}/sessions",
                 f"{ZENFLUX}/conversations?user_id=local", f"{AAP}/meta", "/metrics"):
        await client.call("GET", path)
    listed = await client.call("GET", f"{CAS}/sessions?limit=100")
    for session in {*sessions, *(one["id"] for one in listed["data"])}:
        for path in (
            f"/replay/{session}", f"{BLADE}/sessions/{session}", f"{BLADE}/sessions/{session}/messages",
            f"{BLADE}/sessions/{session}/export", f"{AAP}/sessions/{session}",
            f"{AAP}/sessions/{session}/history?type=full", f"{CAS}/sessions/{session}",
            f"{CAS}/sessions/{session}/events", f"{ZENFLUX}/conversations/{session}/messages",
        ):
            await client.call("GET", path)


def found_in(folder: Path) -> list[str]:
    """The files that have a secret in them, and a little of what stands there."""
    return [f"{path}: {content[at:at + 40]!r}" for path in folder.rglob("*") if path.is_file()
            and (at := (content := path.read_bytes()).find(MARK.encode())) >= 0]


@pytest.mark.parametrize("way", WAYS)
async def test_a_secret_is_in_no_file_no_answer_and_no_journal(
    tmp_path: Path, told: StringIO, capfd: pytest.CaptureFixture[str], way: Any,
) -> None:
    async with confiding(tmp_path) as client:
        sessions = await way(client)
        await read_everything(client, sessions)
        assert found_in(tmp_path / "data") == []
        config = client.served.gateway.components.config
    assert found_in(tmp_path / "data") == []
    lines = b"".join(export_sessions(tmp_path / "data" / "dragoman.db", seal=make_seal(config)))
    assert MARK.encode() not in lines
    assert [content for content in client.got if MARK.encode() in content] == []
    assert MARK not in "".join((told.getvalue(), *capfd.readouterr()))
    assert way is by_cas or "turn_ended" in told.getvalue(), "the journal was told what happened"


async def test_variables_that_the_protocol_gives_back_are_in_no_file(tmp_path: Path) -> None:
    """CAS shows a session's variables to its owner; that is no reason to leave them about."""
    async with confiding(tmp_path) as client:
        new = {"agent": "agent_confidant", "environment": {"config": {"type": "cloud"}},
               "environment_variables": f"A={MARK}cas-environment"}
        made = [await client.call("POST", f"{CAS}/sessions", new, **{"Idempotency-Key": "k"}) for _ in range(2)]
        assert made[0] == made[1]
        assert found_in(tmp_path / "data") == []
        replay = await client.call("GET", f"/replay/{made[0]['id']}")
        assert MARK.encode() not in replay
    async with confiding(tmp_path) as client:
        shown = await client.call("GET", f"{CAS}/sessions/{made[0]['id']}")
        assert shown["environment_variables"] == {"A": f"{MARK}cas-environment"}
        assert await client.call("POST", f"{CAS}/sessions", new, **{"Idempotency-Key": "k"}) == made[0]
    assert found_in(tmp_path / "data") == []


# -- what a restart means for them ------------------------------------------------------------------------------------

async def waiting(folder: Path, **settings: Any) -> str:
    """A server that is stopped while a turn waits for somebody, with secrets of every kind."""
    async with confiding(folder, **settings) as client:
        options = {"api_key": f"{MARK}option"}
        made = await client.call("POST", f"{AAP}/sessions", {"agent": {"name": "confidant", "options": options}})
        session = str(made["sessionId"])
        await client.call("PUT", f"{BLADE}/sessions/{session}/env", {"env": {"KEPT": f"{MARK}env"}})
        await client.emit(("chat:send", {
            "session_id": session, "message": "/wait", "runtime_env": {"SENT": f"{MARK}runtime"}}))
        assert RECEIVED == []
        return session


async def go_on(client: Client, session: str) -> None:
    view = await client.served.gateway.sessions.get("", session)
    [ask] = view.asks
    await client.emit(("chat:send", {"session_id": session, "message": "", "askuser_answer": {
        "tool_call_id": wire_call_id(ask), "selections": {"0": [0]}, "custom": {}}}))


async def test_a_turn_that_waited_has_its_secrets_after_a_restart(tmp_path: Path) -> None:
    session = await waiting(tmp_path)
    assert found_in(tmp_path / "data") == []
    async with confiding(tmp_path) as client:
        await go_on(client, session)
    assert [{"api_key": f"{MARK}option", "KEPT": f"{MARK}env", "SENT": f"{MARK}runtime"}] == RECEIVED
    assert found_in(tmp_path / "data") == []


async def test_without_the_key_it_goes_on_without_them(tmp_path: Path, told: StringIO) -> None:
    session = await waiting(tmp_path)
    (tmp_path / "data" / FILE).unlink()
    async with confiding(tmp_path) as client:
        await go_on(client, session)
        assert await client.call("GET", f"{CAS}/sessions/{session}")
    assert RECEIVED == [{"api_key": ""}]
    assert "secret_key_unknown" in told.getvalue()


async def test_a_key_of_the_settings_is_not_in_the_folder(tmp_path: Path) -> None:
    old, new = "o" * 32, "n" * 40
    session = await waiting(tmp_path, secrets_key=old)
    assert not (tmp_path / "data" / FILE).exists()
    async with confiding(tmp_path, secrets_key=f"{new}, {old}") as client:
        await go_on(client, session)
    assert [{"api_key": f"{MARK}option", "KEPT": f"{MARK}env", "SENT": f"{MARK}runtime"}] == RECEIVED


def test_a_client_error_would_be_noticed(tmp_path: Path) -> None:
    """The search itself can fail."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"\0xx" + MARK.encode() + b"y")
    assert len(found_in(tmp_path)) == 1

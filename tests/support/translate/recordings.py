"""Real conversations, recorded as `dragoman record` does it: a client, the recorder, a gateway."""

import io
from pathlib import Path

from yarl import URL

import gateway.model as m
from conformance.kit.secrets import Redactor
from conformance.recording.recorder import Recorder
from conformance.recording.relay import relaying
from gateway.backends.remote import open_remote
from gateway.ports.remote import RemoteAddress
from tests.support.dialect_tables import dialect
from tests.support.gateway_server import Served
from tests.support.translate.client import SETTINGS, converse


async def recorded(served: Served, name: str, *directives: str, settings: m.Settings = SETTINGS) -> bytes:
    """What the recorder writes while a client of this dialect says these, each in a session of its own."""
    file = io.BytesIO()
    target = URL(served.url(dialect(name).mount))
    recorder = Recorder(file, name, target, Redactor([]))
    async with relaying(target, recorder, "127.0.0.1", 0) as address:
        remote = open_remote(name, RemoteAddress(url=str(address)))
        try:
            for words in directives:
                await converse(remote, words, settings=settings)
        finally:
            await remote.close()
    recorder.stopped()
    return file.getvalue()


def save(folder: Path, recording: bytes) -> Path:
    path = folder / "recording.jsonl"
    path.write_bytes(recording)
    return path

"""The published JavaScript client: polling and then an upgrade, websocket only, and a line that breaks."""

import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.adapters.blade.test_docs import run
from tests.served import Served, serving

CLIENT = """
const { io } = require("socket.io-client");
const [address, session, transports, breaks] = process.argv.slice(2);
const socket = io(address, { transports: transports.split(","), auth: { token: "x" }, reconnectionDelay: 20 });
let last = 0, connects = 0, text = "", seen = [], transport = "";
const heard = (name) => socket.on(name, (event) => {
  if (event.stream_sequence !== undefined) { seen.push(event.stream_sequence); last = event.stream_sequence; }
  if (name === "turn:patch" && event.patch_type === "add_content" && event.data.type === "text") {
    text += event.data.text_delta;
    if (breaks === "yes" && connects === 1) { connects = 1.5; socket.io.engine.close(); }
  }
  if (name === "chat:end") {
    transport = socket.io.engine.transport.name;
    console.log(JSON.stringify({ text, seen, connects: Math.ceil(connects), transport, status: event.status }));
    socket.close();
  }
});
["chat:start", "turn:start", "turn:patch", "turn:end", "chat:end"].forEach(heard);
socket.on("connect", async () => {
  connects = Math.floor(connects) + 1;
  await socket.emitWithAck("session:subscribe", { session_id: session, after_sequence: last, resume: true });
  if (connects === 1) socket.emit("chat:send", { session_id: session, message: "/slow 20 done", mode: "executing" });
});
setTimeout(() => { console.log("too late", text); process.exit(1); }, 15000);
socket.on("disconnect", (why) => { if (why === "io client disconnect") process.exit(0); });
"""


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, dialects={"blade": {}}) as served:
        yield served


@pytest.mark.parametrize(("transports", "breaks"), [
    ("polling,websocket", "no"), ("websocket", "no"), ("polling", "no"), ("websocket", "yes"),
    ("polling,websocket", "yes"),
])
async def test_the_javascript_client(served: Served, tmp_path: Path, transports: str, breaks: str) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if (npm is None or node is None) and "CI" not in os.environ:
        pytest.skip("there is no node here; `make test` installs it where it may")
    assert npm, "there is no npm"
    assert node, "there is no node"
    code, printed = await run(npm, "install", "--no-audit", "--no-fund", "socket.io-client@4", cwd=tmp_path)
    assert code == 0, printed
    (tmp_path / "client.js").write_text(CLIENT)
    async with served.http.post(served.url("/api/sessions"), json={"intent": "js"}) as response:
        session = (await response.json())["session_id"]
    code, printed = await run(node, "client.js", served.address, session, transports, breaks, cwd=tmp_path)
    assert code == 0, printed
    told = json.loads(printed)
    assert told["text"].endswith("You said: done")
    assert told["status"] == "completed"
    assert told["seen"] == sorted(set(told["seen"])), "nothing twice, nothing out of order"
    assert told["connects"] == (2 if breaks == "yes" else 1)
    assert told["transport"] == ("polling" if transports == "polling" else "websocket")
    async with served.http.get(served.url(f"/api/sessions/{session}/messages")) as response:
        kept = [block["content"] for turn in await response.json() if turn["role"] == "assistant"
                for block in turn["blocks"] if block["type"] == "text"]
    assert told["text"] == "".join(kept), "what was streamed is what was kept"

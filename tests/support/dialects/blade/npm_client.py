"""The published JavaScript client of Socket.IO, installed with npm and run with node."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.support.gateway_server import Served, reachable_from_outside

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
setTimeout(() => { console.log("too late", text); process.exit(1); }, 60000);
socket.on("disconnect", (why) => { if (why === "io client disconnect") process.exit(0); });
"""

QUESTIONS = """
const { io } = require("socket.io-client");
const [address, session] = process.argv.slice(2);
const socket = io(address, { auth: { token: "x" } });
const ask = (message) => new Promise((answered) => {
  let text = "";
  const patch = (event) => { if (event.patch_type === "add_content") text += event.data.text_delta; };
  socket.on("turn:patch", patch);
  socket.once("chat:end", () => { socket.off("turn:patch", patch); answered(text); });
  socket.emit("session:subscribe", { session_id: session, event_format: "raw", after_sequence: 0 });
  socket.emit("chat:send", { session_id: session, message });
});
(async () => {
  for (const message of ["one", "two", "three"]) console.log(await ask(message));
  socket.close();
})();
"""


async def run(*command: str, cwd: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(120):
        printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, printed.decode()


async def install(folder: Path) -> str:
    """Install the client there; where `node` is."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if (npm is None or node is None) and "CI" not in os.environ:
        pytest.skip("there is no node here; `make test` installs it where it may")
    assert npm, "there is no npm"
    assert node, "there is no node"
    if not (folder / "node_modules").exists():
        code, printed = await run(npm, "install", "--no-audit", "--no-fund", "socket.io-client@4", cwd=folder)
        assert code == 0, printed
    return node


async def ask_three_times(served: Served, folder: Path) -> list[str]:
    """The answers to three questions of a client that subscribes before each."""
    node, session = await install(folder), await _session(served)
    (folder / "questions.js").write_text(QUESTIONS)
    async with reachable_from_outside(served) as address:
        code, printed = await run(node, "questions.js", address, session, cwd=folder)
    assert code == 0, printed
    return printed.splitlines()


async def _session(served: Served) -> str:
    async with served.http.post(served.url("/api/sessions"), json={"intent": "js"}) as response:
        return str((await response.json())["session_id"])


async def chat(served: Served, folder: Path, transports: str, *, breaks: bool) -> None:
    """A chat over these transports, with a connection that breaks if so wanted: all is heard, once and in order."""
    node, session = await install(folder), await _session(served)
    (folder / "client.js").write_text(CLIENT)
    async with reachable_from_outside(served) as address:
        words = "client.js", address, session, transports, "yes" if breaks else "no"
        code, printed = await run(node, *words, cwd=folder)
    assert code == 0, printed
    told = json.loads(printed)
    assert told["text"].endswith("You said: done")
    assert told["status"] == "completed"
    assert told["seen"] == sorted(set(told["seen"])), "nothing twice, nothing out of order"
    assert told["connects"] == (2 if breaks else 1)
    assert told["transport"] == ("polling" if transports == "polling" else "websocket")
    async with served.http.get(served.url(f"/api/sessions/{session}/messages")) as response:
        kept = [block["content"] for turn in await response.json() if turn["role"] == "assistant"
                for block in turn["blocks"] if block["type"] == "text"]
    assert told["text"] == "".join(kept), "what was streamed is what was kept"

"""An agent of the Agent Client Protocol for tests: plain JSON lines, and a prompt that says step by step what to do.

A prompt whose last text is a JSON list is obeyed; any other is repeated, block by block, as JSON.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

FLAGS = set(sys.argv[1:])
WAITING: dict[int, dict[str, Any]] = {}
ANSWERED = threading.Condition()
CANCELLED = threading.Event()
WRITING = threading.Lock()
NUMBERS = iter(range(1000, 10**9))
CHILDREN = []
LATE: list[str] = []
"""Lines that are written when the prompt has been answered."""
RECORD = next((flag.removeprefix("--record=") for flag in FLAGS if flag.startswith("--record=")), None)
"""A file to which everything is written that is heard."""


def write(**message: Any) -> None:
    raw(json.dumps({"jsonrpc": "2.0", **message}))


def raw(line: str) -> None:
    with WRITING:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def update(session: str, **told: Any) -> None:
    write(method="session/update", params={"sessionId": session, "update": told})


def say(session: str, text: str) -> None:
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def asked(method: str, params: Any) -> dict[str, Any]:
    """The answer to a request of ours."""
    number = next(NUMBERS)
    write(id=number, method=method, params=params)
    return answer_to(number)


def answer_to(number: int) -> dict[str, Any]:
    with ANSWERED:
        ANSWERED.wait_for(lambda: number in WAITING)
        return WAITING.pop(number)


def prompt(number: int, session: str, blocks: list[dict[str, Any]]) -> None:
    CANCELLED.clear()
    texts = [block.get("text", "") for block in blocks if block["type"] == "text"]
    last, stop = texts[-1] if texts else "", {"stopReason": "end_turn"}
    if last.startswith("[["):
        for step, *given in json.loads(last):
            if step == "stop":
                stop = {"stopReason": given[0], **(given[1] if len(given) > 1 else {})}
            elif STEPS[step](session, *given) == "cancelled":
                stop = {"stopReason": "cancelled"}
                break
    else:
        say(session, json.dumps(blocks))
    write(id=number, result=stop)
    while LATE:
        raw(LATE.pop())


def permission(session: str, *calls: dict[str, Any]) -> None:
    """Ask for all of them at once, then tell what was decided."""
    numbers = []
    for call in calls:
        options = call.pop("options", None) or [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        numbers.append(next(NUMBERS))
        write(id=numbers[-1], method="session/request_permission",
              params={"sessionId": session, "toolCall": call, "options": options})
    for number in numbers:
        say(session, json.dumps(answer_to(number)["result"]["outcome"]))


def request(session: str, method: str, params: dict[str, Any]) -> None:
    told = asked(method, {"sessionId": session, **params})
    say(session, json.dumps({key: told[key] for key in ("result", "error") if key in told}))


def late(session: str, text: str) -> None:
    """Something that is said when the turn is over."""
    told = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    LATE.append(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": session, "update": told}}))


def torn(session: str, hexed: str) -> None:
    """A message of ours whose text is no text."""
    line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "BYTES"}}}})
    with WRITING:
        sys.stdout.buffer.write(line.encode().replace(b"BYTES", bytes.fromhex(hexed)) + b"\n")
        sys.stdout.buffer.flush()


def die(session: str, code: int, words: str) -> None:
    sys.stderr.write(words)
    sys.stderr.flush()
    os._exit(code)


def hang(session: str) -> str:
    CANCELLED.wait()
    return "cancelled"


def deaf(session: str) -> None:
    threading.Event().wait()


def storm(session: str) -> None:
    """Say more than anybody can keep, whatever is cancelled."""
    while True:
        say(session, "x" * 100_000)


def spawn(session: str) -> None:
    """A child of this process that would outlive it."""
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    CHILDREN.append(child)
    say(session, str(child.pid))


STEPS = {
    "say": say,
    "update": lambda session, told: update(session, **told),
    "permission": permission,
    "request": request,
    "die": die,
    "hang": hang,
    "deaf": deaf,
    "storm": storm,
    "spawn": spawn,
    "late": late,
    "torn": torn,
    "raw": lambda session, line: raw(line),
    "flood": lambda session, size: raw("x" * size),
    "stderr": lambda session, words: print(words, file=sys.stderr, flush=True),
    "env": lambda session, name: say(session, os.environ.get(name, "(nothing)")),
    "chosen": lambda session: say(session, json.dumps(CHOSEN)),
    "pid": lambda session: say(session, str(os.getpid())),
}


def initialize(params: dict[str, Any]) -> dict[str, Any]:
    abilities = {"loadSession": "--load" in FLAGS, "promptCapabilities": {"image": "--images" in FLAGS},
                 "mcpCapabilities": {"http": True}}
    if "--closes" in FLAGS:
        abilities["sessionCapabilities"] = {"close": {}}
    return {"protocolVersion": 7 if "--seven" in FLAGS else 1, "agentCapabilities": abilities, "authMethods": []}


def load(params: dict[str, Any]) -> dict[str, Any]:
    say(params["sessionId"], "what was said long ago")
    return {}


SESSIONS = iter(range(1, 10**9))
CHOSEN = {"model": "small", "tone": "plain"}


def options() -> dict[str, Any]:
    """What a session can be set to, if the agent offers that."""
    if "--options" not in FLAGS:
        return {}
    models = [{"group": "all", "name": "All", "options": [{"value": one, "name": one} for one in ("small", "large")]}]
    tones = [{"value": one, "name": one} for one in ("plain", "warm")]
    return {"configOptions": [
        {"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": CHOSEN["model"],
         "options": models},
        {"id": "tone", "name": "Tone", "type": "select", "currentValue": CHOSEN["tone"], "options": tones},
        {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False},
    ]}


def choose(params: dict[str, Any]) -> dict[str, Any]:
    CHOSEN[params["configId"]] = params["value"]
    return options()


METHODS = {
    "initialize": initialize,
    "authenticate": lambda params: {},
    "session/new": lambda params: {"sessionId": f"{os.getpid()}-{next(SESSIONS)}", **options()},
    "session/set_config_option": choose,
    "session/load": load,
    "session/close": lambda params: {},
}


def take(message: dict[str, Any]) -> None:
    method, params = message.get("method"), message.get("params") or {}
    if method is None:
        with ANSWERED:
            WAITING[message["id"]] = message
            ANSWERED.notify_all()
    elif method == "session/cancel":
        CANCELLED.set()
    elif method == "session/prompt":
        given = message["id"], params["sessionId"], params["prompt"]
        threading.Thread(target=prompt, args=given, daemon=True).start()
    elif method == "session/close" and "--clings" in FLAGS:
        write(id=message["id"], error={"code": -32603, "message": "it is mine"})
    elif method == "session/set_config_option" and "--stubborn" in FLAGS:
        write(id=message["id"], error={"code": -32602, "message": "I stay as I am"})
    elif method == "session/new" and "--poor" in FLAGS:
        write(id=message["id"], error={"code": -32000, "message": "Authentication required"})
    else:
        write(id=message["id"], result=METHODS[method](params))


def main() -> None:
    if "--die" in FLAGS:
        sys.exit("no licence: key hunter2-secret is not valid")
    if "--mute" in FLAGS:
        signal.pause()
    if "--babble" in FLAGS:
        raw("Welcome to the agent!\n{not json\n[1, 2]\n42\nnull")
    if "--garbage" in FLAGS:
        while True:
            raw("garbage")
    for line in sys.stdin:
        if RECORD:
            with open(RECORD, "a") as file:  # noqa: PTH123  # nothing is imported that need not be
                file.write(line)
        take(json.loads(line))
    if "--undying" in FLAGS:
        signal.pause()


main()

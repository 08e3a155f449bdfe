"""Steps that reproduce a failure: the requests of a transcript as shell commands, the key as $KEY."""

import re
from dataclasses import dataclass, field

from conformance.kit.secrets import REDACTED

BEGINNING = re.compile(r"^ *\d+\.\d{3} ([<>*]) (.*)$")
FOLLOWING = re.compile(r"^ {9} ([<>*]) ?(.*)$")
REQUEST = re.compile(r"^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/\S*)$")
SOCKET = re.compile(r"^WebSocket (/\S*)$")
MEMBER = re.compile(r'"(\w+)": ?"([^"\\]{6,})"')
ENGINE = "/socket.io/?EIO=4&transport=websocket"
PACKET = re.compile(r"^4[0-6]")
CUT = re.compile(r" … \(\d+ more characters\)$")
CLEARING = "clearing away"
LONGEST = 4000


@dataclass
class Request:
    """One request, or one socket with the frames sent on it; and what came back."""

    method: str
    path: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: str | None = None
    frames: list[str] = field(default_factory=list)
    answer: str = ""


def steps(transcript: str, url: str) -> list[str]:
    """The commands in order; they read ids from the server's answers, so that they can be run again."""
    requests = _requests(transcript)
    names: dict[str, str] = {}
    told = []
    for place, request in enumerate(requests):
        command = _command(request, url.rstrip("/"), names)
        later = "\n".join(_said(item) for item in requests[place + 1 :])
        told.append(_capturing(command, request, later, names))
    return told


def _requests(transcript: str) -> list[Request]:
    """The requests before the cleanup."""
    found: list[Request] = []
    for mark, text in _entries(transcript):
        if mark == "*" and text.startswith(CLEARING):
            break
        if mark == ">" and (request := _read(text)) is not None:
            found.append(request)
        elif mark == ">":
            _note_frame(found, text)
        elif mark == "<" and found:
            found[-1].answer += text + "\n"
    return found


def _note_frame(found: list[Request], text: str) -> None:
    """Add a frame to the socket that was opened last, after the requests that were sent meanwhile."""
    if PACKET.match(text) is None and not any(item.method == "WebSocket" for item in found):
        return
    socket = next((item for item in reversed(found) if item.method == "WebSocket"), None)
    if socket is None:
        socket = Request("WebSocket", ENGINE)
    else:
        found.remove(socket)
    if socket.path != ENGINE or PACKET.match(text):
        socket.frames.append(text)
    found.append(socket)


def _entries(transcript: str) -> list[tuple[str, str]]:
    """(mark, text) of each entry, its lines put together again."""
    found: list[tuple[str, str]] = []
    for line in transcript.split("\n"):
        if begins := BEGINNING.match(line):
            found.append((begins[1], begins[2]))
        elif (follows := FOLLOWING.match(line)) and found:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{follows[2]}")
    return found


def _read(text: str) -> Request | None:
    """The request of an entry; None if the entry is a frame on a socket."""
    first, _, rest = text.partition("\n")
    heading, parted, body = rest.partition("\n\n") if not rest.startswith("\n") else ("", "\n\n", rest[1:])
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in heading.split("\n")) if name]
    if asked := REQUEST.match(first):
        return Request(asked[1], asked[2], headers, body if parted else None)
    opened = SOCKET.match(first)
    return Request("WebSocket", opened[1], headers) if opened else None


def _said(request: Request) -> str:
    return "\n".join([request.path, request.body or "", *request.frames])


def _command(request: Request, url: str, names: dict[str, str]) -> str:
    headers = [f"-H {_quoted(f'{name}: {value}', names)}" for name, value in request.headers]
    if request.method == "WebSocket":
        place = _quoted(re.sub("^http", "ws", url) + request.path, names)
        frames = " ".join(_quoted(frame, names) for frame in request.frames)
        return f"printf '%s\\n' {frames} | " + " ".join(["websocat", *headers, place])
    method = [] if request.method == "GET" else [f"-X {request.method}"]
    body = [] if request.body is None else [_body(request.body, names)]
    return " ".join(["curl -sS -N", *method, _quoted(url + request.path, names), *headers, *body])


def _body(body: str, names: dict[str, str]) -> str:
    if CUT.search(body) or len(body) > LONGEST:
        return "--data-binary @body   # too long to show"
    return f"--data-binary {_quoted(body, names)}"


def _quoted(text: str, names: dict[str, str]) -> str:
    """One word of the shell, with the key and the ids of earlier answers as variables."""
    known = {REDACTED: "KEY"} | names
    pattern = "|".join(re.escape(value) for value in sorted(known, key=len, reverse=True))
    pieces = re.split(f"({pattern})", text)
    return "".join(f'"${known[piece]}"' if piece in known else _plain(piece) for piece in pieces if piece) or "''"


def _plain(piece: str) -> str:
    return "'" + piece.replace("'", "'\\''") + "'"


def _capturing(command: str, request: Request, later: str, names: dict[str, str]) -> str:
    """The command, which captures the first id of its answer that is used later."""
    if request.method == "WebSocket":
        return command
    members = [(found[1], found[2]) for found in MEMBER.finditer(request.answer)]
    for place, (member, value) in enumerate(members):
        if value in later and value not in names:
            name = names[value] = f"ID{len(names) + 1}"
            number = 1 + [key for key, _ in members[:place]].count(member)
            search = f"""grep -oE '"{member}": ?"[^"]*"' | sed -n {number}p | cut -d'"' -f4"""
            return f"{name}=$({command} | {search})"
    return command

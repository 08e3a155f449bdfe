"""A message as ACP content blocks: text, images if the agent takes them, and files as links."""

import asyncio
import base64
import binascii
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote_to_bytes

import msgspec

import gateway.model as m
from gateway.backends.system_text import memories_text, with_skills
from gateway.errors import Invalid, Unsupported
from gateway.json_values import JsonObject
from gateway.ports import Turn

from .session_folder import SessionFolder

MAX_HISTORY_CHARS = 100_000
"""At most so many characters of the earlier conversation are sent to a new session of the agent, the latest ones."""
SKILLS_FOLDER = "skills"
"""The skills of a session are below this folder of its own."""
ROLE_NAMES = {m.Role.USER: "User", m.Role.ASSISTANT: "Assistant", m.Role.TOOL: "Tool result", m.Role.SYSTEM: "Summary"}

ContentBlock = JsonObject


@dataclass(frozen=True, kw_only=True)
class PromptOptions:
    """How a message is converted: whether the agent takes images, and what is not passed on."""

    images: bool
    refused: Collection[str] = ()
    """Addresses that are not passed on."""
    trust_uploads: bool = False
    """Whether an uploaded file may keep the name of a file that agents read as configuration."""


def prompt_blocks(command: m.SendMessage, folder: SessionFolder, how: PromptOptions) -> list[ContentBlock]:
    """The content blocks of a message; its files are written into the session's folder."""
    blocks = [block for part in m.parts_of(command.content) for block in _blocks(part, folder, how)]
    if command.output_schema is not None:
        schema = msgspec.json.encode(command.output_schema).decode()
        blocks.append(_text(f"Answer with JSON only, in one piece, that fits this JSON Schema: {schema}"))
    return blocks or [_text("")]


def addresses_in(command: m.SendMessage) -> set[str]:
    """The addresses in the message; `data:` URLs are none."""
    urls = {part.url for part in m.parts_of(command.content) if isinstance(part, m.ImagePart | m.FilePart) and part.url}
    return {url for url in urls if not url.startswith("data:")}


async def write_skills(turn: Turn, folder: SessionFolder, *, trust_uploads: bool) -> Path:
    """Write the text files of the session's skills to its folder, where the agent can read them; nobody runs them."""
    for skill in turn.settings.skills or ():
        main = await turn.read_skill(skill.name)
        for path in (main.path, *main.files):
            found = main if path == main.path else await turn.read_skill(skill.name, path)
            if found.text is not None:
                names = PurePosixPath(found.path).parts
                names = names if trust_uploads else tuple(map(m.upload_name, names))
                place = PurePosixPath(SKILLS_FOLDER, skill.name, *names)
                await asyncio.to_thread(folder.write, str(place), found.text)
    return folder.path / SKILLS_FOLDER


def memory_blocks(turn: Turn) -> list[ContentBlock]:
    """The memories that fit the message, before the message."""
    return [_text(memories_text(turn.memories))] if turn.memories else []


def opening_blocks(turn: Turn, skills: Path) -> list[ContentBlock]:
    """What a new session of the agent must know: the system prompt, its skills, and the earlier conversation."""
    system, before = with_skills(turn.settings.system, turn.settings, skills), _transcript(turn.history[:-1])
    blocks = [_text(system)] if system else []
    return [*blocks, _text(f"Earlier in this conversation:\n\n{before}")] if before else blocks


def _transcript(entries: Sequence[m.HistoryEntry]) -> str:
    lines = (f"{ROLE_NAMES[entry.role]}: {text}" for entry in entries if (text := m.text_of(entry.content).strip()))
    return "\n\n".join(lines)[-MAX_HISTORY_CHARS:]


def _blocks(part: m.AnyPart, folder: SessionFolder, how: PromptOptions) -> Iterator[ContentBlock]:
    match part:
        case m.ImagePart(url=url) | m.FilePart(url=url) if url in how.refused:
            name = part.name if isinstance(part, m.FilePart) else "a picture"
            yield _text(f"[{name}: its address is not passed on]")
        case m.TextPart(text=text):
            yield _text(text)
        case m.ImagePart():
            yield _image(part, how.images)
        case m.FilePart():
            yield _file(part, folder, how.trust_uploads)
        case m.DataPart(type=type, content=content):
            yield _text(f"{type}: {msgspec.json.encode(content).decode()}")


def _text(text: str) -> ContentBlock:
    return {"type": "text", "text": text}


def _image(image: m.ImagePart, taken: bool) -> ContentBlock:
    if not taken:
        raise Unsupported("the agent takes no pictures")
    if not image.url.startswith("data:"):
        return _link(image.url.rpartition("/")[2] or "image", image.url, image.media_type)
    content, media_type = _decode_data_url(image.url)
    return {"type": "image", "data": base64.b64encode(content).decode(),
            "mimeType": media_type or image.media_type or "image/png"}


def _file(file: m.FilePart, folder: SessionFolder, trusted: bool) -> ContentBlock:
    if file.url and file.url.startswith("data:"):
        content, media_type = _decode_data_url(file.url)
        name = PurePosixPath(file.name.replace("\0", "")).name or "file"
        name = name if trusted else m.upload_name(name)
        return _link(file.name, folder.write(name, content).as_uri(), file.media_type or media_type, len(content))
    return _link(file.name, file.url or f"file-id:{file.file_id}", file.media_type, file.size)


def _link(name: str, uri: str, media_type: str | None = None, size: int | None = None) -> ContentBlock:
    about = {"mimeType": media_type, "size": size}
    return {"type": "resource_link", "name": name, "uri": uri, **{key: it for key, it in about.items() if it}}


def _decode_data_url(url: str) -> tuple[bytes, str]:
    """The bytes and the media type in a `data:` URL."""
    head, comma, body = url.removeprefix("data:").partition(",")
    media_type, _, encoding = head.rpartition(";") if head.endswith(";base64") else (head, "", "")
    try:
        content = base64.b64decode(body, validate=True) if encoding else unquote_to_bytes(body)
    except binascii.Error:
        raise Invalid("a data: address with broken base64") from None
    if not comma:
        raise Invalid("a data: address without a comma")
    return content, media_type.partition(";")[0]

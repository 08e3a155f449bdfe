"""Reads a skill: the front matter of its SKILL.md, and all files of a ZIP or of a folder, within limits."""

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import yaml

import gateway.model as m
from gateway.errors import GatewayError, Invalid, TooLarge

from .workspace_paths import check_name, entries_of, files_below
from .zip_entries import InvalidZip, check_entry, open_zip, read_entry

SKILL_FILE = m.SKILL_FILE
MAX_TEXT_BYTES = 256 * 1024
MAX_BYTES = 8 * 1024 * 1024
"""How many bytes a skill may have, packed and unpacked."""
MAX_ENTRIES = 200
MAX_HEAD = 16 * 1024
"""How many characters the front matter may have."""
MAX_BRACKETS = 200
"""How many brackets the front matter may open: time to read it grows with the square of their depth."""
MAX_DESCRIPTION = 1024
MAX_PREFERRED = 64
RESERVED_WORDS = ("anthropic", "claude")
"""Words of vendors: a name with one of them would pass for the vendor's."""
PRIORITIES = ("low", "medium", "high")
HEAD_NAME = re.compile(r"[a-z0-9-]{1,64}")
TAG = re.compile(r"<[^<>\s][^<>]*>")
LINE = re.compile(r"---[ \t]*")
SIDE_FILES = ("__MACOSX", ".DS_Store")
"""What file managers add to a ZIP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillHead:
    """What the front matter of a skill says."""

    name: str
    description: str
    priority: str = "medium"
    preferred_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFolder:
    """A skill with all its files; the text is SKILL.md, which is not among the files."""

    head: SkillHead
    text: str
    files: Mapping[str, bytes]


class InvalidSkill(Invalid):
    """SKILL.md is not as it must be."""

    usual_reason = m.FaultReason.INVALID_SKILL


def read_head(text: str) -> SkillHead:
    """The front matter of a SKILL.md; raises `InvalidSkill`."""
    lines = text.removeprefix("\ufeff").splitlines()
    ends = [number for number, line in enumerate(lines) if LINE.fullmatch(line)]
    if len(ends) < 2 or ends[0] != 0:
        raise InvalidSkill(f"{SKILL_FILE} must begin with front matter between two lines of ---")
    fields = _fields("\n".join(lines[1:ends[1]]))
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not HEAD_NAME.fullmatch(name):
        raise InvalidSkill(f"{SKILL_FILE}: name: must have 1 to 64 lowercase letters, digits and hyphens")
    if any(word in name for word in RESERVED_WORDS):
        raise InvalidSkill(f"{SKILL_FILE}: name: must not have one of the words {', '.join(RESERVED_WORDS)}")
    if not isinstance(description, str) or not 0 < len(description.strip()) <= MAX_DESCRIPTION:
        raise InvalidSkill(f"{SKILL_FILE}: description: must have 1 to {MAX_DESCRIPTION} characters")
    if TAG.search(description):
        raise InvalidSkill(f"{SKILL_FILE}: description: must not have tags")
    priority, preferred = fields.get("priority"), fields.get("preferred_for")
    return SkillHead(
        name=name, description=description.strip(), priority=str(priority) if priority in PRIORITIES else "medium",
        preferred_for=_texts(preferred),
    )


def _fields(head: str) -> dict[str, object]:
    if len(head) > MAX_HEAD:
        raise InvalidSkill(f"{SKILL_FILE}: the front matter must have at most {MAX_HEAD} characters")
    if head.count("[") + head.count("{") > MAX_BRACKETS:
        raise InvalidSkill(f"{SKILL_FILE}: the front matter must have at most {MAX_BRACKETS} brackets")
    try:
        read = yaml.load(head, Loader=yaml.BaseLoader)  # noqa: S506  # it makes texts, lists and objects, and nothing else
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        raise InvalidSkill(f"{SKILL_FILE}: the front matter is not YAML") from None
    if not isinstance(read, dict):
        raise InvalidSkill(f"{SKILL_FILE}: the front matter must have fields: name and description")
    return read


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(one for one in value if isinstance(one, str))[:MAX_PREFERRED] if isinstance(value, list) else ()


def with_front_matter(text: str, name: str) -> str:
    """The text of a SKILL.md; one that has no front matter gets it, with its first line as the description."""
    if LINE.fullmatch(next(iter(text.removeprefix("\ufeff").splitlines()), "")):
        return text
    line = next((found for line in text.splitlines() if (found := line.strip("# \t\ufeff"))), name)
    head = yaml.safe_dump({
        "name": re.sub(r"[^a-z0-9-]", "-", name.lower()), "description": TAG.sub("", line)[:MAX_DESCRIPTION]},
        allow_unicode=True, sort_keys=False)
    return f"---\n{head}---\n{text}"


def check_text(text: str) -> SkillHead:
    """The front matter of a SKILL.md that may be stored."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        raise TooLarge(f"{SKILL_FILE} must have at most {MAX_TEXT_BYTES} bytes")
    return read_head(text)


def check_path(path: str) -> str:
    """Refuse a path that leads out of the skill."""
    try:
        names = [check_name(name) for name in path.split("/")]
    except GatewayError:
        names = []
    if not names or path.startswith("~") or "\\" in path or any(name in ("", ".") for name in names):
        raise Invalid(f"{path[:80]!r} is not a path inside the skill", reason=m.FaultReason.INVALID_PATH)
    return path


# -- files, and a ZIP of them -----------------------------------------------------------------------------------------

def read_skill_files(files: Mapping[str, bytes]) -> SkillFolder:
    """The skill that these files are, by their paths: SKILL.md stands at the root, or in the only folder."""
    if len(files) > MAX_ENTRIES or sum(map(len, files.values())) > MAX_BYTES:
        raise TooLarge(f"a skill must have at most {MAX_ENTRIES} files and {MAX_BYTES} bytes", param="files")
    return _skill({check_path(path): read for path, read in files.items()})


def write_skill_zip(skill: SkillFolder) -> bytes:
    """A ZIP that `read_skill_zip` reads; equal skills give equal bytes."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        text = skill.text.encode("utf-8", "surrogatepass")
        for path, content in {SKILL_FILE: text, **skill.files}.items():
            archive.writestr(zipfile.ZipInfo(f"{skill.head.name}/{path}"), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()



def read_skill_zip(content: bytes) -> SkillFolder:
    """The skill in a ZIP: SKILL.md stands at the root, or in the only folder; raises if anything is wrong with it."""
    if len(content) > MAX_BYTES:
        raise TooLarge(f"the ZIP must have at most {MAX_BYTES} bytes", param="file")
    with open_zip(BytesIO(content), MAX_ENTRIES) as archive:
        return _skill(_read_files(archive))


def _read_files(archive: zipfile.ZipFile) -> dict[str, bytes]:
    files = dict[str, bytes]()
    room = MAX_BYTES
    for entry in archive.infolist():
        check_path(entry.filename.removesuffix("/"))
        check_entry(entry)
        if entry.is_dir():
            continue
        if entry.filename in files:
            raise InvalidZip(f"{entry.filename[:80]!r} is in the ZIP twice")
        try:
            files[entry.filename] = read_entry(archive, entry.filename, room)
        except TooLarge:
            raise TooLarge(f"the files of the ZIP have more than {MAX_BYTES} bytes", param="file") from None
        room -= len(files[entry.filename])
    return {path: read for path, read in files.items() if not any(name in SIDE_FILES for name in path.split("/"))}


def _skill(files: dict[str, bytes]) -> SkillFolder:
    tops = {path.partition("/")[0] for path in files}
    if SKILL_FILE not in files and len(tops) == 1:
        [top] = tops
        files = {path.removeprefix(f"{top}/"): read for path, read in files.items()}
    if SKILL_FILE not in files:
        raise Invalid(f"there is no {SKILL_FILE} at the root or in the only folder",
                      reason=m.FaultReason.INVALID_STRUCTURE)
    text = _text(files.pop(SKILL_FILE))
    return SkillFolder(head=check_text(text), text=text, files=files)


def _text(read: bytes) -> str:
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidSkill(f"{SKILL_FILE} is not UTF-8") from None


# -- a folder of the operator -----------------------------------------------------------------------------------------

def skill_names(folder: Path) -> list[str]:
    """The folders below the operator's folder that have a SKILL.md, in the order of names."""
    if not folder.is_dir():
        return []
    folders = (entry for entry in entries_of(folder) if entry.is_dir(follow_symlinks=False))
    return sorted(entry.name for entry in folders if _is_file(Path(entry.path) / SKILL_FILE))


def read_folder_text(folder: Path) -> tuple[SkillHead, str]:
    """The SKILL.md of a folder; raises if anything is wrong with it."""
    place = folder / SKILL_FILE
    if not _is_file(place):
        raise InvalidSkill(f"there is no {SKILL_FILE}")
    if place.stat().st_size > MAX_TEXT_BYTES:
        raise TooLarge(f"{SKILL_FILE} must have at most {MAX_TEXT_BYTES} bytes")
    text = _text(place.read_bytes())
    return check_text(text), text


def folder_sizes(folder: Path) -> dict[str, int]:
    """The other files of a folder, without links, and their sizes."""
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files_below(folder)}
    sizes.pop(SKILL_FILE, None)
    if len(sizes) >= MAX_ENTRIES or sum(sizes.values()) > MAX_BYTES:
        raise TooLarge(f"the skill in '{folder.name}' has more than {MAX_ENTRIES} files or {MAX_BYTES} bytes")
    return dict(sorted(sizes.items()))


def _is_file(place: Path) -> bool:
    return place.is_file() and not place.is_symlink()

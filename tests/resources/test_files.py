"""The file store: whole or not at all, under names nobody can guess, and links that hold for a while."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from gateway.errors import Forbidden, Invalid, NotFound, TooLarge
from gateway.resources import FileStore
from gateway.resources.file_folder import FileFolder


@dataclass
class Rules:
    max_bytes: int = 1000
    types: tuple[str, ...] = ("*/*",)
    link_seconds: float = 60


class Now:
    at = 1_000_000_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def rules() -> Rules:
    return Rules()


@pytest.fixture
def store(tmp_path: Path, now: Now, rules: Rules) -> FileStore:
    return made(tmp_path / "files", now, rules)


def made(folder: Path, now: Now, rules: Rules) -> FileStore:
    kept = FileFolder(folder, now)
    return FileStore(kept, now, lambda: rules, lambda: [kept.link_secret()])


async def path_of(store: FileStore, file_id: str) -> Path:
    path = (await store.open(file_id)).path
    assert path is not None
    return path


async def said(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def left(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "files").iterdir()]


async def test_bytes_are_kept_as_they_came(store: FileStore, tmp_path: Path) -> None:
    stored = await store.store(said(b"ab", b"", b"c"))
    assert (stored.size, stored.sha256) == (3, sha256(b"abc").hexdigest())
    path = await path_of(store, stored.file_id)
    assert path.read_bytes() == b"abc"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert left(tmp_path) == [stored.file_id]
    await store.remove(stored.file_id)
    await store.remove(stored.file_id)
    with pytest.raises(NotFound):
        await store.open(stored.file_id)


async def test_the_same_bytes_are_two_files(store: FileStore) -> None:
    first, second = await store.store(said(b"x")), await store.store(said(b"x"))
    await store.remove(first.file_id)
    assert (await path_of(store, second.file_id)).read_bytes() == b"x"


async def test_too_much_or_nothing_leaves_no_trace(store: FileStore, tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        await store.store(said(b"x" * 600, b"x" * 401))
    with pytest.raises(Invalid, match="empty"):
        await store.store(said())
    assert left(tmp_path) == []
    assert (await store.store(said(b"x" * 1000))).size == 1000


async def test_a_sender_that_breaks_off_leaves_no_trace(store: FileStore, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await store.store(broken())
    assert left(tmp_path) == []


async def test_what_a_crash_left_is_swept_away_when_it_is_old(store: FileStore, tmp_path: Path, now: Now) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / ".part-old").write_bytes(b"x")
    now.at = (folder / ".part-old").stat().st_mtime + 3600
    young = await store.store(said(b"x"))
    assert (folder / ".part-old").exists()
    now.at += 86_400
    old = await store.store(said(b"x"))
    assert sorted(left(tmp_path)) == sorted([young.file_id, old.file_id])


async def test_an_upload_does_not_look_at_all_files_of_the_folder(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, now: Now,
) -> None:
    looks = list[str]()

    def glob(folder: Path, pattern: str) -> list[Path]:
        looks.append(pattern)
        return []

    monkeypatch.setattr(Path, "glob", glob)
    for _ in range(5):
        await store.store(said(b"x"))
    now.at += 3600
    await store.store(said(b"x"))
    assert len(looks) == 2, "once at first, and once an hour later"


@pytest.mark.parametrize("file_id", [
    "", ".", "..", "../secret", "file_../../x", "/etc/passwd", ".secret", "file_", "file_" + "g" * 24,
    "file_" + "0" * 24, "file_" + "0" * 24 + "\n", "file_" + "0" * 23 + "/",
])
async def test_an_id_that_is_none_of_ours_is_never_a_path(store: FileStore, tmp_path: Path, file_id: str) -> None:
    (tmp_path / "secret").write_text("x")
    with pytest.raises(NotFound):
        await store.open(file_id)
    await store.remove(file_id)
    assert (tmp_path / "secret").exists()


def test_types_are_admitted_by_pattern(store: FileStore, rules: Rules) -> None:
    store.check_media_type("application/x-anything")
    rules.types = ("image/*", "text/plain")
    store.check_media_type("image/png")
    store.check_media_type("text/plain")
    with pytest.raises(Invalid, match="text/html"):
        store.check_media_type("text/html")


# -- links ------------------------------------------------------------------------------------------------------------

async def test_a_link_holds_for_a_while(store: FileStore, now: Now) -> None:
    word, expires = store.link("file_x", "ü.txt", "text/plain")
    assert expires == now.at + 60
    link = store.read_link(word)
    assert (link.file_id, link.name, link.media_type) == ("file_x", "ü.txt", "text/plain")
    now.at = expires + 0.1
    with pytest.raises(Forbidden, match="expired"):
        store.read_link(word)


@pytest.mark.parametrize("word", ["", ".", "a.b", "a", "ü.ü", "====.====", "e30.e30"])
def test_a_word_that_nobody_signed_is_no_link(store: FileStore, word: str) -> None:
    with pytest.raises(NotFound):
        store.read_link(word)


def test_a_link_cannot_be_changed(store: FileStore) -> None:
    mine, _ = store.link("file_a", "x", "text/plain")
    other, _ = store.link("file_b", "x", "text/plain")
    with pytest.raises(NotFound):
        store.read_link(f"{mine.partition('.')[0]}.{other.partition('.')[2]}")


def test_servers_of_one_folder_know_each_others_links(tmp_path: Path, now: Now, rules: Rules) -> None:
    one, two, stranger = (made(tmp_path / name, now, rules) for name in ("files", "files", "others"))
    word, _ = one.link("file_x", "x", "text/plain")
    assert two.read_link(word).file_id == "file_x"
    assert (tmp_path / "files" / ".secret").stat().st_mode & 0o777 == 0o600
    with pytest.raises(NotFound):
        stranger.read_link(word)


async def test_an_upload_that_ends_while_another_begins_does_not_disturb_it(
    store: FileStore, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While one looks for what others left behind, the other finishes, and what it looked at is gone."""
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: [folder / ".part-gone-by-now"])
    kept = await store.store(said(b"x"))
    assert kept.size == 1

"""A ZIP of a stranger is read within its limits; test_zip_bombs tries whole sessions."""

import stat
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

import gateway.model as m
from gateway.errors import Invalid, TooLarge
from gateway.resources.zip_entries import check_entry, entry_chunks, open_zip, read_entry
from tests.support.skill_zips import zipped


def test_entries_are_read_from_a_file_and_from_memory(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"a": b"abc"}))
    for source in ((tmp_path / "a.zip").open("rb"), BytesIO(zipped({"a": b"abc"}))):
        with source, open_zip(source, 1) as archive:
            assert read_entry(archive, "a", 3) == b"abc"
            assert b"".join(entry_chunks(archive, "a", 3)) == b"abc"


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all" * 10, zipped()[:-30]], ids=[
    "empty", "start", "text", "cut"])
def test_what_is_no_zip_is_refused(content: bytes) -> None:
    with pytest.raises(Invalid, match="not a ZIP") as refused:
        open_zip(BytesIO(content), 10)
    assert refused.value.reason is m.FaultReason.INVALID_ZIP


def test_more_entries_than_allowed_are_refused() -> None:
    content = zipped({f"{number}": b"" for number in range(4)})
    open_zip(BytesIO(content), 4).close()
    for most in (3, 0):
        with pytest.raises(TooLarge, match="entries"):
            open_zip(BytesIO(content), most)


def test_no_more_bytes_than_allowed_are_read() -> None:
    with open_zip(BytesIO(zipped({"a": b"0" * 100_000})), 1) as archive:
        with pytest.raises(TooLarge):
            read_entry(archive, "a", 99_999)
        with pytest.raises(TooLarge):
            list(entry_chunks(archive, "a", 99_999))


def test_a_broken_entry_is_refused() -> None:
    content = bytearray(zipped({"a": b"abcdefgh" * 100}))
    content[40] ^= 0xFF
    with open_zip(BytesIO(bytes(content)), 1) as archive, pytest.raises(Invalid, match="cannot be unpacked"):
        read_entry(archive, "a", 10_000)


@pytest.mark.parametrize("mode", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_links_and_devices_are_refused(mode: int) -> None:
    entry = zipfile.ZipInfo("a")
    entry.external_attr = (mode | 0o777) << 16
    with pytest.raises(Invalid):
        check_entry(entry)


def test_encryption_and_other_compressions_are_refused() -> None:
    check_entry(zipfile.ZipInfo("a"))
    entry = zipfile.ZipInfo("a")
    entry.flag_bits |= 0x1
    with pytest.raises(Invalid):
        check_entry(entry)
    for compression in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 99):
        entry = zipfile.ZipInfo("a")
        entry.compress_type = compression
        with pytest.raises(Invalid):
            check_entry(entry)

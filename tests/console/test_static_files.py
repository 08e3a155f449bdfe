"""The files of the page: what is below their folder and not hidden, and nothing else."""

import gzip
from pathlib import Path

import pytest

from gateway.console.static_files import FOLDER, StaticFiles
from gateway.errors import NotFound
from tests.support.console_client import ConsoleClient


def test_only_plain_files_below_the_folder_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "static"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "a.js").write_text("export {}")
    (folder / ".hidden").write_text("x")
    (tmp_path / "secret.txt").write_text("x")
    (folder / "link.txt").symlink_to(tmp_path / "secret.txt")
    files = StaticFiles(folder)
    assert files.find("parts/a.js").media_type == "text/javascript"
    for path in (".hidden", "link.txt", "../secret.txt", "parts", "parts/../parts/a.js", "parts//a.js", "a\0b"):
        with pytest.raises(NotFound):
            files.find(path)


def test_text_is_kept_packed_too(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("a { color: red }" * 100)
    (tmp_path / "a.png").write_bytes(bytes(100))
    found = StaticFiles(tmp_path).find("a.css")
    assert found.packed is not None
    assert gzip.decompress(found.packed) == found.content
    assert StaticFiles(tmp_path).find("a.png").packed is None


def test_the_whole_page_is_small_on_the_wire() -> None:
    files = StaticFiles()
    packed = [files.find(path.name).packed or path.read_bytes() for path in FOLDER.iterdir()]
    assert sum(map(len, packed)) < 150_000


def test_a_changed_file_is_read_again_and_has_another_tag(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("a {}")
    files = StaticFiles(tmp_path)
    first = files.find("a.css")
    assert files.find("a.css") is first
    (tmp_path / "a.css").write_text("a { color: red }")
    assert files.find("a.css").tag != first.tag


async def test_files_are_compressed_for_those_who_can_read_it(console: ConsoleClient) -> None:
    path = console.served.url("/console/static/index.html")
    plain = StaticFiles().find("index.html").content
    for accepted, is_gzipped in (("gzip", True), ("br, GZIP;q=0.5", True), ("*", True), ("identity", False),
                                 ("gzip;q=0", False), ("", False)):
        headers = {"Accept-Encoding": accepted}
        async with console.served.http.get(path, headers=headers, auto_decompress=False) as answer:
            body = await answer.read()
            assert answer.headers["Vary"] == "Accept-Encoding"
            assert (answer.headers.get("Content-Encoding") == "gzip") is is_gzipped, accepted
            assert (gzip.decompress(body) if is_gzipped else body) == plain

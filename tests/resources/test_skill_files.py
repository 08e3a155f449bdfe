"""The front matter and the files of a skill: what is right is read, and everything else is refused."""

import stat
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.errors import GatewayError, Invalid, TooLarge
from gateway.resources import skill_files
from gateway.resources.skill_files import (
    SkillHead,
    check_path,
    check_text,
    folder_sizes,
    read_folder_text,
    read_head,
    read_skill_zip,
    skill_names,
)
from tests.support.skill_zips import FILES, SKILL, skill_text, with_entry, zipped


def test_the_front_matter_is_read() -> None:
    assert read_head(SKILL) == SkillHead(
        name="csv-tidy", description="Cleans tables.", priority="medium", preferred_for=("tables",))
    written = "---\r\nname: 2024-01-01\r\ndescription: yes\r\npriority: high\r\npreferred_for: one\r\n---\r\n"
    assert read_head(written) == SkillHead(
        name="2024-01-01", description="yes", priority="high", preferred_for=("one",))


@pytest.mark.parametrize("text", [
    "", "# Tidy", "name: a\ndescription: b", "---\nname: a\ndescription: b", "\n---\nname: a\ndescription: b\n---",
    "---\n---\n", "---\n- a\n---\n", "---\nname: [\n---\n", "---\nname: a\n---\n", "---\ndescription: b\n---\n",
    "---\nname: {a: b}\ndescription: b\n---\n", skill_text("Csv"), skill_text("a_b"), skill_text("a" * 65),
    skill_text("my-claude"), skill_text("anthropic-x"), skill_text(description="''"), skill_text(description="' '"),
    skill_text(description="a" * 1025), skill_text(description="Cleans <system>all</system>."),
    "---\n? [a]\n: b\n---\n", "---\n" + "[" * 5000 + "\n---\n", "---\nx: " + "y" * 20_000 + "\n---\n",
    "---\nname: !!python/object:os.system a\ndescription: [b]\n---\n",
])
def test_a_wrong_front_matter_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_head(text)
    assert refused.value.reason is m.FaultReason.INVALID_SKILL


@given(st.text(alphabet=st.sampled_from("-[]{}:,&*!|>'\"%@#? \nabc\t0"), max_size=80))
def test_any_front_matter_is_read_or_refused(head: str) -> None:
    with suppress(Invalid):
        read_head(f"---\nname: a\ndescription: b\n{head}\n---\n")


def test_a_text_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_files, "MAX_TEXT_BYTES", len(SKILL))
    check_text(SKILL)
    with pytest.raises(TooLarge):
        check_text(SKILL + "x")
    with pytest.raises(TooLarge):
        read_skill_zip(zipped({"SKILL.md": f"{SKILL}x".encode()}))


@pytest.mark.parametrize("path", [
    "", "/", "/etc/passwd", "..", "../x", "a/../b", "a/./b", "a//b", "a/", "~/x", "a\\b", "a\0b", "a\u202eb", "x" * 300,
])
def test_a_path_stays_inside(path: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_path(path)
    assert refused.value.reason is m.FaultReason.INVALID_PATH
    assert check_path("scripts/a b.py") == "scripts/a b.py"


# -- a ZIP ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("below", ["", "csv-tidy/"])
def test_a_zip_is_read(below: str) -> None:
    read = read_skill_zip(zipped(below=below))
    assert read.text == SKILL
    assert read.head.name == "csv-tidy"
    assert read.files == {path: content for path, content in FILES.items() if path != "SKILL.md"}


def test_what_file_managers_add_is_passed_over() -> None:
    added = {f"x/{path}": content for path, content in FILES.items()}
    read = read_skill_zip(zipped({**added, "__MACOSX/x/._SKILL.md": b"", "x/.DS_Store": b""}))
    assert set(read.files) == {path for path in FILES if path != "SKILL.md"}


@pytest.mark.parametrize("files", [
    {"a.txt": b""}, {"a/b/SKILL.md": SKILL.encode()}, {"a/SKILL.md": SKILL.encode(), "b/c": b""}, {}, {"skill.md": b""},
])
def test_skill_md_has_its_place(files: dict[str, bytes]) -> None:
    with pytest.raises(Invalid) as refused:
        read_skill_zip(zipped(files))
    assert refused.value.reason is m.FaultReason.INVALID_STRUCTURE


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a\\..\\x", "~x/y", "a//b", "./a"])
def test_no_entry_leads_out(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_skill_zip(zipped({**FILES, name: b"x"}))
    assert refused.value.reason is m.FaultReason.INVALID_PATH


def test_dangerous_entries_are_refused() -> None:
    link = zipfile.ZipInfo("resources/passwd")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(Invalid, match="a link"):
        read_skill_zip(with_entry(link, b"/etc/passwd"))
    odd = zipfile.ZipInfo("resources/odd")
    odd.compress_type = zipfile.ZIP_BZIP2
    with pytest.raises(Invalid, match="unknown way"):
        read_skill_zip(with_entry(odd))
    content = bytearray(zipped({"SKILL.md": SKILL.encode()}))
    content[content.index(b"PK\1\2") + 8] |= 1
    with pytest.raises(Invalid, match="encrypted"):
        read_skill_zip(bytes(content))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_is_there_once() -> None:
    with pytest.raises(Invalid, match="twice"):
        read_skill_zip(with_entry(zipfile.ZipInfo("scripts/tidy.py")))


def test_bombs_do_not_go_off() -> None:
    with pytest.raises(TooLarge, match="8388608 bytes"):
        read_skill_zip(zipped({**FILES, "resources/bomb": b"\0" * skill_files.MAX_BYTES}))
    many = {f"resources/{number}": b"\0" * 100_000 for number in range(90)}
    with pytest.raises(TooLarge, match="8388608 bytes"):
        read_skill_zip(zipped({**FILES, **many}))
    with pytest.raises(TooLarge, match="200 entries"):
        read_skill_zip(zipped({**FILES, **{f"resources/{number}": b"" for number in range(200)}}))
    with pytest.raises(TooLarge, match="8388608 bytes"):
        read_skill_zip(b"\0" * (skill_files.MAX_BYTES + 1))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with pytest.raises(GatewayError):
        read_skill_zip(content)


# -- a folder ---------------------------------------------------------------------------------------------------------

def test_a_folder_is_read_without_links(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "skills" / "csv-tidy"
    for path, content in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "resources" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "skills" / "empty").mkdir()
    (tmp_path / "skills" / "linked").symlink_to(folder)
    (tmp_path / "skills" / "other").mkdir()
    (tmp_path / "skills" / "other" / "SKILL.md").symlink_to(folder / "SKILL.md")
    assert skill_names(tmp_path / "skills") == ["csv-tidy"]
    assert skill_names(tmp_path / "nobody") == []
    assert read_folder_text(folder) == (read_head(SKILL), SKILL)
    assert folder_sizes(folder) == {
        path: len(content) for path, content in sorted(FILES.items()) if path != "SKILL.md"}
    for name in ("empty", "other", "nobody"):
        with pytest.raises(Invalid):
            read_folder_text(tmp_path / "skills" / name)


def test_a_folder_has_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "SKILL.md").write_text(SKILL)
    (tmp_path / "a").write_text("aaa")
    (tmp_path / "b").write_text("b")
    monkeypatch.setattr(skill_files, "MAX_BYTES", 3)
    with pytest.raises(TooLarge):
        folder_sizes(tmp_path)
    monkeypatch.setattr(skill_files, "MAX_TEXT_BYTES", 3)
    with pytest.raises(TooLarge):
        read_folder_text(tmp_path)

"""Documents are found below their folder and nowhere else."""

from pathlib import Path

import pytest

from gateway.errors import NotFound, TooLarge
from gateway.resources import documents
from gateway.resources.documents import DocumentFolder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    (root / "guides" / "deep").mkdir(parents=True)
    (root / "b.md").write_text("no heading")
    (root / "a.md").write_text("\n# The first\ntext")
    (root / "guides" / "one.md").write_text("# One")
    (root / "guides" / "deep" / "two-words.md").write_text("")
    (root / ".hidden.md").write_text("# Hidden")
    (root / ".git").mkdir()
    (root / ".git" / "x.md").write_text("# Hidden")
    (root / "notes.txt").write_text("no")
    (tmp_path / "docs-private").mkdir()
    (tmp_path / "docs-private" / "x.md").write_text("# Private")
    (root / "link.md").symlink_to(tmp_path / "docs-private" / "x.md")
    (root / "linked").symlink_to(tmp_path / "docs-private")
    return root


def test_the_list_and_what_can_be_read_are_the_same(folder: Path) -> None:
    found = DocumentFolder(folder).entries()
    assert [(one.path, one.title, one.category) for one in found] == [
        ("a.md", "The first", ""), ("b.md", "B", ""), ("guides/deep/two-words.md", "Two words", "guides"),
        ("guides/one.md", "One", "guides")]
    for one in found:
        read = DocumentFolder(folder).read(one.path)
        assert read.entry == one
        assert read.content == (folder / one.path).read_text()


@pytest.mark.parametrize("path", [
    "", ".", "guides", "nobody.md", "notes.txt", ".hidden.md", ".git/x.md", "link.md", "linked/x.md",
    "../docs-private/x.md", "guides/../../docs-private/x.md", "/etc/passwd", "guides//one.md", "./a.md", "a.md/",
    "~/x.md", "a\\b.md", "\x00.md", "guides/one.md/x.md",
])
def test_nothing_else_can_be_read(folder: Path, path: str) -> None:
    with pytest.raises(NotFound):
        DocumentFolder(folder).read(path)


def test_a_document_has_a_size(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 3)
    with pytest.raises(TooLarge):
        DocumentFolder(folder).read("a.md")


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert DocumentFolder(tmp_path / "none").entries() == []
    with pytest.raises(NotFound):
        DocumentFolder(tmp_path / "none").read("a.md")

"""Reading YAML documents: every problem is named, with its place."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from conformance.kit.documents import DocumentError, line_of, read_document


class Recipe(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str
    steps: list[int]


def problems(path: Path) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        read_document(path, Recipe)
    assert str(path) in str(caught.value)
    return caught.value.problems


def test_a_sound_document_is_read(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("title: Soup\nsteps: [1, 2]\n")
    assert read_document(path, Recipe) == Recipe(title="Soup", steps=[1, 2])


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("steps: [1, two]\ncook: me\n")
    found = problems(path)
    assert [problem.split(":")[0] for problem in found] == ["title", "steps.1", "cook"]


@pytest.mark.parametrize(
    ("raw", "word"), [(b"[1, 2", "not YAML"), (b"- a\n- b\n", "must be a mapping"), (b"\xff\xfe\xfd", "not UTF-8")]
)
def test_what_is_no_document_is_said_to_be_none(tmp_path: Path, raw: bytes, word: str) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(raw)
    assert word in problems(path)[0]


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path) -> None:
    assert "cannot be read" in problems(tmp_path / "none.yaml")[0]


def test_a_problem_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text("title: Soup\nsteps:\n  - 1\n  - two\ncook: me\n")
    with pytest.raises(DocumentError) as caught:
        read_document(path, Recipe)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{path}:4: steps.1: ")
    assert second.startswith(f"{path}:5: cook: ")


@pytest.mark.parametrize(
    ("place", "line"),
    [(("a",), 1), (("a", 1), 3), (("a", 1, "b"), 3), (("a", 1, "c"), 4), (("a", 9), 1), (("z",), None)],
)
def test_a_member_has_a_line(place: tuple[int | str, ...], line: int | None) -> None:
    assert line_of("a:\n  - 1\n  - b: 2\n    c: 3\n", place) == line

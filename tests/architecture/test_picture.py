"""The picture of the rooms shows the imports that there are."""

from tests.architecture.picture import BOXES, FILE, arrows, drawn


def test_the_picture_is_drawn_from_the_imports_of_today() -> None:
    assert FILE.read_text() == drawn(), "write it anew: .venv/bin/python -m tests.architecture.picture"


def test_a_box_imports_what_it_should_and_the_engine_none() -> None:
    found = {(one.title, other.title) for one, other in arrows()}
    assert {("adapters", "http"), ("adapters", "mappings"), ("cluster", "engine"), ("backends", "client")} <= found
    assert [pair for pair in found if pair[0] in ("engine", "storage", "client")] == []
    assert len({box.title for box in BOXES}) == len(BOXES)

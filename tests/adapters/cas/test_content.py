"""Files of CAS's content: which count, and what they are called."""

import gateway.model as m
from adapters.cas.content import with_named_files

IMAGE = m.ImagePart(url="https://example.test/a.png")


def test_a_file_without_a_name_is_called_by_its_id() -> None:
    files = (m.FilePart(name="", file_id="file_1"), m.FilePart(name="a.txt", file_id="file_2"),
             m.FilePart(name="", url="https://example.test/a.txt"))
    assert [file.name for file in with_named_files(files) if isinstance(file, m.FilePart)] == [
        "file_1", "a.txt", "document"]


def test_a_file_that_is_nowhere_is_left_out() -> None:
    content = (m.TextPart(text="a"), m.FilePart(name="a.txt"), IMAGE)
    assert with_named_files(content) == (m.TextPart(text="a"), IMAGE)

"""The table of covered lines per room, from a data file of coverage."""

from pathlib import Path

import pytest
from coverage import CoverageData

from tests.prove.coverage.__main__ import main
from tests.prove.coverage.rooms import Room, load_rooms, losses, read_rooms, room_of

FILES = ("gateway/app.py", "gateway/engine/turn.py", "adapters/aap/wire.py", "mappings/x.py", "conformance/x.py")
FOUR_LINES = '"""Four."""\n\nA = 1\nB = 2\nC = 3\nD = 4\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(FOUR_LINES)
    return tmp_path


def measured(tree: Path, name: str, lines: dict[str, list[int]]) -> Path:
    data = CoverageData(basename=str(tree / name))
    data.add_lines({str(tree / file): numbers for file, numbers in lines.items()})
    data.write()
    return tree / name


def test_lines_are_counted_per_room(tree: Path) -> None:
    rooms = read_rooms(measured(tree, "data", {"gateway/app.py": [3, 4, 5, 6], "gateway/engine/turn.py": [3]}))
    assert list(rooms) == ["adapters/aap", "conformance", "gateway", "gateway/engine", "mappings"]
    assert rooms["gateway"].percent == 100
    assert rooms["gateway/engine"] == Room(4, 1, {"gateway/engine/turn.py": 3})
    assert rooms["adapters/aap"] == Room(4, 0, {"adapters/aap/wire.py": 4}), "nobody imported it"


def test_a_folder_of_data_files_is_read_as_one(tree: Path) -> None:
    (tree / "parts").mkdir()
    for line in (3, 4):
        measured(tree, f"parts/.coverage.{line}", {"gateway/app.py": [line]})
    assert read_rooms(tree / "parts")["gateway"].covered == 2


def test_a_table_is_compared_with_an_earlier_one(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = measured(tree, "more", {"gateway/app.py": [3, 4, 5, 6]})
    less = measured(tree, "less", {"gateway/app.py": [3, 4]})
    earlier, now = tree / "earlier.json", tree / "now.json"
    assert main(["--data", str(more), "--json", str(earlier)]) == 0
    assert main(["--data", str(less), "--json", str(now), "--against", str(earlier)]) == 1
    printed = capsys.readouterr().out
    assert "gateway                        4        2    50.00   100.00  -50.00" in printed
    assert "gateway is covered less: 100.00 -> 50.00 percent; gateway/app.py (0 -> 2 missing)" in printed
    assert main(["--data", str(more), "--json", str(earlier), "--against", str(now)]) == 0


def test_a_little_less_is_allowed() -> None:
    assert losses({"a": Room(1000, 996)}, {"a": Room(1000, 1000)}, 0.5) == []
    assert losses({"a": Room(1000, 990)}, {"a": Room(1000, 1000)}, 0.5) != []
    assert losses({"new": Room(10, 0)}, {}, 0.5) == []


def test_data_about_something_else_is_refused(tree: Path) -> None:
    (tree / "other.py").write_text("A = 1\n")
    with pytest.raises(ValueError, match="knows no file of gateway"):
        read_rooms(measured(tree, "data", {"other.py": [1]}))


def test_rooms_are_folders_of_packages(tmp_path: Path) -> None:
    assert room_of(Path("gateway/backends/llm/openai/http.py")) == "gateway/backends"
    assert room_of(Path("gateway/app.py")) == "gateway"


def test_what_was_written_can_be_read(tree: Path) -> None:
    data = measured(tree, "data", {"gateway/app.py": [3]})
    main(["--data", str(data), "--json", str(tree / "rooms.json")])
    assert load_rooms(tree / "rooms.json") == read_rooms(data)


def test_a_run_on_github_has_the_table_in_its_summary(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tree / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    data = measured(tree, "data", {"gateway/app.py": [3]})
    assert main(["--data", str(data), "--json", str(tree / "rooms.json")]) == 0
    assert "gateway                        4        1    25.00" in summary.read_text()

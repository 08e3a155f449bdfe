"""What the application gives to the engine: projectors of the current tables, losses that are counted, and cleanup."""

from pathlib import Path
from typing import Any

import gateway.model as m
from gateway.composition import load_components
from gateway.config import load_config
from gateway.engine import SessionTable
from gateway.engine_parts import DeletedSessionCleanup, ServedDialects, StreamMetrics
from gateway.http import Metrics
from gateway.ports import NO_OPTIONS, StreamKey
from gateway.resources import FolderWorkspaces, Shares
from gateway.storage.resources.memory import MemoryResources
from gateway.usage import StreamWatchers, UsageCounts, UsageStore
from tests.support.dialect_tables import DIALECTS, dialect


def served(folder: Path) -> ServedDialects:
    file = folder / "config.yaml"
    named = ", ".join(f"{name}: {{}}" for name in DIALECTS)
    file.write_text(f"agents: {{demo: {{backend: demo}}}}\ndialects: {{{named}}}\n")
    return ServedDialects(load_components(load_config(file)))


def test_each_projector_is_new_and_each_dialect_says_what_it_needs(tmp_path: Path) -> None:
    dialects = served(tmp_path)
    for name in DIALECTS:
        options = dialect(name).default_options
        assert dialects.projector(name, options) is not dialects.projector(name, options)
        assert dialects.replays_turn(name) == (dialect(name).replay_from == "turn")


def test_a_record_without_frames_is_a_loss_only_where_the_table_says_so(tmp_path: Path) -> None:
    metrics = Metrics()
    watchers = StreamWatchers(UsageCounts(UsageStore(MemoryResources(lambda: 0.0)), lambda: 0.0))
    streams = StreamMetrics(metrics, served(tmp_path), SessionTable(), watchers)
    for event in (m.ScopeOpened(parent=m.ROOT), m.TurnStarted(command_id="c")):
        streams.count_record(StreamKey("aap", NO_OPTIONS), m.Record(seq=1, at=0.0, session_id="s", event=event), False)
    losses = {name: value for name, value in metrics.figures().items() if name.startswith("dragoman_translation_loss_")}
    assert [value for name, value in losses.items() if "to=aap" in name and "_total" in name] == [1.0]


async def test_what_is_kept_for_a_deleted_session_is_deleted(tmp_path: Path) -> None:
    class Keeping:
        def __init__(self) -> None:
            self.forgotten: list[str] = []

        def run(self, turn: Any) -> Any:
            raise AssertionError("no turn runs")

        async def close(self) -> None:
            """Nothing to close."""

        async def forget(self, session_id: str) -> None:
            self.forgotten.append(session_id)

    backend, workspaces = Keeping(), FolderWorkspaces(tmp_path / "workspaces")
    (tmp_path / "workspaces" / "sess_1").mkdir(parents=True)
    cleanup = DeletedSessionCleanup(
        workspaces, Shares(MemoryResources(lambda: 0.0, lambda: 10), lambda: 0.0), lambda: [backend])
    await cleanup.session_deleted("sess_1")
    assert backend.forgotten == ["sess_1"]
    assert not (tmp_path / "workspaces" / "sess_1").exists()

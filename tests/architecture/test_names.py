"""The house knows no dialect; every module says its one sentence; every module has its test."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from adapters import known_dialects
from tests.support.source_trees import all_nodes, python_files

ROOT = Path(__file__).parents[2]
SOURCES = sorted(python_files("gateway", "adapters", "mappings", "conformance"))
TESTS = [(path.stem, path.read_text()) for path in sorted((ROOT / "tests").rglob("test_*.py"))]

TESTED_BY = {
    "gateway/ports/*.py": "tests/contract/test_dialects.py",
    "gateway/backends/kinds.py": "tests/backends/test_kinds.py",
    "gateway/cli/options.py": "tests/cli/test_commands.py",
    "gateway/cli/doctor/*.py": "tests/cli/test_doctor.py",
    "gateway/backends/demo/*_directives.py": "tests/backends/demo/test_directives.py",
    "gateway/backends/agui/state_events.py": "tests/backends/agui/test_decoder.py",
    "gateway/cli/migrate.py": "tests/cli/test_usage.py",
    "gateway/storage/resources/sqlite_file.py": "tests/cli/test_usage.py",
    "gateway/usage/*.py": "tests/usage/test_usage.py",
    "gateway/cli/console_api.py": "tests/cli/test_sessions.py",
    "gateway/cli/remote_server.py": "tests/cli/test_chat.py",
    "gateway/model/session_view.py": "tests/model/test_session_fold.py",
    "gateway/storage/redis/pubsub.py": "tests/cluster/test_session_service.py",
    "adapters/blade/server/routes/sharing.py": "tests/adapters/blade/server/routes/test_shares.py",
    "adapters/cas/server/handler_context.py": "tests/adapters/cas/server/routes/test_sessions.py",
    "adapters/*/client/past_sessions.py": "tests/migration/test_read_back.py",
    "adapters/*/client/past_resources.py": "tests/migration/test_resource_importer.py",
    "gateway/client/past_resources.py": "tests/migration/test_resource_importer.py",
    "gateway/ports/past_resources.py": "tests/migration/test_resource_importer.py",
    "gateway/migration/resource_lines.py": "tests/migration/test_resource_importer.py",
    "gateway/migration/resource_store.py": "tests/migration/test_resource_importer.py",
    "gateway/client/past_messages.py": "tests/migration/test_read_back.py",
    "gateway/migration/past_records.py": "tests/migration/test_importer.py",
    "gateway/migration/file_store.py": "tests/migration/test_importer.py",
    "adapters/cas/wire/common.py": "tests/adapters/cas/wire/test_sessions.py",
    "adapters/zenflux/server/chat_service.py": "tests/adapters/zenflux/server/test_socket.py",
    "gateway/backends/demo/turn.py": "tests/backends/demo/test_directives.py",
    "gateway/cluster/*.py": "tests/cluster/test_session_service.py",
    "gateway/storage/log/segments.py": "tests/storage/log/test_every_log.py",
    "gateway/storage/log/redis/partitioned.py": "tests/storage/log/test_every_log.py",
    "gateway/storage/log/redis/shared_log.py": "tests/cluster/test_session_service.py",
    "gateway/storage/redis/durability.py": "tests/storage/log/redis/test_disk.py",
    "gateway/storage/redis/lines.py": "tests/storage/redis/test_client.py",
    "gateway/storage/redis/shared.py": "tests/storage/redis/test_partitions.py",
    "gateway/console/*.py": "tests/console/test_console.py",
    "gateway/config/*.py": "tests/config/test_load_config.py",
    "mappings/language/*.py": "tests/mappings/test_diagnostics.py",
    "conformance/kit/reports/html_parts.py": "tests/conformance/test_kit_reports.py",
    "conformance/recording/sockets.py": "tests/conformance/test_recording_relay.py",
    "conformance/kit/pytest_items.py": "tests/conformance/test_plugin.py",
    "conformance/*/offline/*.py": "tests/conformance/test_offline_judge.py",
    "conformance/faults/*.py": "tests/conformance/test_faults_aap.py",
    "conformance/clients/*.py": "tests/conformance/test_clients.py",
    "conformance/clients/*/*.py": "tests/conformance/test_clients.py",
}
"""Modules whose test goes by another name: a room that is tested through its door."""
TESTED_BY |= {
    f"{folder}/{dialect}/*.py": f"tests/conformance/test_faults_{dialect}.py"
    for dialect in known_dialects() for folder in ("conformance", "conformance/faults")
}


OPENING = re.compile(r'(#[^\n]*\n|\s)*"""\s*[^\s"][^\n]*?[.:?]("""|\n)')
"""A docstring whose first line ends as a sentence does."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_house_knows_no_dialect_by_name() -> None:
    dialect = re.compile(rf"\b({'|'.join(known_dialects())})\b", re.IGNORECASE)
    house = [path for path in SOURCES if name(path).startswith("gateway/")]
    assert {name(path): found for path in house if (found := dialect.findall(path.read_text()))} == {}


def test_a_module_opens_with_its_sentence() -> None:
    assert len(SOURCES) > 500
    speechless = [name(path) for path in SOURCES if not OPENING.match(path.read_text())]
    assert speechless == [], "say what the module is for, in a whole sentence on the first line"


def test_a_module_has_its_test() -> None:
    untested = [name(path) for path in SOURCES if not path.name.startswith("__") and not _is_tested(path)]
    assert untested == [], "no test file is named after it, and none imports it"


def _is_tested(path: Path) -> bool:
    given = next((test for pattern, test in TESTED_BY.items() if path.relative_to(ROOT).match(pattern)), None)
    if given is not None:
        return (ROOT / given).is_file()
    room, module = path.parent.name, path.stem
    imports = re.compile(rf"(from|import) [\w.]*\b{room}(\.{module}\b| import [^\n]*\b{module}\b)|{room}\.{module}\b")
    return any(module in stem for stem, _ in TESTS) or any(
        module in text and room in text and imports.search(text) for _, text in TESTS)


def test_modules_tested_under_another_name_still_exist() -> None:
    assert [pattern for pattern in TESTED_BY if not list(ROOT.glob(pattern))] == []


def test_no_two_classes_share_a_name() -> None:
    """But parallel ones: one for each of several dialects, and the protocol of the ports that they implement."""
    places = defaultdict(list)
    for path, node in all_nodes("gateway", "adapters", "mappings"):
        if isinstance(node, ast.ClassDef):
            places[node.name].append(name(path))
    assert len(places) > 700
    assert {word: found for word, found in places.items() if len(found) > 1 and not _are_parallel(found)} == {}


def _are_parallel(places: list[str]) -> bool:
    dialects = [place.split("/")[1] for place in places if place.startswith("adapters/")]
    others = [place for place in places if not place.startswith("adapters/")]
    return len(set(dialects)) == len(dialects) > 0 and (
        not others or (len(others) == 1 and others[0].startswith("gateway/ports/")))


def test_classes_of_one_name_are_seen() -> None:
    assert _are_parallel(["adapters/aap/wire.py", "adapters/cas/wire/x.py", "gateway/ports/remote.py"])
    assert not _are_parallel(["adapters/aap/wire.py", "adapters/aap/asks.py"])
    assert not _are_parallel(["adapters/aap/wire.py", "gateway/http/sse.py"])
    assert not _are_parallel(["gateway/ports/remote.py", "gateway/http/sse.py"])


NOUNS = {"framing", "logging", "paging", "provisioning", "recording", "sealing", "sharing"}
NOUNS |= {"listing", "streaming"}
"""Words of the field that happen to end so; the last two begin the names of conformance cases."""


def test_modules_are_named_by_nouns() -> None:
    """A module called after what somebody does (`keeping`, `finding`) cannot be found by what one wants to change."""
    named = {path.stem for path in SOURCES if path.stem.endswith("ing")}
    assert named <= NOUNS

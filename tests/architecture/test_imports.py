"""Who may import whom; the imports themselves are read, not the intentions."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.support.source_trees import python_files, syntax_tree

ROOT = Path(__file__).parents[2]
ROOMS = ("gateway", "adapters", "mappings", "conformance")
EVERYBODY = (
    "gateway.bucket_location", "gateway.errors", "gateway.field_errors", "gateway.hidden_modules", "gateway.ids",
    "gateway.json_values",
    "gateway.old_imports", "gateway.private_files", "gateway.quotas", "gateway.search_terms", "gateway.supervision",
    "gateway.time_slices", "gateway.trace_context", "gateway.yaml_positions",
)
"""Modules that every room of the gateway may use: they import at most the model and one another."""

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "gateway.old_imports": (),
    "gateway.model": ("gateway.json_values", "gateway.old_imports"),
    "gateway.bucket_location": ("gateway.errors",),
    "gateway.errors": ("gateway.model", "gateway.json_values"),
    "gateway.field_errors": (),
    "gateway.hidden_modules": (),
    "gateway.ids": (),
    "gateway.json_values": (),
    "gateway.private_files": (),
    "gateway.quotas": ("gateway.errors",),
    "gateway.search_terms": ("gateway.json_values",),
    "gateway.process_signals": (),
    "gateway.supervision": (),
    "gateway.time_slices": (),
    "gateway.trace_context": (),
    "gateway.yaml_positions": ("gateway.field_errors",),
    "gateway.logging": ("gateway.model", "gateway.hidden_modules"),
    "gateway.ports": ("gateway.model", *EVERYBODY),
    "gateway.engine": ("gateway.model", "gateway.ports", *EVERYBODY),
    "gateway.storage": ("gateway.model", "gateway.ports", *EVERYBODY),
    "gateway.cluster": ("gateway.model", "gateway.ports", "gateway.engine", "gateway.storage", *EVERYBODY),
    "gateway.resources": ("gateway.model", "gateway.ports", *EVERYBODY),
    "gateway.client": ("gateway.model", "gateway.ports", *EVERYBODY),
    "gateway.backends": ("gateway.model", "gateway.ports", "gateway.client", *EVERYBODY),
    "gateway.http": ("gateway.model", "gateway.ports", "gateway.logging", *EVERYBODY),
    "gateway.config": ("gateway.model", *EVERYBODY),
    "gateway.telemetry": ("gateway.model", "gateway.ports", "gateway.logging", *EVERYBODY),
    "gateway.oidc": ("gateway.config", "gateway.ports", "gateway.client", *EVERYBODY),
    "gateway.turn_routes": ("gateway.model", "gateway.ports", "gateway.config", *EVERYBODY),
    "gateway.worker": (),
    "gateway.worker_pool": (
        "gateway.config", "gateway.logging", "gateway.process_signals", "gateway.worker", *EVERYBODY,
    ),
    "gateway.audit": ("gateway.logging", "gateway.ports", "gateway.private_files"),
    "gateway.chat": ("gateway.model", "gateway.ports", *EVERYBODY),
    "gateway.api_documents": ("gateway.model", "gateway.ports", "gateway.http", "mappings", *EVERYBODY),
    "gateway.console": (
        "gateway.model", "gateway.ports", "gateway.api_documents", "gateway.http", "gateway.resources",
        "gateway.logging", "gateway.migration", "gateway.translate", "gateway.usage", "mappings", *EVERYBODY,
    ),
    "gateway.capacity": ("gateway.errors",),
    "gateway.usage": (
        "gateway.model", "gateway.ports", "gateway.http", "mappings", *EVERYBODY,
    ),
    "gateway.translate": (
        "gateway.model", "gateway.ports", "gateway.client", "gateway.storage", "mappings", *EVERYBODY,
    ),
    "gateway.migration": (
        "gateway.model", "gateway.ports", "gateway.client", "gateway.backends", "gateway.resources", "gateway.storage",
        "gateway.translate", *EVERYBODY,
    ),
    "mappings": (
        "gateway.model", "gateway.ports", "gateway.errors", "gateway.field_errors", "gateway.json_values",
        "gateway.yaml_positions",
    ),
    "conformance": (),
}
IN_ADAPTERS = (
    "gateway.model", "gateway.ports", "gateway.http", "gateway.client", "gateway.resources", "mappings", *EVERYBODY,
)
SIDE_DOORS = (
    "gateway.storage.resources.redis", "gateway.storage.resources.redis_responses", "gateway.backends.kinds",
    "gateway.backends.user_modules", "gateway.telemetry.otlp",
)
"""Modules that a room does not offer at its door: they need a library that not everybody has, or load other modules."""
MEETING_PLACES = (
    "gateway.app",
    "gateway.embedded_gateway",
    "gateway.composition",
    "gateway.engine_parts",
    "gateway.storage_factory",
    "gateway.file_storage",
    "gateway.loss_matrix",
    "gateway.purge",
    "gateway.server",
    "gateway.reload",
    "gateway.cli",
    "gateway.__main__",
)


def modules(room: str) -> Iterator[tuple[str, Path]]:
    for path in python_files(room):
        yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path


def imported(module: str, path: Path) -> Iterator[str]:
    """The full names of our own modules that a module imports, wherever in it."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in statements(syntax_tree(path).body):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] in ROOMS)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[:len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            if base.split(".")[0] in ROOMS:
                names = [base if name.name in _offered(base) else f"{base}.{name.name}" for name in node.names]
                yield from (name if _is_module(name) else base for name in names)


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """These and all within them: an import is a statement, so expressions need not be looked at."""
    for node in body:
        yield node
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            below = getattr(node, part, None)
            if isinstance(below, list):
                yield from statements(below)


def test_an_import_is_found_wherever_it_is() -> None:
    source = """
def a():
    try:
        import one
    except E:
        import two
    else:
        import three
    finally:
        import four
match x:
    case 1:
        import five
if x:
    pass
else:
    async def b():
        with y:
            import six
class C:
    for z in z:
        while w:
            import seven
"""
    found = [node.names[0].name for node in statements(ast.parse(source).body) if isinstance(node, ast.Import)]
    assert found == ["one", "two", "three", "four", "five", "six", "seven"]


@cache
def _is_module(name: str) -> bool:
    return ROOT.joinpath(*name.split(".")).with_suffix(".py").exists() or _is_room(name)


@cache
def _is_room(name: str) -> bool:
    return (ROOT.joinpath(*name.split(".")) / "__init__.py").exists()


@cache
def _offered(room: str) -> frozenset[str]:
    """What a room says it offers, modules of the same name notwithstanding."""
    opening = syntax_tree(ROOT.joinpath(*room.split(".")) / "__init__.py") if _is_room(room) else None
    lists = [node.value for node in (opening.body if opening else ()) if isinstance(node, ast.Assign)
             and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"]
    return frozenset(name for names in lists for name in ast.literal_eval(names))


def inside(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


def rule_for(module: str) -> tuple[str, tuple[str, ...]] | None:
    if inside(module, "adapters") and module.count("."):
        own = ".".join(module.split(".")[:2])
        return own, IN_ADAPTERS
    rooms = [room for room in MAY_IMPORT if inside(module, room)]
    return (max(rooms, key=len), MAY_IMPORT[max(rooms, key=len)]) if rooms else None


@cache
def imports() -> dict[str, tuple[str, ...]]:
    """Of every module; read when a test asks for it, not by everybody who looks which tests there are."""
    return {module: tuple(imported(module, path)) for room in ROOMS for module, path in modules(room)}


def test_a_room_imports_only_what_it_may() -> None:
    assert [words for module in imports() for words in _trespasses(module)] == []


def _trespasses(module: str) -> Iterator[str]:
    rule = rule_for(module)
    if rule is None:
        if module not in ("gateway", "adapters") and not any(inside(module, place) for place in MEETING_PLACES):
            yield f"{module} is in no room: give it a row in MAY_IMPORT"
        return
    own, allowed = rule
    for name in imports()[module]:
        if not inside(name, own) and not any(inside(name, room) for room in allowed):
            yield f"{module} imports {name}"


def test_nothing_imports_past_the_door_of_a_room() -> None:
    past = {module: found for module, names in imports().items() if not inside(module, "conformance")
            and (found := [name for name in names if _is_past_a_door(module, name)])}
    assert past == {}, "import from the room itself: its __init__ says what it offers, and can offer more"


def _is_past_a_door(module: str, name: str) -> bool:
    """Modules of one room import one another as they like; whoever is outside imports the room, or a room within it."""
    room = name.rpartition(".")[0]
    is_inside = inside(module, ".".join(name.split(".")[:2]))
    return "." in room and not is_inside and not _is_room(name) and name not in SIDE_DOORS


def test_who_comes_past_a_door_is_seen() -> None:
    assert _is_past_a_door("adapters.aap.client.remote", "gateway.client.transport.http_client")
    assert _is_past_a_door("gateway.cli.chat", "gateway.backends.remote.turn_reader")
    assert not _is_past_a_door("gateway.client.redaction", "gateway.client.transport.http_client"), "it is in the room"
    assert not _is_past_a_door("adapters.aap.client.remote", "gateway.client"), "that is the door"
    assert not _is_past_a_door("gateway.cluster.rpc", "gateway.storage.redis"), "so is that"


def test_the_side_doors_are_there_and_used() -> None:
    used = {name for names in imports().values() for name in names}
    assert [name for name in SIDE_DOORS if name not in used] == []


def test_the_house_is_reached_by_rooms_that_exist() -> None:
    for room in (*MAY_IMPORT, *MEETING_PLACES):
        assert _is_module(room), f"{room} is named here and does not exist"

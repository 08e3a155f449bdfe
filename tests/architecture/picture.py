"""Draws docs/architecture.svg from the imports themselves: `python -m tests.architecture.picture` writes it anew."""

from dataclasses import dataclass
from pathlib import Path

from tests.architecture.test_imports import imports, inside

FILE = Path(__file__).parents[2] / "docs" / "architecture.svg"
WIDTH, HEIGHT = 980, 560
BOX = 56
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1c2733}.s{font-size:11px;fill:#4a5866}"
    "rect{fill:#f4f7fa;stroke:#7b8b9a}.d{fill:#e8f1fb}.o{fill:#fbf6e8}"
    "path{fill:none;stroke:#5b6b7a;stroke-width:1.2}@media(prefers-color-scheme:dark){svg{background:#fff}}"
)


@dataclass(frozen=True)
class Box:
    """A room, where it stands, and what is in it."""

    rooms: tuple[str, ...]
    title: str
    words: str
    x: int
    y: int
    width: int
    kind: str = ""

    def has(self, module: str) -> bool:
        return any(inside(module, room) for room in self.rooms)


BOXES = (
    Box(("adapters",), "adapters",
        "a dialect each: server (inbound, projector, views, routes), client (decoder, remote)", 20, 120, 590, "d"),
    Box(("mappings",), "mappings", "the tables: what a dialect calls things", 640, 120, 320, "d"),
    Box(("gateway.http",), "http", "requests, responses, streams, auth", 20, 230, 220),
    Box(("gateway.resources",), "resources", "keys, files, memories …", 260, 230, 170),
    Box(("gateway.client",), "client", "upstream bytes → lawful events", 450, 230, 200),
    Box(("gateway.backends",), "backends", "agents, a kind each", 670, 230, 140),
    Box(("gateway.translate",), "translate", "recordings", 830, 230, 130),
    Box(("gateway.console",), "console", "the page and its API", 830, 340, 130),
    Box(("gateway.cluster",), "cluster", "several servers as one", 20, 340, 180),
    Box(("gateway.engine",), "engine", "sessions, turns, asks, streams", 230, 340, 260),
    Box(("gateway.storage",), "storage", "log and resources: memory, SQLite, Redis", 520, 340, 280),
)
TOP = (
    Box((), "app · composition · server · reload · storage_factory",
        "reads config, makes every room, joins them; imports all", 20, 20, 500, "o"),
    Box((), "cli · chat", "what a person runs", 540, 20, 180, "o"),
    Box((), "conformance", "examines; imports nothing of ours", 740, 20, 220, "o"),
)
BOTTOM = (
    Box((), "ports",
        "the typed protocols between rooms: Dialect, Projector, Decoder, Backend, EventLog, SessionService",
        20, 430, 940),
    Box((), "model",
        "what can happen: events, commands, asks, content, records, grammar, session view. No I/O, no clock",
        20, 496, 940),
)


def arrows() -> list[tuple[Box, Box]]:
    """Which box imports which, by the imports of all modules."""
    found = {(one, other) for module, names in imports().items() for one in BOXES if one.has(module)
             for name in names for other in BOXES if other is not one and other.has(name)}
    return sorted(found, key=lambda pair: (pair[0].title, pair[1].title))


def drawn() -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="The rooms of Dragoman, and which imports which">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" style="fill:#5b6b7a"/></marker></defs>',
        *(_arrow(one, other) for one, other in arrows()),
        *(line for box in (*TOP, *BOXES, *BOTTOM) for line in _box(box)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _box(box: Box) -> list[str]:
    return [
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{BOX}" rx="6" class="{box.kind}"/>',
        f'<text x="{box.x + 10}" y="{box.y + 23}">{box.title}</text>',
        f'<text x="{box.x + 10}" y="{box.y + 42}" class="s">{box.words}</text>',
    ]


def _arrow(one: Box, other: Box) -> str:
    """From the side of one box that faces the other."""
    if one.y == other.y:
        left, right = sorted((one, other), key=lambda box: box.x)
        start, end = (left.x + left.width, right.x) if one is left else (right.x, left.x + left.width)
        bend = one.y + BOX // 2
        if right.x - left.x - left.width > 40:  # around what stands between them
            return (f'<path d="M{one.x + one.width // 2} {one.y + BOX}Q{(start + end) // 2} {one.y + BOX + 36} '
                    f'{other.x + other.width // 2} {other.y + BOX}" marker-end="url(#a)"/>')
        return f'<path d="M{start} {bend}L{end} {bend}" marker-end="url(#a)"/>'
    is_above = one.y < other.y
    start_y, end_y = (one.y + BOX, other.y) if is_above else (one.y, other.y + BOX)
    low, high = max(one.x, other.x), min(one.x + one.width, other.x + other.width)
    if low + 30 < high:
        return f'<path d="M{(low + high) // 2} {start_y}L{(low + high) // 2} {end_y}" marker-end="url(#a)"/>'
    return (f'<path d="M{one.x + one.width // 2} {start_y}L{other.x + other.width // 2} {end_y}" '
            'marker-end="url(#a)"/>')


if __name__ == "__main__":
    FILE.write_text(drawn())

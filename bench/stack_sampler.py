"""Looks again and again where a process is in its code, by its CPU time, and writes the counts when it gets SIGUSR2."""

import json
import signal
import sysconfig
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import FrameType

INTERVAL = 0.001
"""Seconds of CPU between two looks; the kernel may round them up."""
ROOT = Path(__file__).resolve().parent.parent
PACKAGES = sysconfig.get_path("purelib")
LIBRARY = sysconfig.get_path("stdlib")
PRODUCT = ("gateway", "adapters", "mappings")


def start(file: str) -> None:
    """Begin to look; the code that runs in C is counted where it was called."""
    counts = Counter[tuple[str, str]]()

    def look(number: int, frame: FrameType | None) -> None:
        if frame is not None:
            counts[frame.f_code.co_filename, frame.f_code.co_name] += 1

    def write(number: int, frame: FrameType | None) -> None:
        seen = dict(counts)  # at once: the next look may come while the rest is done
        counts.clear()
        found = [[room_of(path), f"{Path(path).name}:{name}", count] for (path, name), count in seen.items()]
        Path(f"{file}.new").write_text(json.dumps(found))
        Path(f"{file}.new").replace(file)

    signal.signal(signal.SIGPROF, look)
    signal.signal(signal.SIGUSR2, write)
    signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)


@cache
def room_of(path: str) -> str:
    """The room of a module of ours, or the library that it belongs to."""
    if path.startswith(PACKAGES):
        return path[len(PACKAGES):].lstrip("/").partition("/")[0].removesuffix(".py")
    if path.startswith(LIBRARY):
        return "asyncio" if path.startswith(f"{LIBRARY}/asyncio") else "Python's library"
    inside = path[len(str(ROOT)):].lstrip("/").split("/")
    if not path.startswith(str(ROOT)) or inside[0] not in PRODUCT:
        return "the rest"
    return "/".join(inside[:2]).removesuffix(".py")


def shares(found: list[list[str | int]]) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """What was written, as shares of all looks: by room, and by function."""
    total = sum(int(count) for _, _, count in found)
    rooms, functions = Counter[str](), Counter[str]()
    for room, function, count in found:
        rooms[str(room)] += int(count)
        functions[f"{room} {function}"] += int(count)
    return ({name: count / total for name, count in rooms.items()},
            {name: count / total for name, count in functions.most_common()})

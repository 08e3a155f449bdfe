"""Files of recorded traffic: read as HAR or as our own JSON lines, whichever the file is."""

from pathlib import Path

from conformance.offline.har import loads, read_har
from conformance.offline.jsonl import read_jsonl
from conformance.offline.recording import Recording, Unusable

LARGEST = 1024 * 1024 * 1024
LARGEST_HAR = 256 * 1024 * 1024
HEAD = 4096


def read(path: Path) -> Recording:
    """The recording; Unusable says what is wrong with the file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(HEAD)
        if not head.strip():
            raise Unusable(f"{path}: the file is empty")
        is_ours = _is_jsonl(path, head)
        if size > (LARGEST if is_ours else LARGEST_HAR):
            raise Unusable(f"{path}: {size} bytes are too many to judge at once; record less, or in several files")
        return read_jsonl(path) if is_ours else read_har(path, loads(path))
    except OSError as error:
        raise Unusable(f"{path}: cannot be read: {error.strerror or error}") from None


def _is_jsonl(path: Path, head: bytes) -> bool:
    """Ours has a whole object on its first line and says `recording`; a HAR file has its `log` in the beginning."""
    if path.suffix.lower() == ".har":
        return False
    first = head.lstrip().split(b"\n", 1)[0]
    return path.suffix.lower() in (".jsonl", ".ndjson") or b'"recording"' in first or b'"log"' not in head

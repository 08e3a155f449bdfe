"""What the library of Socket.IO says goes into the journal as what it is: a client's mistake, or ours."""

from structlog.testing import capture_logs

from gateway.http.socketio.library import UNKNOWN_PACKET_ERROR, SocketIOLibraryLogger, log
from gateway.logging import SampledLogger


async def test_a_mistake_of_a_client_is_a_line_and_one_of_ours_has_its_traceback() -> None:
    with capture_logs() as journal:
        library = SocketIOLibraryLogger(SampledLogger(log))
        for words, error in (
            (UNKNOWN_PACKET_ERROR, IndexError("7")),
            ("post", ValueError("no")),
            ("connect", KeyError("ours")),
        ):
            try:
                raise error
            except (LookupError, ValueError):
                library.exception(words)
        library.error("Invalid session %s", "x" * 500)
    assert [(entry["log_level"], "exc_info" in entry) for entry in journal] == [
        ("info", False), ("info", False), ("error", True), ("info", False)]
    assert len(journal[-1]["text"]) == 200

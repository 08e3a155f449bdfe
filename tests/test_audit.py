"""The audit log: who did what, from where, with which key; only ever added to, and without secrets."""

import json
from pathlib import Path

from structlog.testing import capture_logs

from gateway.audit import AuditLog, append_line, audit_line
from gateway.ports import Caller


async def test_a_line_tells_who_did_what_and_a_file_is_added_to(tmp_path: Path) -> None:
    file = tmp_path / "data" / "audit.jsonl"
    append_line(file, audit_line(0, "first", "root", "", "", "x"))
    audit = AuditLog(file, lambda: 1.5)
    audit.write("session.deleted", Caller(user="ann", key="laptop", address="1.2.3.4"), "sess_1")
    audit.write("server.swept", None, "half \udcff a character\nand a line")
    audit.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[1] == {
        "at": "1970-01-01T00:00:01.500+00:00", "event": "session.deleted", "actor": "ann", "key": "laptop",
        "address": "1.2.3.4", "target": "sess_1",
    }
    assert [line["actor"] for line in lines] == ["root", "ann", "server"]
    assert lines[2]["target"] == "half ? a character\nand a line"
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_log_that_cannot_be_written_is_told_once_and_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with capture_logs() as lines:
        audit = AuditLog(tmp_path / "file" / "audit.jsonl", lambda: 0.0)
        for _ in range(3):
            audit.write("key.created", None, "x")
            audit.close()  # the lines so far are written
    assert [line["event"] for line in lines] == ["audit_not_written"]


async def test_every_line_of_a_burst_is_written_once_and_in_order(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    audit = AuditLog(file, lambda: 0.0)
    for number in range(2000):
        audit.write("session.created", None, str(number))
    audit.close()
    assert [json.loads(line)["target"] for line in file.read_text().splitlines()] == [str(n) for n in range(2000)]

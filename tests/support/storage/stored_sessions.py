"""A log in a file with some sessions in it, for those who look at files."""

from pathlib import Path

import gateway.model as m
from gateway.storage import UNSEALED, Database, Seal
from gateway.storage.log import LogFile, SqliteLog, open_log_file
from gateway.storage.log.segments import unseal_records
from tests.support.storage.event_logs import put


def session(name: str, turns: int = 2, *, asks: bool = False, owner: str = "ann") -> list[m.Record]:
    """A session of so many turns; the last one waits for somebody if it `asks`."""
    events: list[tuple[m.Event, str | None]] = [
        (m.SessionCreated(agent="a", owner=owner, settings=m.Settings(secrets={"api_key": "s3cret"})), None)]
    for number in range(turns):
        events += [(event, f"turn_{name}_{number}") for event in _turn(number)]
    if asks:
        asked = m.InputRequested(request_id=f"ask_{name}", ask=m.ContinuationAsk(turn=1, message="?"))
        events += [(event, f"turn_{name}_asks") for event in (
            m.TurnStarted(command_id="c"), asked, m.TurnSuspended(pending=(f"ask_{name}",)))]
    return [
        m.Record(seq=seq, at=float(seq), session_id=name, turn_id=turn_id, event=event)  # type: ignore[arg-type]
        for seq, (event, turn_id) in enumerate(events, 1)
    ]


def _turn(number: int) -> list[m.Event]:
    words, block = [f"word{n} " for n in range(5)], {"block_id": f"b{number}", "message_id": f"m{number}"}
    return [
        m.InputAccepted(command_id="c", command=m.SendMessage(content="hello")), m.TurnStarted(command_id="c"),
        m.MessageStarted(message_id=f"m{number}"), m.BlockStarted(**block, kind=m.BlockKind.TEXT),
        *(m.BlockDelta(**block, kind=m.BlockKind.TEXT, delta=word) for word in words),
        m.BlockEnded(**block, kind=m.BlockKind.TEXT, text="".join(words)), m.MessageEnded(message_id=f"m{number}"),
        m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
    ]


SESSIONS = {name: session(name, turns, asks=asks) for name, turns, asks in (
    ("s1", 3, False), ("s2", 0, False), ("s3", 1, True))}


async def store(path: Path, sessions: dict[str, list[m.Record]] | None = None, group: int = 2) -> None:
    """Write the sessions, a few records to a segment."""
    log = SqliteLog(Database(path, window=0.0))
    await log.open()
    for records in (SESSIONS if sessions is None else sessions).values():
        for start in range(0, len(records), group):
            await put(log, *records[start:start + group])
    await log.close()


def kept(path: Path, seal: Seal = UNSEALED) -> dict[str, list[m.Record]]:
    """Everything that is in the file."""
    with open_log_file(path) as file:
        return {head.session_id: unseal_records(file.records(head.session_id), seal) for head in file.heads()}


def segments(file: LogFile) -> int:
    return int(file.connection.execute("SELECT count(*) FROM segments").fetchone()[0])

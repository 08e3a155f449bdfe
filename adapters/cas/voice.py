"""How a projector of CAS speaks: what it says under which id, about which thread, and what its reading leaves out."""

from gateway.model import ROOT, Event, Record
from mappings.language import Table

from .previews import SILENCE, Frames
from .reading import Reading, passing_id, thread_id_of
from .turn import TurnState


class Voice:
    """One reading of a session; everything it remembers belongs to the turn."""

    def __init__(self, table: Table, reading: Reading) -> None:
        self.reading = reading
        self.speaker = table.speaker("json" if reading.as_list else "sse")
        self.turn = TurnState()
        self._passed = (0, 0)

    def _say(self, record: Record, cue: str = "", event_id: str | None = None, thread: str | None = None,
             **names: object) -> Frames:
        """An event that is kept; `thread` names the thread it is about, the record's own unless said otherwise."""
        event_id = event_id or record.event_id
        if thread is None and record.scope_id != ROOT:
            thread = thread_id_of(record.session_id, record.scope_id)
        extra = {"id": event_id, "thread_id": thread, **names}
        return self.speaker.cue(cue, record, extra) if cue else self.speaker.record(record, extra)

    def _passing(self, cue: str, record: Record, final_id: str, **names: object) -> Frames:
        """Something that is never kept, about the event that will have that id; its own id is a place to resume at."""
        seq, count = self._passed
        self._passed = (record.seq, count + 1 if seq == record.seq else 1)
        thread = None if record.scope_id == ROOT else thread_id_of(record.session_id, record.scope_id)
        own_id = passing_id(record.event_id, self._passed[1])
        return self.speaker.cue(cue, record, {"id": own_id, "thread_id": thread, "final_id": final_id, **names})

    def _heard(self, *scopes: str, words: bool = False) -> bool:
        """Whether this reading has what belongs to these scopes; the words of sub-agents stay in their threads."""
        if self.reading.thread is not None:
            return self.reading.thread in scopes
        return not words or ROOT in scopes

    def _plain(self, record: Record, event: Event) -> Frames:
        return self._say(record) if self._heard(record.scope_id) else SILENCE

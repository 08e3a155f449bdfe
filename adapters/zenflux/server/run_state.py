"""What a run costs, and the changes of its conversation, as the projector remembers them."""

import gateway.model as m
from gateway.json_values import JsonObject, JsonValue

from .frame_writer import FrameWriter
from .stream_options import StreamOptions
from .views import usage_names, user_id_of


class RunUsage:
    """The tokens and model calls of a run; `of_message` are the tokens of the message that is open."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.total, self.of_message = m.Usage(), m.Usage()
        self.llm_calls, self.model = 0, ""
        self.is_billed = False
        """Whether the agent itself has sent a bill: it knows better, and two bills might not agree."""

    def start_message(self, model: str | None) -> None:
        self.model, self.llm_calls, self.is_billed = model or self.model, self.llm_calls + 1, False

    def end_message(self, usage: m.Usage) -> None:
        self.total += usage
        self.of_message += usage

    def annotate(self, event: m.MessageAnnotated) -> None:
        if event.topic is m.AnnotationTopic.BILLING:
            self.is_billed = isinstance(event.content, dict) and "total_tokens" in event.content

    def bill(self, latency: float) -> JsonObject:
        return usage_names(self.total, llm_calls=self.llm_calls, model=self.model, latency=latency)


class ConversationChanges:
    """The conversation's title and metadata. The third frame of a run is its message: earlier changes wait for it."""

    def __init__(self, writer: FrameWriter, options: StreamOptions) -> None:
        self._writer = writer
        self._untitled = options.untitled
        self._title, self._created_at = options.title, options.created_at
        self._metadata = options.metadata
        self.user_id = options.user_id
        self._has_message = False
        self._held: list[tuple[str, JsonObject]] = []

    def begin_run(self, record: m.Record) -> None:
        """Write the conversation as it is, the second frame of a run."""
        self._has_message, self._held = False, []
        self._writer.cue(
            "conversation.opened", record, title=self._title or self._untitled, created_at=self._created_at,
            metadata=self._metadata,
        )

    def open_message(self, record: m.Record) -> None:
        """Write the changes that waited for the message of a run; those that follow do not wait."""
        self._has_message = True
        self.release(record)

    def release(self, record: m.Record) -> None:
        held, self._held = self._held, []
        for cue, names in held:
            self._writer.cue(cue, record, **names)

    def created(self, record: m.Record, event: m.SessionCreated) -> None:
        self._title, self._created_at, self._metadata = event.title, record.at, m.public_metadata(event.metadata)
        self.user_id = user_id_of(event.owner, event.metadata)

    def updated(self, record: m.Record, event: m.SessionUpdated) -> None:
        if event.title is not None:
            self._title = event.title
            self._add(record, "conversation.titled", title=event.title)
        if event.metadata is not None:
            before, self._metadata = self._metadata, m.public_metadata(event.metadata)
            if self._metadata != before:
                self._add(record, "conversation.tagged", metadata=self._metadata)

    def compacted(self, record: m.Record, event: m.SessionCompacted) -> None:
        self._add(record, "conversation.summed_up", summary=event.summary, count=event.archived)

    def _add(self, record: m.Record, cue: str, **names: JsonValue) -> None:
        """Keep a change until the run has a message; between two runs there is no stream that could get a change."""
        if self._writer.start is not None:
            self._held.append((cue, names))
            if self._has_message:
                self.release(record)

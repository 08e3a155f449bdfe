"""One dialect's table, compiled: frames, REST bodies, refusals and commands by their names."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar, get_type_hints

from gateway.marks import Marked, Problem, Problems
from gateway.model import EVENTS, AnyCommand, Event, FaultCode

from .check import COMMAND_OF, SSE, scope_of
from .compile import Compiler, Getter
from .draft import Draft, Frame, Input
from .expressions import Node, envelop
from .features import Level
from .filters import FILTERS, OTHERWISE, Filter, content_filters, enum_reader, word_map
from .jsonio import plain
from .names import ERROR_NAMES, PARTS, Vocabulary, bound, members, part_scope
from .speaker import Framing, Sayer, Speaker, framed, sayer, sse_mistake

Member = TypeVar("Member", bound=StrEnum)


class Table:
    """What one dialect calls things. Made by `load_table`, from a draft without mistakes."""

    def __init__(self, draft: Draft, vocabulary: Vocabulary, marked: Marked) -> None:
        self.dialect = draft.shape.dialect
        self.spec = draft.shape.spec
        self.support = {feature: Level(level) for feature, level in draft.shape.support.items()}
        self.heard = {**self.support, **{name: Level(level) for name, level in draft.shape.heard.items()}}
        """What our own client gets back from a server of the dialect: it reads what is told as something else."""
        self.notes = dict(draft.shape.notes)
        self._draft = draft
        self._vocabulary = vocabulary
        self._marked = marked
        self._words = {name: word_map(words) for name, words in draft.shape.enums.items()}
        self._filters: dict[str, Filter] = {**FILTERS, **self._words, **content_filters(_parts := {})}
        _parts.update({PARTS[kind]: self._part(kind, node) for kind, node in draft.parts.items()})
        self._objects = {name: self._getter(node, vocabulary.objects[name]) for name, node in draft.objects.items()}
        self._errors = {code: (refusal.status, self._getter(refusal.body, ERROR_NAMES))
                        for code, refusal in draft.errors.items()}
        self._inputs = {message: self._input(message, spelled) for message, spelled in draft.inputs.items()}
        self._speakers: dict[Framing, Speaker] = {}

    # -- what is said -------------------------------------------------------------------------------------------------

    def speaker(self, framing: Framing) -> Speaker:
        """The compiled frames in one framing, made once; raises `Problems` where an envelope does not fit it."""
        if framing not in self._speakers:
            self._speakers[framing] = self._compile(framing)
        return self._speakers[framing]

    def silent(self, event: Event) -> bool:
        """Is this event deliberately not said?"""
        return not self._draft.frames[self._cue_of(type(event), event.variant)]

    def object(self, name: str, /, **bindings: Any) -> Any:
        """A REST body, as plain JSON-able values."""
        return plain(self._objects[name](None, None, bindings))

    def error(self, code: FaultCode, /, **bindings: Any) -> tuple[int, Any]:
        """The status and body of a refusal; what is not bound is null."""
        status, body = self._errors[code if code in self._errors else OTHERWISE]
        status = code.status if status is None else status
        known = {**dict.fromkeys(ERROR_NAMES), "code": code, "status": status, **bindings}
        return status, plain(body(None, None, known))

    def word(self, enum_map: str, value: StrEnum | str) -> str:
        """How the dialect calls a member of one of the house's enums."""
        return str(self._words[enum_map](value))

    def meanings(self, enum_map: str, kind: type[Member], *preferred: Member) -> dict[str, Member]:
        """The same read back: what each word stands for.

        Of several members that share a word the preferred one is meant, else the one that is called so itself, else
        the first.
        """
        found: dict[str, Member] = {}
        namesakes = (member for member in kind if self.word(enum_map, member) == member)
        for member in (*preferred, *namesakes, *kind):
            found.setdefault(self.word(enum_map, member), member)
        return found

    # -- what is heard ------------------------------------------------------------------------------------------------

    def command(self, message: str, /, **bindings: Any) -> AnyCommand:
        """The command a client message stands for; raises `UnknownWord` for a word the table cannot read."""
        command, given = self._inputs[message]
        made: AnyCommand = command(**given(None, None, bindings))
        return made

    # -- compiling ----------------------------------------------------------------------------------------------------

    def _getter(self, node: Node, names: tuple[str, ...]) -> Getter:
        return Compiler(bound(names), self._filters).value(node)

    def _part(self, kind: str, node: Node | None) -> Filter | None:
        if node is None:
            return None
        get = Compiler(part_scope(PARTS[kind]), self._filters).value(node)
        return lambda part: get(None, part, {})

    def _input(self, message: str, spelled: Input) -> tuple[Any, Getter]:
        command = COMMAND_OF[spelled.command]
        reads = {name: word_map(words) for name, words in self._draft.shape.reads.items()}
        compiler = Compiler(bound(self._vocabulary.messages[message]), {**FILTERS, **reads})
        build = compiler.value(spelled.given)
        enums = {field: enum_reader(kind) for field, hint in get_type_hints(command).items()
                 for kind in members(hint) if isinstance(kind, type) and issubclass(kind, StrEnum)}
        if not enums:
            return command, build

        def converted(record: Any, subject: Any, extra: Mapping[str, Any]) -> dict[str, Any]:
            built = build(record, subject, extra)
            return {key: enums[key](value) if key in enums else value for key, value in built.items()}

        return command, converted

    def _compile(self, framing: Framing) -> Speaker:
        if framing == "sse":
            self._must_fit_sse()
        cues = {cue: self._sayer(cue, frames, framing) for cue, frames in self._draft.frames.items()}
        events = {
            event: {variant: cues[self._cue_of(event, variant)] for variant in event.variants or ("",)}
            for event in EVENTS
        }
        return Speaker(events, cues)

    def _cue_of(self, event: type[Event], variant: str) -> str:
        cue = f"{event.name}.{variant}"
        return cue if cue in self._draft.frames else event.name

    def _sayer(self, cue: str, frames: list[Frame], framing: Framing) -> Sayer:
        scope = scope_of(cue, self._vocabulary)
        assert scope is not None
        compiler = Compiler(scope, self._filters)
        whole = [envelop(self._envelope(frame, framing), frame.wire, frame.body) for frame in frames]
        return sayer([framed(node, framing, compiler) for node in whole], compiler)

    def _envelope(self, frame: Frame, framing: Framing) -> Node:
        special = self._draft.envelopes.get(frame.envelope + SSE) if framing == "sse" else None
        return special or self._draft.envelopes[frame.envelope]

    def _must_fit_sse(self) -> None:
        used = {id(envelope): envelope for frames in self._draft.frames.values() for frame in frames
                if (envelope := self._envelope(frame, "sse"))}
        mistakes = [mistake for envelope in used.values() if (mistake := sse_mistake(envelope))]
        if mistakes:
            raise Problems(Problem(self._marked.place(path, key=True), message) for path, message in mistakes)

"""The compiled table of one dialect: frames, REST bodies, errors and commands by their names."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Self, TypeVar, cast

import gateway.model as m
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import NO_FRAMES, Binding, CueEncoder, FrameCursor, Frames, Framing
from gateway.yaml_positions import Problem, Problems, YamlDocument

from .check import COMMANDS_BY_KIND, SSE_SUFFIX, scope_of
from .client_messages import ClientMessage, spelled_message
from .compile import ExpressionCompiler, Getter
from .content_decoder import ContentDecoder
from .encoder import FrameEncoder, compile_cue, frame_segments, framing_problem
from .explanation import Explainer, Explanation
from .expressions import AS, EACH, FITTING, Node, wrap_in_envelope
from .filters import (
    ANY_OTHER,
    CONTENT_FILTER,
    FILTERS,
    INVERSES,
    PARTS_FILTER,
    Filter,
    bindings_of,
    content_filters,
    enum_reader,
    read_word,
    row_filters,
    to_builtins,
    word_filter,
    word_reader,
    write_word,
)
from .frame_decoder import FrameDecoder
from .object_decoder import ObjectDecoder, read_each
from .parsed_table import FrameTemplate, InputTemplate, ParsedTable
from .routes import query_values
from .row_notes import RowNotes
from .scopes import (
    ERROR_NAMES,
    MODEL_ENUMS,
    PART_TYPES,
    Scope,
    Vocabulary,
    extra_scope,
    object_scope,
    part_scope,
    type_hints,
    union_members,
)
from .spellings import Inverses, SpellingCompiler
from .wire_schemas import TypeSchema, WireSchemas

Member = TypeVar("Member", bound=StrEnum)


class Table:
    """The names that one dialect uses; made by `load_table` from a draft without problems."""

    def __deepcopy__(self, memo: object) -> Self:
        """A table never changes, so copies of a projector share it."""
        return self

    def __init__(self, draft: ParsedTable, vocabulary: Vocabulary, marked: YamlDocument) -> None:
        self.dialect = draft.shape.dialect
        self.spec = draft.shape.spec
        self.support = {feature: m.SupportLevel(level) for feature, level in draft.shape.support.items()}
        self.client_support = {
            **self.support,
            **{name: m.SupportLevel(level) for name, level in draft.shape.client_support.items()},
        }
        """Features that our own client gets back from a server of the dialect, since it reads their other form."""
        self.notes = dict(draft.shape.notes)
        self._draft = draft
        self._vocabulary = vocabulary
        self._marked = marked
        self.rows = RowNotes(draft, marked)
        """Where the rows of frames stand, and why they are as they are."""
        self._words = {name: word_filter(words) for name, words in draft.shape.enums.items()}
        self._objects: dict[str, Getter] = {}
        self._object_readers: dict[str, ObjectDecoder] = {}
        self._filters: dict[str, Filter] = {
            **FILTERS, **self._words, **content_filters(_parts := {}), **row_filters(self._objects, draft.objects)}
        _parts.update({PART_TYPES[kind]: self._part(kind, node) for kind, node in draft.parts.items()})
        self._objects.update({name: self._getter(node, object_scope(vocabulary.objects[name]))
                              for name, node in draft.objects.items()})
        self._errors = {code: (refusal.status, self._getter(refusal.body, extra_scope(ERROR_NAMES)))
                        for code, refusal in draft.errors.items()}
        self._encoders: dict[Framing, FrameEncoder] = {}
        inverses = self._inverses()
        self._spellings = SpellingCompiler(draft, vocabulary, inverses)
        self._messages = self._client_messages(inverses)

    # -- writing ----------------------------------------------------------------------------------------------------

    def encoder(self, framing: Framing) -> FrameEncoder:
        """The compiled frames in one framing, made once; raises `Problems` if an envelope does not fit it."""
        if framing not in self._encoders:
            self._encoders[framing] = self._compile(framing)
        return self._encoders[framing]

    def silent(self, event: m.Event) -> bool:
        """Whether the table deliberately has no frame for this event."""
        name = type(event).name
        by_cue = self._draft.shape.events
        cues = by_cue.get(f"{name}.{event.variant}", by_cue.get(name, ()))
        return not cues and not self._draft.written(self.cue_of(type(event), event.variant))

    def cue_of(self, event: type[m.Event], variant: str = "") -> str:
        """The row that spells the events of this kind and variant."""
        cue = f"{event.name}.{variant}"
        return cue if cue in self._draft.frames else event.name

    def object(self, name: str, subject: Binding = None, /, **bindings: Binding) -> JsonObject:
        """A REST body, as plain JSON values: of the fields of a struct, of bindings, or of both."""
        given = bindings if subject is None else {**bindings_of(subject), **bindings}
        body: JsonObject = to_builtins(self._objects[name](None, None, given))
        return body

    def message(self, name: str, command: Binding = None, /, **bindings: Binding) -> JsonObject:
        """What a client sends for a command, or for bindings, as plain JSON values."""
        given = bindings if command is None else {**bindings_of(command), **bindings}
        body: JsonObject = to_builtins(self._messages[name].write(given))
        return body

    def error(self, code: m.FaultCode, /, **bindings: Binding) -> tuple[int, Any]:
        """The status and the body of an error; names without a binding are null."""
        status, body = self._errors[code if code in self._errors else ANY_OTHER]
        status = code.status if status is None else status
        known = {**dict.fromkeys(ERROR_NAMES), "code": code, "status": status, **bindings}
        return status, to_builtins(body(None, None, known))

    def word(self, enum_map: str, value: StrEnum | str) -> str:
        """The dialect's word for a member of an enum."""
        return str(self._words[enum_map](value))

    def frame_name(self, cue: str) -> str:
        """The wire name of the first frame of a cue."""
        return self._draft.written(cue)[0].wire

    def meanings(self, enum_map: str, kind: type[Member], *preferred: Member) -> dict[str, Member]:
        """The member of an enum that each word of the wire stands for.

        If several members share a word, the preferred one counts, else the one whose own value is the word, else the
        first.
        """
        found: dict[str, Member] = {}
        namesakes = (member for member in kind if self.word(enum_map, member) == member)
        for member in (*preferred, *namesakes, *kind):
            found.setdefault(self.word(enum_map, member), member)
        return found

    # -- reading ----------------------------------------------------------------------------------------------------

    def command(self, message: str, /, **bindings: Binding) -> m.AnyCommand:
        """The command for a client message; raises `UnknownWord` for a word that the table cannot read."""
        return self._messages[message].command(bindings)

    def read_message(self, message: str, body: JsonValue, /) -> dict[str, Any]:
        """What a client message says, by the names of its row. Raises `UnreadableBody`, which names the member."""
        return self._messages[message].read(body)

    def read_command(self, message: str, body: JsonValue, /, **given: Binding) -> m.AnyCommand:
        """The command of a client message as it came; `given` wins over what it says. Raises `UnreadableBody`."""
        row = self._messages[message]
        bindings = row.read(body)
        return row.command(bindings | given if given else bindings)

    def find_message(self, body: JsonValue, *among: str) -> str | None:
        """The message that this body is, by the constants of the rows, all of which it must have."""
        rows = sorted(among or self._messages, key=lambda name: -self._messages[name].exactness)
        return next((name for name in rows if self._messages[name].fits(body)), None)

    def read_object(self, name: str, body: JsonValue, /) -> dict[str, Any]:
        """The bindings of a REST body. Members that the row does not have are passed over. Raises `UnreadableBody`."""
        return self._object_reader(name).read(body)

    def is_object(self, name: str, body: JsonValue, /) -> bool:
        """Whether nothing in the body is another constant than in the row."""
        return self._object_reader(name).fits(body)

    def _object_reader(self, name: str) -> ObjectDecoder:
        if name not in self._object_readers:
            self._object_readers[name] = self.reader(name)
        return self._object_readers[name]

    def read_query(self, name: str, query: Mapping[str, str], /) -> dict[str, Any]:
        """The bindings of a query, by the names of a row of `objects`. Raises `UnreadableBody`."""
        return self.read_object(name, query_values(name, self._draft.objects[name], self._draft.shape.types, query))

    def read_content(self, value: JsonValue) -> m.Content:
        """Content as the dialect spells it: a text, or a list of blocks, of which unknown ones are passed over."""
        return self._content.content(value)

    def read_part(self, block: JsonValue) -> m.AnyPart | None:
        """A content block; None for one that the table does not have."""
        return self._content.part(block)

    def decoder(
        self, *framings: Framing, wanted: Mapping[str, Sequence[str]] | None = None, always: Sequence[str] = (),
    ) -> FrameDecoder:
        """The frames read back; of the cues in `wanted` only these names are bound, of all cues those in `always`."""
        return FrameDecoder(self._spellings.forms(framings), wanted, always)

    def reader(self, *names: str) -> ObjectDecoder:
        """Rows of `objects` read back: one, or several that the same body could be."""
        return ObjectDecoder([self._spellings.object_spelling(name) for name in names])

    def schemas(self, of_type: TypeSchema, reference: Callable[[str], str]) -> WireSchemas:
        """JSON Schemas of what the table spells."""
        return WireSchemas(self._draft, self._vocabulary, of_type, reference)

    def explanation(self, *framings: Framing) -> Explanation:
        """What goes out and what comes back, row by row."""
        meanings = {name: self._meanings(name, enum)
                    for name in self._words if (enum := MODEL_ENUMS.get(name.partition("@")[0]))}
        return Explainer(self._draft, self._spellings, meanings, self.rows, framings).explain()

    # -- compiling ----------------------------------------------------------------------------------------------------

    def _inverses(self) -> Inverses:
        """What gives back a value that the table's filters have changed."""
        words = {name: ("text", word_reader(self._meanings(name, enum), self._other_meaning(name, enum)))
                 for name in self._words if (enum := MODEL_ENUMS.get(name.partition("@")[0]))}
        compiler = SpellingCompiler(self._draft, self._vocabulary, {**INVERSES, **words})
        self._content = ContentDecoder([*compiler.parts()])
        rows = {f"{word} {name}": ("list", self._reader_of_each(name, is_lenient=word == FITTING))
                for name in self._draft.objects for word in (EACH, FITTING)}
        rows |= {f"{AS} {name}": ("object", partial(self.read_object, name)) for name in self._draft.objects}
        return {**INVERSES, **words, **rows, CONTENT_FILTER: ("content", self._content.content),
                PARTS_FILTER: ("content", self._content.parts)}

    def _reader_of_each(self, name: str, *, is_lenient: bool) -> Filter:
        def read(bodies: JsonValue) -> Any:
            return read_each(partial(self.read_object, name), bodies, is_lenient=is_lenient)

        return read

    def _client_messages(self, inverses: Inverses) -> dict[str, ClientMessage]:
        """Clients are read strictly: a block of an unknown kind and an unknown word are refused."""
        reads = self._draft.shape.reads
        sent: Inverses = {
            **inverses, CONTENT_FILTER: ("content", self._content.content_sent),
            PARTS_FILTER: ("content", self._content.parts_sent),
            **{name: ("any", read_word(words)) for name, words in reads.items()},
        }
        compiler = SpellingCompiler(self._draft, self._vocabulary, sent)
        filters = {**self._filters, **{name: write_word(words) for name, words in reads.items()}}
        return {name: self._bound_message(name, row) if row.is_bound_by_code
                else spelled_message(name, row, compiler, filters) for name, row in self._draft.inputs.items()}

    def _meanings(self, name: str, enum: type[StrEnum]) -> dict[str, StrEnum]:
        """What each word of an enum stands for, as the table says it where several members share a word."""
        named = {word: enum(meant if isinstance(meant, str) else meant.member)
                 for word, meant in self._draft.shape.meanings.get(name, {}).items() if word != ANY_OTHER}
        return {**self.meanings(name, enum), **named}

    def _other_meaning(self, name: str, enum: type[StrEnum]) -> StrEnum | None:
        """What a word of an enum is read as that the table does not have."""
        meant = self._draft.shape.meanings.get(name, {}).get(ANY_OTHER)
        return enum(meant if isinstance(meant, str) else meant.member) if meant is not None else None

    def _getter(self, node: Node, scope: Scope) -> Getter:
        return ExpressionCompiler(scope, self._filters).value(node)

    def _part(self, kind: str, node: Node | None) -> Filter | None:
        if node is None:
            return None
        get = ExpressionCompiler(part_scope(PART_TYPES[kind]), self._filters).value(node)
        return lambda part: get(None, part, {})

    def _bound_message(self, name: str, row: InputTemplate) -> ClientMessage:
        """A message whose names are bound by code."""
        command = COMMANDS_BY_KIND[row.command]
        reads = {name: word_filter(words) for name, words in self._draft.shape.reads.items()}
        build = ExpressionCompiler(extra_scope(self._vocabulary.bound_for(name)), {**FILTERS, **reads}).value(row.given)
        enums = {field: enum_reader(kind) for field, hint in type_hints(command).items()
                 for kind in union_members(hint) if isinstance(kind, type) and issubclass(kind, StrEnum)}

        def make(bindings: Mapping[str, object]) -> m.AnyCommand:
            built = build(None, None, bindings)
            if enums:
                built = {key: enums[key](value) if key in enums else value for key, value in built.items()}
            return cast(m.AnyCommand, command(**built))

        return ClientMessage(name, make)

    def _compile(self, framing: Framing) -> FrameEncoder:
        self._check_framing(framing)
        cues = {cue: self._cue_encoder(cue, written, framing)
                for cue, frames in self._draft.frames.items() if (written := self._draft.written(cue)) or not frames}
        events = {
            event: {
                variant: cues.get(self.cue_of(event, variant), _say_nothing) for variant in event.variants or ("",)
            }
            for event in m.EVENTS
        }
        return FrameEncoder(events, cues)

    def _cue_encoder(self, cue: str, frames: list[FrameTemplate], framing: Framing) -> CueEncoder:
        scope = scope_of(cue, self._vocabulary)
        assert scope is not None
        compiler = ExpressionCompiler(scope, self._filters)
        whole = [
            (frame.wire, wrap_in_envelope(self._envelope(frame, framing), frame.wire, frame.body)) for frame in frames
        ]
        return compile_cue([frame_segments(node, wire, framing, compiler) for wire, node in whole], compiler)

    def _envelope(self, frame: FrameTemplate, framing: Framing) -> Node:
        special = self._draft.envelopes.get(frame.envelope + SSE_SUFFIX) if framing == "sse" else None
        return special or self._draft.envelopes[frame.envelope]

    def _check_framing(self, framing: Framing) -> None:
        used = {id(envelope): envelope for cue in self._draft.frames for frame in self._draft.written(cue)
                if (envelope := self._envelope(frame, framing))}
        mistakes = [mistake for envelope in used.values() if (mistake := framing_problem(envelope, framing))]
        if mistakes:
            raise Problems(Problem(self._marked.position(path, key=True), message) for path, message in mistakes)


def _say_nothing(record: object, event: object, extra: object, cursor: FrameCursor = None, /) -> Frames:
    return NO_FRAMES

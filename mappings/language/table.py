"""The compiled table of one dialect: frames, REST bodies, errors and commands by their names."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar, get_type_hints

import gateway.model as m
from gateway.ports import NO_FRAMES, CueEncoder, FrameCursor, Frames, Framing
from gateway.yaml_positions import Problem, Problems, YamlDocument

from .check import COMMANDS_BY_KIND, SSE_SUFFIX, scope_of
from .compile import ExpressionCompiler, Getter
from .content_decoder import ContentDecoder
from .encoder import FrameEncoder, compile_cue, frame_segments, framing_problem
from .explanation import Explainer, Explanation
from .expressions import Node, wrap_in_envelope
from .features import SupportLevel
from .filters import (
    ANY_OTHER,
    CONTENT_FILTER,
    FILTERS,
    INVERSES,
    PARTS_FILTER,
    Filter,
    content_filters,
    enum_reader,
    to_builtins,
    word_filter,
    word_reader,
)
from .frame_decoder import FrameDecoder
from .object_decoder import ObjectDecoder
from .scopes import ERROR_NAMES, MODEL_ENUMS, PART_TYPES, Vocabulary, extra_scope, part_scope, union_members
from .shape import FrameTemplate, InputTemplate, ParsedTable
from .spellings import Inverses, SpellingCompiler

Member = TypeVar("Member", bound=StrEnum)


class Table:
    """The names that one dialect uses; made by `load_table` from a draft without problems."""

    def __init__(self, draft: ParsedTable, vocabulary: Vocabulary, marked: YamlDocument) -> None:
        self.dialect = draft.shape.dialect
        self.spec = draft.shape.spec
        self.support = {feature: SupportLevel(level) for feature, level in draft.shape.support.items()}
        self.client_support = {
            **self.support,
            **{name: SupportLevel(level) for name, level in draft.shape.heard.items()},
        }
        """Features that our own client gets back from a server of the dialect, since it reads their other form."""
        self.notes = dict(draft.shape.notes)
        self._draft = draft
        self._vocabulary = vocabulary
        self._marked = marked
        self._words = {name: word_filter(words) for name, words in draft.shape.enums.items()}
        self._filters: dict[str, Filter] = {**FILTERS, **self._words, **content_filters(_parts := {})}
        _parts.update({PART_TYPES[kind]: self._part(kind, node) for kind, node in draft.parts.items()})
        self._objects = {name: self._getter(node, vocabulary.objects[name]) for name, node in draft.objects.items()}
        self._errors = {code: (refusal.status, self._getter(refusal.body, ERROR_NAMES))
                        for code, refusal in draft.errors.items()}
        self._inputs = {message: self._input(message, spelled) for message, spelled in draft.inputs.items()}
        self._encoders: dict[Framing, FrameEncoder] = {}
        self._spellings = SpellingCompiler(draft, vocabulary, self._inverses())

    # -- what is said -------------------------------------------------------------------------------------------------

    def encoder(self, framing: Framing) -> FrameEncoder:
        """The compiled frames in one framing, made once; raises `Problems` if an envelope does not fit it."""
        if framing not in self._encoders:
            self._encoders[framing] = self._compile(framing)
        return self._encoders[framing]

    def silent(self, event: m.Event) -> bool:
        """Is this event deliberately not said?"""
        name = type(event).name
        by_cue = self._draft.shape.events
        cues = by_cue.get(f"{name}.{event.variant}", by_cue.get(name, ()))
        return not cues and not self._draft.written(self._cue_of(type(event), event.variant))

    def object(self, name: str, /, **bindings: Any) -> Any:
        """A REST body, as plain JSON values."""
        return to_builtins(self._objects[name](None, None, bindings))

    def error(self, code: m.FaultCode, /, **bindings: Any) -> tuple[int, Any]:
        """The status and the body of an error; names without a binding are null."""
        status, body = self._errors[code if code in self._errors else ANY_OTHER]
        status = code.status if status is None else status
        known = {**dict.fromkeys(ERROR_NAMES), "code": code, "status": status, **bindings}
        return status, to_builtins(body(None, None, known))

    def word(self, enum_map: str, value: StrEnum | str) -> str:
        """The dialect's word for a member of an enum."""
        return str(self._words[enum_map](value))

    def meanings(self, enum_map: str, kind: type[Member], *preferred: Member) -> dict[str, Member]:
        """The reverse: the member that each word stands for.

        If several members share a word, the preferred one counts, else the one whose own value is the word, else the
        first.
        """
        found: dict[str, Member] = {}
        namesakes = (member for member in kind if self.word(enum_map, member) == member)
        for member in (*preferred, *namesakes, *kind):
            found.setdefault(self.word(enum_map, member), member)
        return found

    # -- what is heard ------------------------------------------------------------------------------------------------

    def command(self, message: str, /, **bindings: Any) -> m.AnyCommand:
        """The command for a client message; raises `UnknownWord` for a word that the table cannot read."""
        command, given = self._inputs[message]
        made: m.AnyCommand = command(**given(None, None, bindings))
        return made

    def read_content(self, value: Any) -> m.Content:
        """Content as the dialect spells it: a text, or a list of blocks, of which unknown ones are passed over."""
        return self._content.content(value)

    def read_part(self, block: Any) -> m.AnyPart | None:
        """A content block; None for one that the table does not have."""
        return self._content.part(block)

    def decoder(self, *framings: Framing, wanted: Mapping[str, Sequence[str]] | None = None) -> FrameDecoder:
        """The frames read back; of the cues in `wanted` only these names are bound, of other cues none."""
        return FrameDecoder(self._spellings.forms(framings), wanted)

    def reader(self, *names: str) -> ObjectDecoder:
        """Rows of `objects` read back: one, or several that the same body could be."""
        return ObjectDecoder([self._spellings.object_spelling(name) for name in names])

    def explanation(self, *framings: Framing) -> Explanation:
        """What goes out and what comes back, row by row."""
        meanings = {name: self._meanings(name, enum)
                    for name in self._words if (enum := MODEL_ENUMS.get(name.partition("@")[0]))}
        return Explainer(self._draft, self._spellings, meanings, self._marked, framings).explain()

    # -- compiling ----------------------------------------------------------------------------------------------------

    def _inverses(self) -> Inverses:
        """What gives back a value that the table's filters have changed."""
        words = {name: ("text", word_reader(self._meanings(name, enum)))
                 for name in self._words if (enum := MODEL_ENUMS.get(name.partition("@")[0]))}
        compiler = SpellingCompiler(self._draft, self._vocabulary, {**INVERSES, **words})
        self._content = ContentDecoder([*compiler.parts()])
        return {**INVERSES, **words, CONTENT_FILTER: ("content", self._content.content),
                PARTS_FILTER: ("content", self._content.parts)}

    def _meanings(self, name: str, enum: type[StrEnum]) -> dict[str, StrEnum]:
        """What each word of an enum stands for, as the table says it where several members share a word."""
        named = {word: enum(meant if isinstance(meant, str) else meant.member)
                 for word, meant in self._draft.shape.meanings.get(name, {}).items()}
        return {**self.meanings(name, enum), **named}

    def _getter(self, node: Node, names: tuple[str, ...]) -> Getter:
        return ExpressionCompiler(extra_scope(names), self._filters).value(node)

    def _part(self, kind: str, node: Node | None) -> Filter | None:
        if node is None:
            return None
        get = ExpressionCompiler(part_scope(PART_TYPES[kind]), self._filters).value(node)
        return lambda part: get(None, part, {})

    def _input(self, message: str, spelled: InputTemplate) -> tuple[Any, Getter]:
        command = COMMANDS_BY_KIND[spelled.command]
        reads = {name: word_filter(words) for name, words in self._draft.shape.reads.items()}
        compiler = ExpressionCompiler(extra_scope(self._vocabulary.messages[message]), {**FILTERS, **reads})
        build = compiler.value(spelled.given)
        enums = {field: enum_reader(kind) for field, hint in get_type_hints(command).items()
                 for kind in union_members(hint) if isinstance(kind, type) and issubclass(kind, StrEnum)}
        if not enums:
            return command, build

        def converted(record: Any, subject: Any, extra: Mapping[str, Any]) -> dict[str, Any]:
            built = build(record, subject, extra)
            return {key: enums[key](value) if key in enums else value for key, value in built.items()}

        return command, converted

    def _compile(self, framing: Framing) -> FrameEncoder:
        self._check_framing(framing)
        cues = {cue: self._cue_encoder(cue, written, framing)
                for cue, frames in self._draft.frames.items() if (written := self._draft.written(cue)) or not frames}
        events = {
            event: {
                variant: cues.get(self._cue_of(event, variant), _say_nothing) for variant in event.variants or ("",)
            }
            for event in m.EVENTS
        }
        return FrameEncoder(events, cues)

    def _cue_of(self, event: type[m.Event], variant: str) -> str:
        cue = f"{event.name}.{variant}"
        return cue if cue in self._draft.frames else event.name

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


def _say_nothing(record: Any, event: Any, extra: Any, cursor: FrameCursor = None, /) -> Frames:
    return NO_FRAMES

"""Checks a table: every event and enum member is mapped, and every name is known. Reports all problems."""

from collections.abc import Collection, Iterable

import msgspec

import gateway.model as m
from gateway.field_errors import YAML_NOUNS, describe_struct_error
from gateway.yaml_positions import NodePath, suggest

from .encoder import sse_problem
from .expressions import BODY, SPLICE, Array, Constant, Node, Object, slots, splices_body
from .features import FEATURES
from .filters import ANY_OTHER, CONTENT_FILTER, FILTERS
from .filters import PARTS_FILTER as AS_PARTS
from .parsed_table import DEFAULT_ENVELOPE, FrameTemplate, InputTemplate, ParsedTable, ProblemCollector
from .scopes import (
    ENVELOPE_NAMES,
    ERROR_NAMES,
    EVENT_CUES,
    MODEL_ENUMS,
    PART_TYPES,
    Scope,
    Vocabulary,
    command_scope,
    cue_scope,
    event_scope,
    extra_scope,
    further_part_scope,
    object_scope,
    part_scope,
    type_hints,
)
from .slot_checker import InSection, SlotChecker
from .value_types import CHECKS, SOME_BODY, WHOLE_BODY, parse_type

SSE_SUFFIX = "@sse"
COMMANDS_BY_KIND = {command.kind: command for command in m.COMMANDS}


def check_table(
    draft: ParsedTable, vocabulary: Vocabulary, findings: ProblemCollector, before: ParsedTable | None = None
) -> None:
    """`before` is the table without its overrides, which may have changed what a row binds."""
    _TableCheck(draft, vocabulary, findings, before or draft).run()


def scope_of(cue: str, vocabulary: Vocabulary) -> Scope | None:
    """The names that a cue's frames may use; None for a cue that no code raises."""
    if cue in vocabulary.cues:
        return cue_scope(cue, vocabulary)
    return event_scope(*EVENT_CUES[cue], vocabulary) if cue in EVENT_CUES else None


def reading_scope(cue: str, vocabulary: Vocabulary, draft: ParsedTable) -> Scope:
    """The names that a frame of the cue may bind.

    They are the names of the cue; those of all other cues, since other servers may say several things in one frame; and
    names that only reading binds, which have a type in the table.
    """
    names = {name for names in (*vocabulary.cues.values(), *vocabulary.names.values()) for name in names}
    typed = {name.partition(".")[0] for name, spelled in draft.shape.types.items() if isinstance(spelled, str)}
    return {**extra_scope(names | typed | _typed_in(cue, draft)), **(scope_of(cue, vocabulary) or {})}


def object_reading_scope(row: str, vocabulary: Vocabulary, draft: ParsedTable) -> Scope:
    """The names that a body of the row may bind: those of the row, and those that have a type for it in the table."""
    return {**extra_scope(_typed_in(row, draft)), **object_scope(vocabulary.objects[row])}


def _typed_in(row: str, draft: ParsedTable) -> set[str]:
    types = draft.shape.types.get(row)
    return {name.partition(".")[0] for name in types} if isinstance(types, dict) else set()


class _TableCheck:
    def __init__(
        self, draft: ParsedTable, vocabulary: Vocabulary, findings: ProblemCollector, before: ParsedTable
    ) -> None:
        self.draft, self.before = draft, before
        self.vocabulary = vocabulary
        self.add = findings.add
        self.slots = SlotChecker(draft, findings)

    def run(self) -> None:
        for section, look in {
            "enums": self._enums, "meanings": self._meanings, "types": self._types, "reads": self._reads,
            "events": self._events, "envelopes": self._envelopes, "parts": self._parts,
            "frames": self._frames, "inputs": self._inputs, "objects": self._objects, "errors": self._errors,
            "support": self._support,
        }.items():
            if section in self._missing_sections():
                self._whole_section(section)
            elif section not in self.draft.broken:
                look()
        self.slots.report_missing()

    def _missing_sections(self) -> set[str]:
        """The sections that a table must have and that this table lacks."""
        needed = {"frames", "errors", "support", *(("inputs",) if self.vocabulary.messages else ()),
                  *(("objects",) if self.vocabulary.objects else ())}
        return needed - self.draft.shape.model_fields_set - self.draft.broken

    def _whole_section(self, section: str) -> None:
        wanted: dict[str, Iterable[str]] = {
            "frames": [*(event.name for event in m.EVENTS), *self.vocabulary.cues], "errors": list(m.FaultCode),
            "inputs": self.vocabulary.messages, "objects": self.vocabulary.objects, "support": FEATURES,
        }
        self.add((), f"there is no section '{section}'", f"it is to spell {', '.join(wanted[section])}")

    # -- words --------------------------------------------------------------------------------------------------------

    def _enums(self) -> None:
        for name, words in self.draft.shape.enums.items():
            enum = MODEL_ENUMS.get(name.partition("@")[0])
            if enum is None:
                self.add(("enums", name), f"the model has no enum '{name}'", suggest(name, MODEL_ENUMS), key=True)
                continue
            self._unknown("enums", name, words, [*enum, ANY_OTHER], f"{name} has no member")
            missing = [member for member in enum if member not in words]
            if missing and ANY_OTHER not in words:
                hint = "map every member, or write '\"*\": …' for all the rest"
                self.add(("enums", name), f"{name} does not map {', '.join(missing)}", hint, key=True)

    def _meanings(self) -> None:
        """Words that several members share, and the member that each is read as."""
        enums = self.draft.shape.enums
        for name, words in self.draft.shape.meanings.items():
            if name not in enums:
                self.add(("meanings", name), f"there are no enums '{name}'", suggest(name, enums), key=True)
                continue
            own = [word for word, meant in words.items() if isinstance(meant, str) and word != ANY_OTHER]
            self._unknown("meanings", name, own, [str(word) for word in enums[name].values()], f"{name} has no word")
            members = list(MODEL_ENUMS.get(name.partition("@")[0], ()))
            for word, meant in words.items():
                member = meant if isinstance(meant, str) else meant.member
                if member not in members:
                    self.add(("meanings", name, word), f"{name} has no member '{member}'", suggest(member, members))

    def _types(self) -> None:
        bound = _bound([*self.draft.nodes(), *self.before.nodes()])
        for name, spelled in self.draft.shape.types.items():
            if isinstance(spelled, dict):
                self._types_of_row(name, spelled)
                continue
            if name not in bound:
                self.add(("types", name), f"no row binds '${name}'", suggest(name, bound), key=True)
            self._type(("types", name), spelled)
            if name == BODY and spelled not in (WHOLE_BODY, SOME_BODY):
                hint = f"write {WHOLE_BODY}, or {SOME_BODY} if it may be missing"
                self.add(("types", name), "the only type of a body is object", hint)

    def _types_of_row(self, row: str, types: dict[str, str]) -> None:
        nodes = [*self.draft.rows(row), *self.before.rows(row)]
        if not nodes:
            known = [*self.draft.frames, *self.draft.inputs, *self.draft.objects]
            self.add(("types", row), f"there is no row '{row}'", suggest(row, known), key=True)
        bound = _bound(nodes)
        for name, spelled in types.items():
            if nodes and name not in bound:
                self.add(("types", row, name), f"'{row}' does not bind '${name}'", suggest(name, bound), key=True)
            self._type(("types", row, name), spelled)

    def _type(self, path: NodePath, spelled: str) -> None:
        if parse_type(spelled) is None:
            hint = f"types are {', '.join(CHECKS)}; '!' behind one: must be there; '?': need not fit"
            self.add(path, f"there is no type '{spelled}'", hint)

    def _events(self) -> None:
        """Where a dialect says events by cues of its own, each cue stands for an event, and each event has a row."""
        events = self.draft.shape.events
        self._unknown("events", None, events, [*EVENT_CUES, ANY_OTHER], "there is no event")
        for event, cues in events.items():
            for index, cue in enumerate(cues):
                if cue not in self.vocabulary.cues:
                    hint = self.vocabulary.cue_hint(cue, self.vocabulary.cues)
                    self.add(("events", event, index), f"nobody raises a cue '{cue}'", hint)
        if events:
            cues_of_events = {cue for cues in events.values() for cue in cues}
            for cue in self.vocabulary.cues:
                if cue not in cues_of_events:
                    hint = "name it under its events, or under '\"*\"' if it says none"
                    self.add(("events",), f"the cue '{cue}' stands for no event", hint, key=True)

    def _reads(self) -> None:
        for name in self.draft.shape.reads:
            if name in FILTERS:
                self.add(("reads", name), f"'{name}' is a filter already", "take another name", key=True)

    # -- frames -------------------------------------------------------------------------------------------------------

    def _envelopes(self) -> None:
        if DEFAULT_ENVELOPE not in self.draft.envelopes and any(self.draft.frames.values()):
            self.add(("envelopes",), "there is no envelope 'default'", key=True)
        for name, envelope in self.draft.envelopes.items():
            _, at, framing = name.partition("@")
            if at and framing != "sse":
                self.add(("envelopes", name), f"there is no framing '{framing}'", "'@sse' is the only one", key=True)
            elif at and (mistake := sse_problem(envelope)):
                self.add(*mistake, key=True)

    def _frames(self) -> None:
        for cue, frames in self.draft.frames.items():
            scope = scope_of(cue, self.vocabulary)
            if scope is None and (self.draft.written(cue) or not frames):
                hint = self.vocabulary.cue_hint(cue, [*EVENT_CUES, *self.vocabulary.cues])
                self.add(("frames", cue), f"nobody raises a cue '{cue}'", hint, key=True)
            for frame in frames:
                if frame.read_only:
                    self._known_envelope(frame)
                elif scope is not None:
                    self.slots.check(frame.body, scope, cue)
                    self._envelope_of(frame, scope, cue)
                for other in frame.also:
                    self.slots.check(other.body, reading_scope(cue, self.vocabulary, self.draft), cue)
        self._every_event()
        self._every("frames", self.vocabulary.cues, "cue", f"write [] if {self.draft.shape.dialect} says nothing")

    def _envelope_of(self, frame: FrameTemplate, scope: Scope, cue: str) -> None:
        if "envelopes" in self.draft.broken:
            return
        for name in (frame.envelope, frame.envelope + SSE_SUFFIX):
            envelope = self.draft.envelopes.get(name)
            if envelope is None:
                continue
            self.slots.check(envelope, {**scope, **ENVELOPE_NAMES}, cue)
            if splices_body(envelope) and isinstance(frame.body, Array | Constant):
                self.add(frame.body.path, f"the envelope '{name}' splices the body, and this one is not an object")
        self._known_envelope(frame)

    def _known_envelope(self, frame: FrameTemplate) -> None:
        if frame.envelope not in self.draft.envelopes and frame.envelope != DEFAULT_ENVELOPE:
            hint = suggest(frame.envelope, self.draft.envelopes)
            self.add((*frame.path, "envelope"), f"there is no envelope '{frame.envelope}'", hint)

    def _every_event(self) -> None:
        spelled = {**self.draft.frames, **self.draft.shape.events}
        for event in m.EVENTS:
            missing = [variant for variant in event.variants or ("",) if f"{event.name}.{variant}" not in spelled]
            if event.name in spelled or not missing:
                continue
            what = f"'{event.name}' is not spelled"
            some = f" for {', '.join(missing)}" if len(missing) < len(event.variants) else ""
            hint = f"write '{event.name}: []' if {self.draft.shape.dialect} says nothing"
            self.add(("frames",), what + some, hint, key=True)

    def _parts(self) -> None:
        self._unknown("parts", None, self.draft.parts, PART_TYPES, "there is no kind of part")
        for kind, part in self.draft.parts.items():
            if part is not None and kind in PART_TYPES:
                self.slots.check(part, part_scope(PART_TYPES[kind]), f"the part {kind}")
            for one in self.draft.further_parts.get(kind, ()) if kind in PART_TYPES else ():
                self.slots.check(one, further_part_scope(PART_TYPES[kind]), f"the part {kind}")
        used = next((slot for node in self.draft.nodes() for slot, _ in slots(node)
                     if {CONTENT_FILTER, AS_PARTS} & set(slot.filters)), None)
        missing = [kind for kind in PART_TYPES if kind not in self.draft.parts]
        if used and missing:
            where = ("parts",) if self.draft.parts else used.path
            self.add(where, f"the parts {', '.join(missing)} are not spelled",
                     "write [] to leave a kind out of content", key=True)

    # -- requests and answers -----------------------------------------------------------------------------------------

    def _inputs(self) -> None:
        self._every("inputs", self.vocabulary.messages, "client message")
        self._unknown("inputs", None, self.draft.inputs, self.vocabulary.messages, "no client says")
        for message, spelled in self.draft.inputs.items():
            if message not in self.vocabulary.messages:
                continue
            if spelled.is_bound_by_code:
                scope = extra_scope(self.vocabulary.bound_for(message))
                self.slots.check(spelled.given, scope, message, section=InSection.CODE)
            if spelled.command not in COMMANDS_BY_KIND:
                hint = suggest(spelled.command, COMMANDS_BY_KIND)
                self.add((*spelled.path, "command"), f"there is no command '{spelled.command}'", hint)
            elif spelled.is_bound_by_code:
                self._given(message, spelled)
            else:
                self._wire(message, spelled)

    def _wire(self, message: str, spelled: InputTemplate) -> None:
        """A message that the table spells: its names are fields of the command, which gets all that it needs."""
        command = COMMANDS_BY_KIND[spelled.command]
        wires = [*([] if spelled.wire is None else [spelled.wire]), *spelled.also]
        for wire in wires:
            for slot, _ in slots(wire):
                if slot.name not in command.__struct_fields__ and slot.name not in spelled.beside:
                    hint = suggest(slot.name, (*command.__struct_fields__, *spelled.beside))
                    self.add(slot.path, f"{spelled.command} has no field '{slot.name}', so a client cannot send it",
                             hint or "name it under 'beside' if it is sent beside the command")
            known = {**extra_scope(slot.name for slot, _ in slots(wire)), **command_scope(command, spelled.beside)}
            self.slots.check(wire, known, message, section=InSection.WIRE)
        for index, name in enumerate(spelled.added):
            if name not in command.__struct_fields__:
                hint = suggest(name, command.__struct_fields__)
                self.add((*spelled.path, "given", index), f"{spelled.command} has no field '{name}'", hint)
        self._constants_of(spelled.command, spelled.fixed)
        sent = {slot.name for wire in wires for slot, _ in slots(wire)}
        for index, name in enumerate(spelled.beside):
            if name not in sent:
                self.add((*spelled.path, "beside", index), f"'{name}' is not on the wire", suggest(name, sent))
        required = [one.name for one in msgspec.structs.fields(command) if one.required]
        if missing := [name for name in required if name not in {*sent, *spelled.added, *dict(spelled.fixed.items)}]:
            hint = "write it in 'wire', or name it under 'given' if the session's code adds it"
            self.add((*spelled.path, "wire"), f"{spelled.command} needs {', '.join(missing)}", hint, key=True)

    def _constants_of(self, kind: str, given: Object) -> None:
        command = COMMANDS_BY_KIND[kind]
        hints = type_hints(command)
        for key, node in given.items:
            if key == SPLICE or key not in command.__struct_fields__:
                hint = suggest(key, command.__struct_fields__)
                self.add(node.path, f"{kind} has no field '{key}'", hint, key=True)
            elif isinstance(node, Constant):
                try:
                    msgspec.convert(node.value, hints[key])
                except msgspec.ValidationError as error:
                    self.add(node.path, f"'{key}' of {kind}: {describe_struct_error(error, YAML_NOUNS)}")

    def _given(self, message: str, spelled: InputTemplate) -> None:
        command = COMMANDS_BY_KIND[spelled.command]
        self._constants_of(spelled.command, spelled.given)
        required = [f.name for f in msgspec.structs.fields(command) if f.required]
        if missing := [name for name in required if name not in dict(spelled.given.items)]:
            self.add(("inputs", message, "given"), f"{spelled.command} needs {', '.join(missing)}", key=True)

    def _objects(self) -> None:
        self._every("objects", self.vocabulary.objects, "object")
        self._unknown("objects", None, self.draft.objects, self.vocabulary.objects, "nobody shows an object")
        for name, node in self.draft.objects.items():
            if name in self.vocabulary.objects:
                self.slots.check(node, object_scope(self.vocabulary.objects[name]), name)
                for spelling in self.draft.other_objects.get(name, ()):
                    self.slots.check(spelling, object_reading_scope(name, self.vocabulary, self.draft), name)

    def _errors(self) -> None:
        codes = [*m.FaultCode]
        self._unknown("errors", None, self.draft.errors, [*codes, ANY_OTHER], "there is no fault")
        for code, refusal in self.draft.errors.items():
            self.slots.check(refusal.body, extra_scope(ERROR_NAMES), f"the error {code}")
        missing = [code for code in codes if code not in self.draft.errors]
        if missing and ANY_OTHER not in self.draft.errors:
            hint = "spell them, or write '\"*\": …' for all the rest"
            self.add(("errors",), f"the faults {', '.join(missing)} are not spelled", hint, key=True)

    def _support(self) -> None:
        shape = self.draft.shape
        support, client_support = shape.support, shape.client_support
        for section, words in (("support", support), ("client_support", client_support), ("notes", shape.notes)):
            self._unknown(section, None, words, FEATURES, "there is no feature")
        for section, levels in (("support", support), ("client_support", client_support)):
            for feature, level in levels.items():
                if level not in list(m.SupportLevel):
                    hint = f"the levels are {', '.join(m.SupportLevel)}"
                    self.add((section, feature), f"'{level}' is no level of support", hint)
        if missing := [feature for feature in FEATURES if feature not in support]:
            self.add(("support",), f"nothing is said about {', '.join(missing)}",
                     f"each is one of {', '.join(m.SupportLevel)}", key=True)

    # -- lists --------------------------------------------------------------------------------------------------------

    def _every(self, section: str, wanted: Iterable[str], what: str, hint: str = "") -> None:
        for name in wanted:
            if name not in getattr(self.draft, section):
                self.add((section,), f"the {what} '{name}' is not spelled", hint, key=True)

    def _unknown(
        self, section: str, entry: str | None, words: Iterable[str], known: Collection[str], what: str,
    ) -> None:
        for word in words:
            if word not in known:
                path = (section, word) if entry is None else (section, entry, word)
                self.add(path, f"{what} '{word}'", suggest(word, known), key=True)


def _bound(nodes: Iterable[Node]) -> set[str]:
    """The bindings of some rows, with their attributes."""
    return {str(slot).removeprefix("$") for node in nodes for slot, _ in slots(node)}

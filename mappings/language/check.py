"""Is everything said that must be said, and nothing that nobody knows? Finds all that is not so."""

from collections.abc import Collection, Iterable
from typing import get_type_hints

import msgspec

from gateway.field_errors import YAML, struct_words
from gateway.marks import nearest
from gateway.model import COMMANDS, EVENTS, FaultCode

from .draft import DEFAULT, Draft, Findings, Frame, Input
from .expressions import SPLICE, Array, Constant, slots, splices_body
from .features import FEATURES, Level
from .filters import CONTENT, FILTERS, OTHERWISE
from .filters import PARTS as AS_PARTS
from .names import (
    ENUMS,
    ENVELOPE_NAMES,
    ERROR_NAMES,
    HOUSE_CUES,
    PARTS,
    Scope,
    Vocabulary,
    bound,
    cue_scope,
    house_scope,
    part_scope,
)
from .slots import SlotChecker
from .speaker import sse_mistake

SSE = "@sse"
COMMAND_OF = {command.kind: command for command in COMMANDS}


def check(draft: Draft, vocabulary: Vocabulary, findings: Findings) -> None:
    _Check(draft, vocabulary, findings).run()


def scope_of(cue: str, vocabulary: Vocabulary) -> Scope | None:
    """The names a cue's frames may use; None for a cue nobody raises."""
    if cue in vocabulary.cues:
        return cue_scope(cue, vocabulary)
    return house_scope(*HOUSE_CUES[cue], vocabulary) if cue in HOUSE_CUES else None


class _Check:
    def __init__(self, draft: Draft, vocabulary: Vocabulary, findings: Findings) -> None:
        self.draft = draft
        self.vocabulary = vocabulary
        self.add = findings.add
        self.slots = SlotChecker(draft, findings)

    def run(self) -> None:
        for section, look in {
            "enums": self._enums, "reads": self._reads, "envelopes": self._envelopes, "parts": self._parts,
            "frames": self._frames, "inputs": self._inputs, "objects": self._objects, "errors": self._errors,
            "support": self._support,
        }.items():
            if section in self._unsaid():
                self._whole_section(section)
            elif section not in self.draft.broken:
                look()
        self.slots.tell()

    def _unsaid(self) -> set[str]:
        """Sections that must be there and are not: told in one line each."""
        needed = {"frames", "errors", "support", *(("inputs",) if self.vocabulary.messages else ()),
                  *(("objects",) if self.vocabulary.objects else ())}
        return needed - self.draft.shape.model_fields_set - self.draft.broken

    def _whole_section(self, section: str) -> None:
        wanted: dict[str, Iterable[str]] = {
            "frames": [*(event.name for event in EVENTS), *self.vocabulary.cues], "errors": list(FaultCode),
            "inputs": self.vocabulary.messages, "objects": self.vocabulary.objects, "support": FEATURES,
        }
        self.add((), f"there is no section '{section}'", f"it is to spell {', '.join(wanted[section])}")

    # -- words --------------------------------------------------------------------------------------------------------

    def _enums(self) -> None:
        for name, words in self.draft.shape.enums.items():
            enum = ENUMS.get(name.partition("@")[0])
            if enum is None:
                self.add(("enums", name), f"the house has no enum '{name}'", nearest(name, ENUMS), key=True)
                continue
            self._unknown("enums", name, words, [*enum, OTHERWISE], f"{name} has no member")
            missing = [member for member in enum if member not in words]
            if missing and OTHERWISE not in words:
                hint = "map every member, or write '\"*\": …' for all the rest"
                self.add(("enums", name), f"{name} does not map {', '.join(missing)}", hint, key=True)

    def _reads(self) -> None:
        for name in self.draft.shape.reads:
            if name in FILTERS:
                self.add(("reads", name), f"'{name}' is a filter already", "take another name", key=True)

    # -- frames -------------------------------------------------------------------------------------------------------

    def _envelopes(self) -> None:
        if DEFAULT not in self.draft.envelopes and any(self.draft.frames.values()):
            self.add(("envelopes",), "there is no envelope 'default'", key=True)
        for name, envelope in self.draft.envelopes.items():
            _, at, framing = name.partition("@")
            if at and framing != "sse":
                self.add(("envelopes", name), f"there is no framing '{framing}'", "'@sse' is the only one", key=True)
            elif at and (mistake := sse_mistake(envelope)):
                self.add(*mistake, key=True)

    def _frames(self) -> None:
        for cue, frames in self.draft.frames.items():
            scope = scope_of(cue, self.vocabulary)
            if scope is None:
                hint = nearest(cue, [*HOUSE_CUES, *self.vocabulary.cues])
                self.add(("frames", cue), f"nobody raises a cue '{cue}'", hint, key=True)
                continue
            for frame in frames:
                self.slots.look(frame.body, scope, cue)
                self._envelope_of(frame, scope, cue)
        self._every_event()
        self._every("frames", self.vocabulary.cues, "cue", f"write [] if {self.draft.shape.dialect} says nothing")

    def _envelope_of(self, frame: Frame, scope: Scope, cue: str) -> None:
        if "envelopes" in self.draft.broken:
            return
        for name in (frame.envelope, frame.envelope + SSE):
            envelope = self.draft.envelopes.get(name)
            if envelope is None:
                continue
            self.slots.look(envelope, {**scope, **ENVELOPE_NAMES}, cue)
            if splices_body(envelope) and isinstance(frame.body, Array | Constant):
                self.add(frame.body.path, f"the envelope '{name}' splices the body, and this one is not an object")
        if frame.envelope not in self.draft.envelopes and frame.envelope != DEFAULT:
            hint = nearest(frame.envelope, self.draft.envelopes)
            self.add((*frame.path, "envelope"), f"there is no envelope '{frame.envelope}'", hint)

    def _every_event(self) -> None:
        spelled = self.draft.frames
        for event in EVENTS:
            missing = [variant for variant in event.variants or ("",) if f"{event.name}.{variant}" not in spelled]
            if event.name in spelled or not missing:
                continue
            what = f"'{event.name}' is not spelled"
            some = f" for {', '.join(missing)}" if len(missing) < len(event.variants) else ""
            hint = f"write '{event.name}: []' if {self.draft.shape.dialect} says nothing"
            self.add(("frames",), what + some, hint, key=True)

    def _parts(self) -> None:
        self._unknown("parts", None, self.draft.parts, PARTS, "there is no kind of part")
        for kind, part in self.draft.parts.items():
            if part is not None and kind in PARTS:
                self.slots.look(part, part_scope(PARTS[kind]), f"the part {kind}")
        used = next((slot for node in self.draft.nodes() for slot, _ in slots(node)
                     if {CONTENT, AS_PARTS} & set(slot.filters)), None)
        missing = [kind for kind in PARTS if kind not in self.draft.parts]
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
            self.slots.look(spelled.given, bound(self.vocabulary.messages[message]), message, inputs=True)
            if spelled.command in COMMAND_OF:
                self._given(message, spelled)
            else:
                hint = nearest(spelled.command, COMMAND_OF)
                self.add((*spelled.path, "command"), f"there is no command '{spelled.command}'", hint)

    def _given(self, message: str, spelled: Input) -> None:
        command = COMMAND_OF[spelled.command]
        hints = get_type_hints(command)
        for key, node in spelled.given.items:
            if key == SPLICE or key not in command.__struct_fields__:
                hint = nearest(key, command.__struct_fields__)
                self.add(node.path, f"{spelled.command} has no field '{key}'", hint, key=True)
            elif isinstance(node, Constant):
                try:
                    msgspec.convert(node.value, hints[key])
                except msgspec.ValidationError as error:
                    self.add(node.path, f"'{key}' of {spelled.command}: {struct_words(error, YAML)}")
        required = [f.name for f in msgspec.structs.fields(command) if f.required]
        if missing := [name for name in required if name not in dict(spelled.given.items)]:
            self.add(("inputs", message, "given"), f"{spelled.command} needs {', '.join(missing)}", key=True)

    def _objects(self) -> None:
        self._every("objects", self.vocabulary.objects, "object")
        self._unknown("objects", None, self.draft.objects, self.vocabulary.objects, "nobody shows an object")
        for name, node in self.draft.objects.items():
            if name in self.vocabulary.objects:
                self.slots.look(node, bound(self.vocabulary.objects[name]), name)

    def _errors(self) -> None:
        codes = [*FaultCode]
        self._unknown("errors", None, self.draft.errors, [*codes, OTHERWISE], "there is no fault")
        for code, refusal in self.draft.errors.items():
            self.slots.look(refusal.body, bound(ERROR_NAMES), f"the error {code}")
        missing = [code for code in codes if code not in self.draft.errors]
        if missing and OTHERWISE not in self.draft.errors:
            hint = "spell them, or write '\"*\": …' for all the rest"
            self.add(("errors",), f"the faults {', '.join(missing)} are not spelled", hint, key=True)

    def _support(self) -> None:
        shape = self.draft.shape
        support = shape.support
        for section, words in (("support", support), ("heard", shape.heard), ("notes", shape.notes)):
            self._unknown(section, None, words, FEATURES, "there is no feature")
        for section, levels in (("support", support), ("heard", shape.heard)):
            for feature, level in levels.items():
                if level not in list(Level):
                    hint = f"the levels are {', '.join(Level)}"
                    self.add((section, feature), f"'{level}' is no level of support", hint)
        if missing := [feature for feature in FEATURES if feature not in support]:
            self.add(("support",), f"nothing is said about {', '.join(missing)}",
                     f"each is one of {', '.join(Level)}", key=True)

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
                self.add(path, f"{what} '{word}'", nearest(word, known), key=True)

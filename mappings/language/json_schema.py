"""The JSON Schema of tables, made from the language itself, so that editors complete and check what is written.

Its base are the models of `shape`; each section is refined by the words that the language knows: events with their
fields, enums, filters, types, commands, faults, features. The loader checks more: which names a cue binds.
"""

from collections.abc import Callable, Iterable, Mapping
from re import escape
from typing import Any

import orjson

import gateway.model as m

from .check import COMMANDS_BY_KIND
from .expressions import BODY, slot_pattern
from .features import FEATURES
from .filters import ANY_OTHER, CONTENT_FILTER, FILTERS, PARTS_FILTER
from .routes import ROUTE_PATTERN
from .scopes import EVENT_CUES, MODEL_ENUMS, PART_TYPES
from .shape import ALSO, ENVELOPE, FRAME_KEYS, KNOWN_BY, READ_ONLY, WHOSE, WRITE_ONLY, TableShape
from .value_types import CHECKS, SOME_BODY, WHOLE_BODY, Need

Schema = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"
EXPRESSION, INPUT_EXPRESSION = {"$ref": "#/$defs/Expression"}, {"$ref": "#/$defs/InputExpression"}
WIRE_EXPRESSION = {"$ref": "#/$defs/WireExpression"}
WORD = {"$ref": "#/$defs/Word"}
FRAME, FURTHER_FRAME = {"$ref": "#/$defs/Frame"}, {"$ref": "#/$defs/FurtherFrame"}
NEEDED = ("dialect", "spec", "errors", "support")
MEANINGS = {
    "dialect": "The dialect that this table is of.",
    "spec": "The version of the dialect's specification, as a text.",
    "transport": "How a plain dialect, which has no code of its own, sends its streams.",
    "mount": "Where a plain dialect is served if the settings do not say; '/' and its name, if left out.",
    "routes": "Method and path → what the request does, and what it is answered with; or a list of such.",
    "enums": "Values of the gateway → words of the wire; '*' is every other value.",
    "meanings": "Words of the wire → values, where several values share one, or only other servers say it.",
    "reads": "Words of the wire → values, as filters for what clients send.",
    "types": "Binding → its type when it is read: 'text!' must be there, 'text' must fit, 'text?' is null otherwise. "
    "Row → the types of its own bindings.",
    "names": "Further places of a frame where some servers write its name.",
    "envelopes": "The objects around frames; 'name@sse' is used instead of 'name' for server-sent events.",
    "unread": "Members of envelopes whose constants are written and not compared.",
    "parts": "How each kind of content is spelled; [] leaves a kind out.",
    "frames": "Cue → list of frames; [] writes nothing. A cue is an event, its variant, or a cue of the dialect.",
    "events": "Event → the cues of the dialect's own code that say it; '*' has the cues that say no event.",
    "inputs": "Messages of clients as they are sent → commands.",
    "objects": "Bodies of REST requests and responses. A name that a row does not mention is written as it is.",
    "errors": "Fault → status and body of the response; '*' is every other fault.",
    "support": "Feature → how well clients of this dialect receive it.",
    "client_support": "Feature → its level for our own client, where that differs from `support`.",
    "notes": "Feature → one sentence on its level of support.",
}

ROUTE_KEYS = {
    "session": "What becomes of the session: it is created, shown in a list, shown, or deleted.",
    "input": "The rows of `inputs` that the body may be.",
    "body": "The row of `objects` that the body of a request is read with which creates a session.",
    "query": "The row of `objects` that the query is read with.",
    "stream": "The answer is a stream: of the turn until it yields, or of the session as long as the client stays.",
    "object": "The answer is an object, by this row; after an input, when the turn has yielded.",
    "ping": "The row of `objects` that a silent WebSocket is sent.",
    "status": "The status of the answer.",
    "public": "Whether the request needs no key.",
}


def table_schema() -> Schema:
    """The schema of a whole table."""
    made = TableShape.model_json_schema()
    sections: dict[str, Schema] = made["properties"]
    for name, refine in REFINED.items():
        sections[name] = {**sections[name], **refine()}
    for name, section in sections.items():
        section.pop("title", None)
        section.pop("default", None)
        section["description"] = MEANINGS[name]
    made["$defs"] |= {
        "Expression": _expression([*FILTERS, CONTENT_FILTER, PARTS_FILTER, *MODEL_ENUMS]),
        "InputExpression": _expression(),
        "WireExpression": _expression(own="WireExpression"),
        "Word": {"type": ["string", "number", "boolean", "null"]},
        "Frame": _frame(),
        "FurtherFrame": _further_frame(),
        "InputShape": {**made["$defs"]["InputShape"], "allOf": list(_fields_of_commands())},
    }
    made["$defs"]["InputShape"]["properties"]["command"] = {
        "enum": list(COMMANDS_BY_KIND), "description": "The command that the message becomes.",
    }
    made["$defs"]["InputShape"]["properties"] |= _input_keys()
    made["$defs"]["OtherSpelling"]["properties"] |= {"wire": WIRE_EXPRESSION}
    made["$defs"]["ErrorShape"]["properties"]["body"] = EXPRESSION
    made["$defs"]["RouteShape"] = _route(made["$defs"]["RouteShape"])
    return {
        "$schema": DRAFT, "title": "Mapping table", "description": "A mapping table of Dragoman: docs/mappings.md.",
        **{key: value for key, value in made.items() if key not in ("title", "description", "required")},
        "required": [*NEEDED, "frames"],
        "allOf": [{"if": {"not": {"required": ["events"]}}, "then": {"properties": {"frames": _every_event()}}}],
    }


def schema_text() -> str:
    """The schema as the file `table.schema.json` has it."""
    return orjson.dumps(table_schema(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


# -- expressions ------------------------------------------------------------------------------------------------------

def _expression(filters: Iterable[str] | None = None, own: str = "") -> Schema:
    """Any JSON value; a text that begins with `$` is a slot, with these filters, or with any."""
    own = own or ("InputExpression" if filters is None else "Expression")
    return {
        "type": ["object", "array", "string", "number", "boolean", "null"],
        "pattern": rf"^(?:[^$][\s\S]*|\$\$[\s\S]*|{slot_pattern(filters)})?$",
        "items": {"$ref": f"#/$defs/{own}"},
        "additionalProperties": {"$ref": f"#/$defs/{own}"},
    }


# -- sections ---------------------------------------------------------------------------------------------------------

def _rows(names: Mapping[str, str], row: Schema, **more: object) -> Schema:
    """One row for each of these names, all of the same shape, with a sentence of explanation each."""
    described = {name: {**row, "description": text} if text else row for name, text in names.items()}
    return {"type": "object", "properties": described, "additionalProperties": False, **more}


def _plain(names: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(names, "")


def _enums() -> Schema:
    return _by_enum(lambda members: {
        **_rows(_plain([*members, ANY_OTHER]), WORD), "anyOf": [{"required": members}, {"required": [ANY_OTHER]}],
    })


def _meanings() -> Schema:
    return _by_enum(lambda members: {"type": "object", "additionalProperties": {
        "anyOf": [{"enum": members}, {"$ref": "#/$defs/ForeignWord", "properties": {"as": {"enum": members}}}],
    }})


def _by_enum(row: Callable[[list[str]], Schema]) -> Schema:
    """A row for each enum of the model, and for its second maps: `outcome@stop`."""
    patterns = {f"^{escape(name)}(@.+)?$": row([str(member) for member in enum]) for name, enum in MODEL_ENUMS.items()}
    return {"patternProperties": patterns, "additionalProperties": False}


def _reads() -> Schema:
    words = {"type": "object", "additionalProperties": WORD}
    return {"additionalProperties": words, "propertyNames": {"not": {"enum": list(FILTERS)}}}


def _types() -> Schema:
    needs = "".join(need for need in Need if need)
    one = {"type": "string", "pattern": f"^({'|'.join(CHECKS)})[{needs}]?$"}
    of_row = {"type": "object", "additionalProperties": one}
    return {"additionalProperties": {"anyOf": [one, of_row]}, "properties": {BODY: {"enum": [WHOLE_BODY, SOME_BODY]}}}


def _envelopes() -> Schema:
    row = {"type": "object", "additionalProperties": EXPRESSION}
    return {"additionalProperties": row, "propertyNames": {"pattern": "^[^@]*(@sse)?$"}}


def _parts() -> Schema:
    return _rows(_plain(PART_TYPES), EXPRESSION)


def _frames() -> Schema:
    row = {"type": "array", "items": FRAME}
    rows = {cue: {**row, "description": text} for cue, text in _events_described().items()}
    return {"properties": rows, "additionalProperties": row}


def _events() -> Schema:
    cues = {"type": "array", "items": {"type": "string"}}
    return _rows({**_events_described(), ANY_OTHER: "Cues that say no event."}, cues)


def _events_described() -> dict[str, str]:
    """Every event and variant, with the fields that its row may use."""
    return {cue: f"Fields: {', '.join(event.__struct_fields__) or 'none'}." for cue, (event, _) in EVENT_CUES.items()}


def _every_event() -> Schema:
    """A row for the event, or one for each of its variants."""
    plain = [event.name for event in m.EVENTS if not event.variants]
    varied = [{"anyOf": [{"required": [event.name]},
                         {"required": [f"{event.name}.{variant}" for variant in event.variants]}]}
              for event in m.EVENTS if event.variants]
    return {"required": plain, "allOf": varied}


def _frame() -> Schema:
    """One wire name with its body, and what a frame may have beside it."""
    member = {"type": "string"}
    kinds: dict[str, Schema] = {
        ENVELOPE: {"type": "string", "description": "The name of its envelope; 'default' if left out."},
        WRITE_ONLY: {"type": "string", "description": "Why the frame is not read."},
        READ_ONLY: {"type": "string", "description": "Whose frame it is; it is read and never written."},
        KNOWN_BY: {"type": "array", "items": {"anyOf": [member, {"type": "array", "items": member, "minItems": 1}]},
                   "description": "Members of the body that only this row of its name has; of a list any one."},
        ALSO: {"type": "array", "items": FURTHER_FRAME, "description": "Further spellings that are read."},
    }
    keys = {key: kinds.get(key, {}) for key in FRAME_KEYS}
    none, one = {"not": {"anyOf": [{"required": [key]} for key in keys]}}, [
        {"if": {"required": [key], "properties": {other: False for other in keys if other != key}},
         "then": {"minProperties": 2, "maxProperties": 2}} for key in keys
    ]
    return {
        "type": "object", "properties": keys, "additionalProperties": EXPRESSION, "minProperties": 1,
        "maxProperties": 1 + len(keys), "allOf": [{"if": none, "then": {"maxProperties": 1}}, *one],
    }


def _further_frame() -> Schema:
    note = {"type": "string", "description": "Whose spelling this is."}
    return {
        "type": "object", "properties": {WHOSE: note}, "additionalProperties": EXPRESSION, "required": [WHOSE],
        "minProperties": 2, "maxProperties": 2,
    }


def _objects() -> Schema:
    return {"additionalProperties": EXPRESSION}


def _errors() -> Schema:
    codes = [str(code) for code in m.FaultCode]
    return _rows(_plain([*codes, ANY_OTHER]), {"$ref": "#/$defs/ErrorShape"},
                 anyOf=[{"required": codes}, {"required": [ANY_OTHER]}])


def _levels() -> Schema:
    return _rows({name: feature.meaning for name, feature in FEATURES.items()}, {"enum": [*map(str, m.SupportLevel)]})


def _support() -> Schema:
    return {**_levels(), "required": list(FEATURES)}


def _notes() -> Schema:
    return _rows({name: feature.meaning for name, feature in FEATURES.items()}, {"type": "string"})


def _input_keys() -> dict[str, Schema]:
    """What a client message may have beside its command."""
    fields = {"type": "array", "items": {"type": "string"}}
    bound = {"type": "object", "additionalProperties": INPUT_EXPRESSION}
    return {
        "wire": {**WIRE_EXPRESSION, "description": "The message as it is sent; its names are fields of the command."},
        "given": {"anyOf": [fields, bound],
                  "description": "Fields that the session's code adds. Without 'wire': field → its expression."},
        "fixed": {"type": "object", "additionalProperties": WORD,
                  "description": "Fields of the command that are always the same."},
        "beside": {**fields, "description": "Names on the wire that are no fields of the command."},
        "also": {"type": "array", "items": {"$ref": "#/$defs/OtherSpelling"},
                 "description": "Further spellings that are read, each with a note whose it is."},
    }


def _fields_of_commands() -> Iterable[Schema]:
    for kind, command in COMMANDS_BY_KIND.items():
        given = dict.fromkeys(command.__struct_fields__, INPUT_EXPRESSION)
        fixed = dict.fromkeys(command.__struct_fields__, WORD)
        listed = {"enum": list(command.__struct_fields__)}
        yield {"if": {"properties": {"command": {"const": kind}}},
               "then": {"properties": {"given": {"properties": given, "additionalProperties": False, "items": listed},
                                       "fixed": {"properties": fixed, "additionalProperties": False}}}}


def _routes() -> Schema:
    one = {"$ref": "#/$defs/RouteShape"}
    return {"additionalProperties": {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]},
            "propertyNames": {"pattern": f"^{ROUTE_PATTERN}$"}}


def _route(shape: Schema) -> Schema:
    """What a request does; its rows are named once or in a list."""
    rows = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    own = {name: {key: value for key, value in {**kind, "description": ROUTE_KEYS[name]}.items() if key != "title"}
           for name, kind in {**shape["properties"], "input": rows}.items()}
    return {**shape, "properties": own, "minProperties": 1}


REFINED: dict[str, Callable[[], Schema]] = {
    "routes": _routes,
    "enums": _enums, "meanings": _meanings, "reads": _reads, "types": _types, "envelopes": _envelopes, "parts": _parts,
    "frames": _frames, "events": _events, "objects": _objects, "errors": _errors, "support": _support,
    "client_support": _levels, "notes": _notes,
}

"""What the routes of a plain dialect read and answer, as its table says it."""

from gateway.http import Answers, Shape, TableMessage
from mappings.language import PlainTable, Route, RouteShape

STREAM_QUERY = {"after": str}
"""What a stream is asked for where the table has no row for its query."""


def declared_answers(route: Route, table: PlainTable) -> Answers:
    """The declaration of a route; of several things that it may do, each has an answer."""
    is_websocket = table.shape.transport == "websocket"
    first, messages = route.actions[0], [name for action in route.actions for name in action.input]
    if is_websocket and first.stream is not None:
        return Answers(
            frames="json", messages={name: TableMessage(name) for name in messages}, query=first.query or STREAM_QUERY,
            stream_rows=(first.ping,) if first.ping is not None else ())
    by_status = dict[int, list[Shape]]()
    for action in route.actions:
        by_status.setdefault(_status(action), []).append(action.object)
    status, streams = _status(first), any(action.stream for action in route.actions)
    return Answers(
        _one_of(by_status.pop(status)), status=status, others={one: _one_of(rows) for one, rows in by_status.items()},
        reads=_read(messages, first, table), may_be_empty=first.body is not None and not messages,
        query=first.query or (STREAM_QUERY if streams else {}), frames="sse" if streams else None)


def _status(action: RouteShape) -> int:
    has_answer = action.object is not None or action.stream is not None
    usual = 201 if action.session == "create" and action.object is not None and not action.input else 200
    return action.status or (usual if has_answer else 204)


def _one_of(rows: list[Shape]) -> Shape:
    named = [row for row in rows if row is not None]
    return tuple(named) if named else None


def _read(messages: list[str], first: RouteShape, table: PlainTable) -> Shape:
    """What the body of a request may be; nothing if no message has one."""
    spelled = [name for name in messages if table.shape.inputs[name].wire is not None]
    return tuple(TableMessage(name) for name in spelled) if spelled else first.body

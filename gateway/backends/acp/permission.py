"""Requests for permission: which are put before people, and which of the agent's options their answer stands for."""

from collections.abc import Sequence

from msgspec.structs import replace

from gateway.backends.tools import is_planning
from gateway.model import Answer, DecidePermission, Permission, PermissionAsk, SendMessage, ToolCall
from gateway.ports import Turn

from .wire import Option

KINDS = {True: ("allow_once", "allow_always"), False: ("reject_once", "reject_always")}
"""The kinds of options a yes and a no stand for, the nearest first."""


def settled(turn: Turn, call: ToolCall) -> bool | None:
    """What the session has decided beforehand about work of this kind; None where people are to be asked."""
    if is_planning(turn):
        return False
    policy = (turn.settings.tools or {}).get(call.name, Permission.ASK)
    if policy is not Permission.ASK:
        return policy is Permission.ALLOW
    headless = isinstance(turn.command, SendMessage) and turn.command.headless
    return True if headless else None


def ask_for(call: ToolCall) -> PermissionAsk:
    return PermissionAsk(call=replace(call, permission=Permission.ASK), description=call.display_name or call.name)


def decision(answer: Answer) -> bool | None:
    """Yes, no, or None where nobody will answer."""
    return answer.granted if isinstance(answer, DecidePermission) else None


def chosen(options: Sequence[Option], decided: bool | None) -> str | None:
    """The option that says what was decided; None cancels the request, as where the agent offers no such option."""
    if decided is None:
        return None
    by_kind = {option.kind: option.option_id for option in reversed(options)}
    return next((by_kind[kind] for kind in KINDS[decided] if kind in by_kind), None)

"""What the demo agent's directives do with people and sub-agents: one small function each."""

from contextlib import aclosing

from gateway.client import BackendEvents, EventWriter
from gateway.model import (
    ROOT,
    Answer,
    AnswerQuestion,
    Choice,
    ContinuationAsk,
    ContinueTurn,
    Fault,
    FaultCode,
    FaultRaised,
    Question,
    QuestionAsk,
    ReturnResult,
    RollBack,
    RollbackAsk,
    ScopeMessage,
    ScopeOpened,
    ScopeStatus,
    ScopeStatusChanged,
    StopReason,
    ToolCall,
    ToolReturned,
    ToolStatus,
    ToolStatusChanged,
    text_of,
)
from gateway.ports import BackendEvent

from .directive_parser import Directive
from .turn import CONTEXT_WINDOW, MODEL, DemoTurn, count_usage, count_words

# -- questions --------------------------------------------------------------------------------------------------------

QUESTIONS = (
    Question(
        question="Which colour do you like?", header="Colour",
        options=(Choice(label="Red", description="Like a poppy"), Choice(label="Green"), Choice(label="Blue")),
    ),
    Question(
        question="Which fruits do you want?", header="Fruits", multi_select=True,
        options=(Choice(label="Apple"), Choice(label="Banana"), Choice(label="Cherry")),
    ),
)


async def ask(stage: DemoTurn, directive: Directive) -> BackendEvents:
    for said in (*stage.open_message(), *_question_call(stage.writer), *stage.close_message(StopReason.TOOL_USE)):
        yield said
    call = stage.writer.calls[-1]
    yield ToolStatusChanged(call_id=call.call_id, status=ToolStatus.AWAITING_INPUT)
    [answer] = await stage.turn.ask(QuestionAsk(questions=QUESTIONS, call=call))
    told, back = _apply_answer(call, answer)
    stage.note_result(call.name, back)
    for status in told:
        yield status
    yield back


def _question_call(pen: EventWriter) -> list[BackendEvent]:
    """The tool is known by this name and this input far beyond this house."""
    questions = [{
        "question": one.question, "header": one.header, "multiSelect": one.multi_select,
        "options": [{"label": choice.label, "description": choice.description or ""} for choice in one.options],
    } for one in QUESTIONS]
    return pen.call("AskUserQuestion", {"questions": questions}, display_name="Ask the user")


def _apply_answer(call: ToolCall, answer: Answer) -> tuple[list[ToolStatusChanged], ToolReturned]:
    """What an answer makes of the call that asked, and what is said of it before."""
    match answer:
        case AnswerQuestion():
            return [], ToolReturned(call_id=call.call_id, content=_choices(answer))
        case ReturnResult(content=content, is_error=is_error):
            return [], ToolReturned(call_id=call.call_id, content=content, is_error=is_error)
    cancelled = ToolStatusChanged(call_id=call.call_id, status=ToolStatus.CANCELLED)
    return [cancelled], ToolReturned(call_id=call.call_id, content="Tool call cancelled", is_error=True)


def _choices(answer: AnswerQuestion) -> str:
    """The choices in words: `Colour: Red; Fruits: Apple, Cherry`."""
    lines = []
    for number, question in enumerate(QUESTIONS):
        picked = answer.selections.get(str(number), ())
        chosen = [question.options[at].label for at in picked if 0 <= at < len(question.options)]
        free = answer.custom.get(str(number))
        lines.append(f"{question.header}: {', '.join([*chosen, *([free] if free else [])]) or 'no answer'}")
    return "; ".join([*lines, *([answer.message] if answer.message else [])])


# -- sub-agents -------------------------------------------------------------------------------------------------------

def fork(stage: DemoTurn, directive: Directive) -> BackendEvents:
    return _fork(stage, asking=False)


def fork_ask(stage: DemoTurn, directive: Directive) -> BackendEvents:
    return _fork(stage, asking=True)


async def _fork(stage: DemoTurn, *, asking: bool) -> BackendEvents:
    """Hand the words to a sub-agent, which may ask, and tell what it made of them."""
    task = stage.script.text or "nothing in particular"
    for said in (
        *stage.open_message(),
        *stage.writer.call("Agent", {"description": task}),
        *stage.close_message(StopReason.TOOL_USE),
    ):
        yield said
    call, child = stage.writer.calls[-1], EventWriter(stage.turn, stage.turn.mint("scope"), clock=stage.clock)
    yield ToolStatusChanged(call_id=call.call_id, status=ToolStatus.RUNNING)
    yield child.emit(ScopeOpened(parent=ROOT, call_id=call.call_id, agent=stage.turn.agent.name, title="Helper"))
    yield child.emit(ScopeStatusChanged(status=ScopeStatus.RUNNING))
    yield ScopeMessage(sender=ROOT, recipient=child.scope_id, content=task)
    answers: list[str] = []
    if asking:
        async with aclosing(_ask_from_subagent(stage, call, child, answers)) as events:
            async for said in events:
                yield said
    report = f"I looked into: {task}" + "".join(f" ({answer})" for answer in answers)
    yield child.start_message(model=MODEL, context_window=CONTEXT_WINDOW)
    for said in child.text(report):
        yield said
    yield child.end_message(usage=count_usage(child, count_words(task)))
    yield child.emit(ScopeMessage(sender=child.scope_id, recipient=ROOT, content=report))
    yield child.emit(ScopeStatusChanged(status=ScopeStatus.IDLE, stop_reason=StopReason.END_TURN))
    yield child.emit(ScopeStatusChanged(status=ScopeStatus.ENDED, stop_reason=StopReason.END_TURN))
    back = ToolReturned(call_id=call.call_id, content=report)
    stage.note_result(call.name, back)
    yield back


async def _ask_from_subagent(stage: DemoTurn, fork: ToolCall, child: EventWriter, answers: list[str]) -> BackendEvents:
    """The child asks, and whoever called it waits with it; the answer is written down in `answers`."""
    yield child.start_message(model=MODEL, context_window=CONTEXT_WINDOW)
    for said in _question_call(child):
        yield said
    yield child.end_message(stop_reason=StopReason.TOOL_USE, usage=count_usage(child, 0))
    call = child.calls[-1]
    yield child.emit(ToolStatusChanged(call_id=call.call_id, status=ToolStatus.AWAITING_INPUT))
    yield ToolStatusChanged(call_id=fork.call_id, status=ToolStatus.AWAITING_INPUT)
    yield child.emit(ScopeStatusChanged(status=ScopeStatus.BLOCKED, stop_reason=StopReason.NEEDS_INPUT))
    [answer] = await stage.turn.ask(QuestionAsk(questions=QUESTIONS, call=call), scope_id=child.scope_id)
    yield child.emit(ScopeStatusChanged(status=ScopeStatus.RUNNING))
    yield ToolStatusChanged(call_id=fork.call_id, status=ToolStatus.RUNNING)
    told, back = _apply_answer(call, answer)
    answers.append(text_of(back.content))
    for status in told:
        yield child.emit(status)
    yield child.emit(back)


# -- decisions about the turn -----------------------------------------------------------------------------------------

async def ask_to_continue(stage: DemoTurn, directive: Directive) -> BackendEvents:
    for said in stage.close_message(StopReason.NEEDS_INPUT):
        yield said
    [answer] = await stage.turn.ask(ContinuationAsk(turn=1, message="This may take long. Shall I go on?"))
    if isinstance(answer, ContinueTurn) and answer.proceed:
        stage.notes.append("I went on.")
        return
    stage.has_ended = True
    for said in (*stage.open_message(), *stage.writer.text("I stopped."), *stage.close_message(StopReason.END_TURN)):
        yield said


async def rollback(stage: DemoTurn, directive: Directive) -> BackendEvents:
    """Something goes wrong, and a person chooses the state to go back to."""
    for said in stage.close_message(StopReason.NEEDS_INPUT):
        yield said
    fault = Fault(code=FaultCode.BACKEND, message="The last step could not be finished.", retryable=True)
    yield FaultRaised(fault=fault)
    [answer] = await stage.turn.ask(RollbackAsk(
        task_id=stage.turn.mint("task"), error=fault.message, reason="A step failed.",
        options=({"id": "step", "action": "undo_step", "target": "the last step"},
                 {"id": "all", "action": "undo_all", "target": "the beginning"}),
    ))
    option = answer.option if isinstance(answer, RollBack) else None
    stage.notes.append(f"I rolled back to: {option}." if option else "I rolled nothing back.")

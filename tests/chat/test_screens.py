"""What is heard, as a person at a terminal sees it."""

import io

from rich.console import Console

import gateway.model as m
from gateway.chat.screens import PlainScreen, TerminalScreen
from gateway.chat.text_layout import TerminalWriter
from gateway.client import StreamAssembler
from gateway.ids import make_mint
from gateway.ports import ScopedEvent
from gateway.ports.remote import DecodedItem, RemoteAsk, RemoteTurnEnd

CALL = m.ToolCall(call_id="c1", name="calc", input={"expression": "6*7"})


class Show:
    """A screen on a console that keeps what is written."""

    def __init__(self) -> None:
        self.file = io.StringIO()
        self.now = 0.0
        console = Console(file=self.file, force_terminal=False, width=200, highlight=False)
        self.screen = TerminalScreen(console, clock=lambda: self.now)
        self.screen.begin_turn()

    def see(self, *heard: DecodedItem) -> str:
        before = len(self.file.getvalue())
        for one in heard:
            self.screen.show(one)
        self.screen.end_output()
        return self.file.getvalue()[before:]


def test_words_thoughts_calls_and_results() -> None:
    show, assembler = Show(), StreamAssembler(make_mint("s"))
    seen = show.see(
        *assembler.text_delta("t", "Let me\nsee.", m.BlockKind.THINKING),
        *assembler.end("t"),
        *assembler.text_delta("w", "well, "),
        *assembler.text_delta("w", "well"),
        *assembler.end("w"),
        *assembler.whole_call("k", CALL),
        *assembler.finish(m.StopReason.TOOL_USE, m.Usage(input_tokens=3, output_tokens=4, thinking_tokens=2)),
        *assembler.output("c1", "working\n"),
        *assembler.returned("c1", "42"),
    )
    assert seen == (
        'Let me\nsee.\nwell, well\n● calc {"expression":"6*7"}\n│ working\n  └ 42\n'
    )
    show.now = 1.26
    assert show.see(RemoteTurnEnd()) == "3 tokens in · 4 out · 2 thinking · 1.3 s\n"


def test_long_results_are_folded_and_errors_shown() -> None:
    show, assembler = Show(), StreamAssembler(make_mint("s"))
    show.see(*assembler.whole_call("k", CALL), *assembler.finish(m.StopReason.TOOL_USE))
    assert show.see(*assembler.returned("c1", "\n".join("123456"), is_error=True)) == (
        "  └ 1\n    2\n    3\n    4\n    … 2 more lines\n")


def test_results_of_parallel_calls_name_their_tool() -> None:
    show, assembler = Show(), StreamAssembler(make_mint("s"))
    calls = [
        CALL,
        m.ToolCall(call_id="c2", name="clock"),
        m.ToolCall(call_id="c3", name="calc", input={"expression": "1"}),
    ]
    for number, call in enumerate(calls):
        show.see(*assembler.whole_call(str(number), call))
    show.see(*assembler.finish(m.StopReason.TOOL_USE))
    returned = assembler.returned
    results = [*returned("c2", "noon\nsharp"), *returned("c1", "42"), *returned("c3", "1")]
    assert show.see(*results) == (
        '  └ clock: noon\n    sharp\n  └ calc {"expression":"6*7"}: 42\n  └ calc {"expression":"1"}: 1\n')
    call = m.ToolCall(call_id="c4", name="calc")
    show.see(*assembler.whole_call("k", call), *assembler.finish(m.StopReason.TOOL_USE))
    assert show.see(*assembler.returned("c4", "7")) == "  └ 7\n", "it is alone"


def test_a_question_is_shown_without_the_call_that_carries_it() -> None:
    question = m.ToolCall(call_id="q", name="Ask", input={"questions": [{"question": "Which?"}]})
    asked = RemoteAsk(ask=m.QuestionAsk(questions=(), call=question), ref="r")
    show, assembler = Show(), StreamAssembler(make_mint("s"))
    assert show.see(*assembler.whole_call("k", question), *assembler.finish(m.StopReason.TOOL_USE), asked) == ""
    assert show.see(*assembler.returned("q", "Red")) == "  └ Red\n"
    show, assembler = Show(), StreamAssembler(make_mint("s"))
    seen = show.see(
        *assembler.whole_call("k", question), *assembler.finish(m.StopReason.TOOL_USE), *assembler.returned("q", "no")
    )
    assert seen == '● Ask {"questions":[{"question":"Which?"}]}\n  └ no\n', "nobody was asked"


# -- the edge of the terminal -----------------------------------------------------------------------------------------

def flowing(*pieces: str, width: int = 20, depth: int = 0) -> str:
    file = io.StringIO()
    page = TerminalWriter(Console(file=file, width=width))
    for piece in pieces:
        page.write(piece, depth=depth, voice="agent")
    page.start_line()
    return file.getvalue()


def test_words_are_not_cut_at_the_edge_however_they_come() -> None:
    text = "Whoever reads this knows where a line ends."
    whole = "Whoever reads this\nknows where a line\nends.\n"
    assert flowing(text) == flowing(*text) == flowing(*text.partition("kno")) == whole
    assert flowing(text, depth=1) == "│ Whoever reads this\n│ knows where a line\n│ ends.\n"
    assert flowing("  indented\n\n    code  here\n") == "  indented\n\n    code  here\n"


def test_a_word_that_fits_on_no_line_is_left_to_the_terminal() -> None:
    assert flowing("see https://example.com/a/b/c and more") == "see\nhttps://example.com/a/b/c and more\n"


def test_scripts_without_blanks_break_between_characters() -> None:
    assert flowing("谁读到这里就知道一行在哪里结束") == "谁读到这里就知道一行\n在哪里结束\n"


def test_a_word_is_held_until_it_is_whole_or_nothing_follows() -> None:
    file = io.StringIO()
    page = TerminalWriter(Console(file=file, width=20))
    page.write("one tw", voice=1)
    assert file.getvalue() == "one"
    page.pause()
    assert file.getvalue() == "one tw"
    page.write("o three", voice=1)
    page.line("  └ a result that is longer than the line")
    assert file.getvalue() == "one two three\n  └ a result that is\n  longer than the\n  line\n"


def test_sub_agents_stand_to_the_right() -> None:
    show, assembler = Show(), StreamAssembler(make_mint("s"), "scope_1")
    seen = show.see(
        ScopedEvent("scope_1", m.ScopeOpened(parent="root", title="Helper")),
        *assembler.text_delta("w", "one\ntwo"),
        *assembler.finish(),
        ScopedEvent("scope_1", m.ScopeMessage(sender="scope_1", recipient="root", content="done")),
        ScopedEvent("scope_1", m.ScopeStatusChanged(status=m.ScopeStatus.ENDED)),
    )
    assert seen == "▼ sub-agent Helper\n│ one\n│ two\n│ ✉ done\n▲ sub-agent is done\n"


def test_everything_else_is_a_line() -> None:
    show, assembler = Show(), StreamAssembler(make_mint("s"))
    seen = show.see(
        *assembler.image(m.ImagePart(url="https://x/y.png")), *assembler.data(m.DataPart(type="plan", content=[1])),
        m.MessageAnnotated(message_id="m", topic=m.AnnotationTopic.INTENT, content="demo"), *assembler.finish(),
        m.NoticePosted(topic="t", title="mind\nthe gap", level=m.NoticeLevel.WARNING), m.SessionUpdated(title="Trip"),
        m.SessionUpdated(metadata={}), m.SessionCompacted(compaction_id="c", summary="all of it"),
        m.FaultRaised(fault=m.Fault(code=m.FaultCode.BACKEND, message="hm")),
        RemoteAsk(ask=m.QuestionAsk(questions=()), ref="r"),
    )
    assert seen.splitlines() == [
        "[image] https://x/y.png", "[plan] [1]", 'intent: "demo"', "! mind the gap", "title: Trip",
        "the history was compacted: all of it", "! hm",
    ]


def test_ends_that_a_reader_would_not_guess() -> None:
    fault = m.Fault(code=m.FaultCode.BACKEND, message="broken")
    assert Show().see(RemoteTurnEnd(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=fault)) == (
        "the agent failed: broken\n0.0 s\n")
    assert (
        Show().see(RemoteTurnEnd(outcome=m.Outcome.INTERRUPTED, stop_reason=m.StopReason.INTERRUPTED))
        == "interrupted\n0.0 s\n"
    )
    assert Show().see(RemoteTurnEnd(stop_reason=m.StopReason.REFUSAL, result={"a": 1})) == (
        'it refused to go on\n{"a":1}\n0.0 s\n')


def test_nothing_of_what_an_agent_says_moves_the_cursor() -> None:
    show, assembler = Show(), StreamAssembler(make_mint("s"))
    seen = show.see(*assembler.text_delta("w", "\x1b[2Jhello [bold]"), *assembler.finish())
    assert seen == "\\x1b[2Jhello [bold]\n"


def test_raw_shows_events() -> None:
    show = Show()
    show.screen.is_raw = True
    seen = show.see(
        m.NoticePosted(topic="t", title="n"), ScopedEvent("scope_1", m.ScopeOpened(parent="root")), RemoteTurnEnd()
    )
    assert seen.splitlines() == [
        'notice.posted {"topic":"t","title":"n"}', '[scope_1] scope.opened {"parent":"root"}',
        'ended {"stop_reason":"end_turn","outcome":"completed","fault":null,"result":null}',
    ]


def test_colours_are_for_terminals() -> None:
    file = io.StringIO()
    page = TerminalWriter(Console(file=file, force_terminal=True, width=80, color_system="standard"))
    page.write("dim", "dim", voice=1)
    page.write("bright", voice=2)
    page.line("alone", "red")
    page.start_line()
    assert file.getvalue().startswith("\x1b[2mdim\x1b[0m\nbright\n\x1b[31malone\x1b[0m\n")


# -- a pipe -----------------------------------------------------------------------------------------------------------

def test_a_pipe_gets_words_and_pictures_of_the_agent_alone() -> None:
    reply, beside, assembler = io.StringIO(), io.StringIO(), StreamAssembler(make_mint("s"))
    screen = PlainScreen(reply, beside)
    screen.begin_turn()
    child = StreamAssembler(make_mint("c"), "scope_1")
    for heard in (
        *assembler.text_delta("t", "hm", m.BlockKind.THINKING),
        *assembler.end("t"),
        *assembler.text_delta("w", "hi\x07"),
        *assembler.end("w"),
        *child.text_delta("w", "not me"),
        *assembler.image(m.ImagePart(url="https://x")),
        *assembler.finish(),
        m.NoticePosted(topic="t", title="n"),
    ):
        screen.show(heard)
    screen.note("nobody reads this")
    screen.end_output()
    assert (reply.getvalue(), beside.getvalue()) == ("hi\\x07![image](https://x)\n", "")


def test_a_pipe_is_told_of_trouble_on_the_other_side() -> None:
    reply, beside = io.StringIO(), io.StringIO()
    screen = PlainScreen(reply, beside)
    screen.show(RemoteTurnEnd(fault=m.Fault(code=m.FaultCode.BACKEND, message="broken")))
    screen.ask("? well")
    assert (reply.getvalue(), beside.getvalue()) == ("", "the agent failed: broken\n? well\n")
    screen.is_raw = True
    screen.show(m.NoticePosted(topic="t", title="n"))
    assert reply.getvalue() == 'notice.posted {"topic":"t","title":"n"}\n'

"""The gateway inside another program: as a part of its application, or on a port of its own."""

import asyncio
import logging
import os
import runpy
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from aiohttp import web

from gateway import Dragoman, served
from gateway.backends import DemoBackend
from gateway.errors import Invalid
from gateway.logging import log_to_host
from gateway.yaml_positions import Problems

EXAMPLES = Path(__file__).parents[1] / "examples" / "embedded"


async def reply(text: str) -> AsyncIterator[str]:
    yield f"You said: {text}"


async def talk(http: aiohttp.ClientSession, url: str, agent: str, words: str = "hello") -> str:
    """What the agent says to these words, over AAP."""
    async with http.post(f"{url}/aap/sessions", json={"agent": {"name": agent}}) as response:
        assert response.status == 201, await response.text()
        session = (await response.json())["sessionId"]
    message = {"stream": "none", "messages": [{"role": "user", "content": words}]}
    async with http.post(f"{url}/aap/sessions/{session}/turns", json=message) as response:
        return str((await response.json())["messages"][-1]["content"][-1]["text"])


@asynccontextmanager
async def application_served(app: web.Application) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with aiohttp.ClientSession() as http:
            yield http, f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_function_is_served_in_all_dialects_by_two_lines() -> None:
    async with served(reply) as url, aiohttp.ClientSession() as http:
        assert await talk(http, url, "agent") == "You said: hello"
        async with http.get(f"{url}/api/v1/cloud/agents") as response:
            assert [agent["name"] for agent in (await response.json())["data"]] == ["agent"]
        async with http.get(f"{url}/readyz") as response:
            assert response.status == 200


async def test_the_example_of_a_sub_application_works() -> None:
    app = runpy.run_path(str(EXAMPLES / "subapplication.py"))["application"]()
    async with application_served(app) as (http, url):
        async with http.get(url) as response:
            assert "My own page" in await response.text()
        assert await talk(http, f"{url}/agents", "echo") == "You said: hello"


async def test_the_example_beside_an_asgi_application_works() -> None:
    app = runpy.run_path(str(EXAMPLES / "asgi_application.py"))["app"]
    async with app.router.lifespan_context(app), aiohttp.ClientSession() as http:
        url = app.state.agents
        assert await talk(http, url, "echo") == "You said: hello"
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get(url)


async def test_below_a_prefix_links_and_errors_are_those_of_the_dialect() -> None:
    app = web.Application()
    app.add_subapp("/bots", Dragoman(agents={"demo": {"backend": "demo"}}).application())
    async with application_served(app) as (http, url):
        form = aiohttp.FormData()
        form.add_field("file", b"words", filename="a.txt", content_type="text/plain")
        async with http.post(f"{url}/bots/api/v1/files/upload", data=form) as response:
            link = (await response.json())["data"]["file_url"]
        assert link.startswith(f"{url}/bots/api/v1/files/")
        async with http.get(link) as response:
            assert await response.read() == b"words"
        async with http.get(f"{url}/bots/api/v1/cloud/sessions/none") as response:
            assert response.status == 404
            assert (await response.json())["type"] == "error"  # CAS's own shape of a refusal
        async with http.get(f"{url}/bots/nowhere") as response:
            assert response.status == 404
            assert (await response.json())["error"]["code"] == "not_found"


async def test_the_console_finds_its_files_below_a_prefix() -> None:
    app = web.Application()
    app.add_subapp("/bots", Dragoman(agents={"echo": reply}).application())
    async with application_served(app) as (http, url):
        async with http.get(f"{url}/bots/", headers={"Accept": "text/html"}) as response:
            assert str(response.url) == f"{url}/bots/console/"
            page = await response.text()
        async with http.get(f"{url}/bots/console?lang=zh") as response:
            assert str(response.url) == f"{url}/bots/console/?lang=zh"
        assert 'src="static/app.js"' in page
        async with http.get(f"{url}/bots/console/static/app.js") as response:
            assert response.status == 200
        async with http.get(f"{url}/bots/console/api/server") as response:
            assert response.status == 200
            urls = {place["url"] for place in (await response.json())["dialects"]}
        assert f"{url}/bots/aap" in urls


async def test_agents_are_functions_backends_or_settings_beside_those_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("dialects: {aap: }\nlog: memory\nagents: {first: {backend: demo}}\n")
    agents: dict[str, Any] = {"function": reply, "object": DemoBackend(), "settings": {"backend": "demo"}}
    async with Dragoman(file, agents=agents, port=0).listening() as url, aiohttp.ClientSession() as http:
        for agent in ("first", *agents):
            assert await talk(http, url, agent) == "You said: hello", agent
        async with http.get(f"{url}/api/v1/cloud/agents") as response:
            assert response.status == 404  # the file serves AAP only


async def test_what_is_stored_without_a_data_folder_is_gone_at_the_end() -> None:
    dragoman = Dragoman(agents={"echo": reply})
    folder = dragoman._gateway.components.config.data
    async with dragoman.listening(port=0):
        assert folder.is_dir()
    assert not folder.exists()


async def test_with_a_data_folder_sessions_are_there_again(tmp_path: Path) -> None:
    for expected in (1, 2):
        dragoman = Dragoman(agents={"echo": reply}, data=tmp_path, log="sqlite")
        async with dragoman.listening(port=0) as url, aiohttp.ClientSession() as http:
            await talk(http, url, "echo")
            async with http.get(f"{url}/api/v1/cloud/sessions") as response:
                assert len((await response.json())["data"]) == expected


async def test_a_turn_that_runs_at_the_end_may_finish() -> None:
    may_finish, words = asyncio.Event(), list[str]()

    async def slow(text: str) -> AsyncIterator[str]:
        yield "one "
        await may_finish.wait()
        yield "two"

    async with aiohttp.ClientSession() as http:
        async with served(slow) as url:
            task = asyncio.create_task(talk(http, url, "agent"))
            task.add_done_callback(lambda done: words.append(done.result()))
            await asyncio.sleep(0.2)
            asyncio.get_running_loop().call_later(5.0, may_finish.set)  # aiohttp alone waits for two seconds
        await task
    assert words == ["one two"]


@pytest.mark.parametrize(("arguments", "message"), [
    ({"agents": {"a": reply}, "limts": {}}, "argument limts: there is no setting 'limts'; did you mean 'limits'?"),
    ({"agents": {"a": reply}, "port": "many"}, "argument port: port: must be a whole number, not 'many'"),
    ({"agents": {"a": {"backend": "dmo"}}}, "there is no backend 'dmo'; did you mean 'demo'?"),
    ({}, "agents"),
])
def test_mistakes_of_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(Problems) as caught:
        Dragoman(**arguments)
    assert message in str(caught.value)


def test_a_mistake_beside_a_file_names_the_argument(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("dialects: {aap: }\nagents: {first: {backend: demo}}\n")
    with pytest.raises(Problems, match="argument port"):
        Dragoman(file, port="many")


async def unknown_parameter(text: str, weather: str) -> AsyncIterator[str]:
    yield weather


def test_a_function_that_cannot_be_called_is_refused_with_its_line() -> None:
    with pytest.raises(Problems) as caught:
        Dragoman(agents={"a": unknown_parameter})
    line = unknown_parameter.__code__.co_firstlineno
    assert f"test_embedded_gateway.py:{line}" in str(caught.value)
    assert "'weather'" in str(caught.value)


def test_what_is_no_agent_is_refused() -> None:
    wrong: Any = 42
    with pytest.raises(Invalid, match="the agent 'a' is int: give a function"):
        Dragoman(agents={"a": wrong})


def test_a_gateway_is_served_once() -> None:
    dragoman = Dragoman(agents={"echo": reply})
    dragoman.application()
    with pytest.raises(RuntimeError, match="served once"):
        dragoman.application()


def test_lines_go_to_the_logging_of_the_program(caplog: pytest.LogCaptureFixture) -> None:
    structlog.reset_defaults()
    log_to_host()
    log = structlog.get_logger("dragoman.session")
    with caplog.at_level(logging.INFO, "dragoman"):
        log.debug("not_wanted")
        log.info("turn_ended", session="sess_1", token="a secret", at="http://x/?key=abc")
    assert [(line.name, line.getMessage()) for line in caplog.records] == [
        ("dragoman.session", "turn_ended session=sess_1 token=*** at=http://x/?***"),
    ]


def test_a_program_that_has_set_up_structlog_keeps_its_settings() -> None:
    lines: list[Any] = []

    def keep(logger: object, method: str, entry: Any) -> Any:
        lines.append(entry["event"])
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    log_to_host()
    structlog.get_logger("dragoman.session").info("turn_ended")
    assert lines == ["turn_ended"]


def test_the_command_works_in_a_folder_whose_modules_have_the_names_of_ours(tmp_path: Path) -> None:
    for name in ("gateway", "adapters", "mappings", "conformance"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('the {name} of the user was imported')\n")
    (tmp_path / "bot.py").write_text("async def reply(text):\n    yield text\n")
    (tmp_path / "config.yaml").write_text(
        "dialects: {aap: }\nagents: {bot: {backend: python, settings: {agent: 'bot:reply'}}}\n")
    command = Path(sys.executable).with_name("dragoman")
    done = subprocess.run([command, "check"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "agent bot: python" in done.stdout


@pytest.mark.parametrize("name", ["adapters", "mappings"])
def test_the_import_names_the_module_of_the_program_that_has_the_name_of_ours(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "program.py").write_text("from gateway import Dragoman\n")
    root = str(Path(__file__).parents[1])
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root},
                          capture_output=True, text=True, timeout=300)
    assert f"ImportError: {tmp_path / name}.py has the name of a package of Dragoman" in done.stderr


def test_the_script_of_the_page_serves_its_function(tmp_path: Path) -> None:
    page = Path(__file__).parents[1] / "docs" / "embedding.md"
    script = page.read_text().split("```python\n")[1].split("```")[0]
    changed = script.replace("await asyncio.Event().wait()", "await asyncio.sleep(0)")
    assert changed != script
    (tmp_path / "script.py").write_text(changed)
    root = str(page.parents[1])
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root},
                          capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("serving at http://127.0.0.1:"), done.stderr
    assert done.returncode == 0

"""A turn that waits for people while the server is stopped is run anew up to the ask when it is back."""

import signal
from pathlib import Path

import pytest
import yaml

from tests.support.backends.function_server import call_of, result, session_of, shown, text_of, turn
from tests.support.server_process import running


@pytest.mark.parametrize(("number", "plain"), [(signal.SIGKILL, False), (signal.SIGTERM, True)])
def test_a_turn_that_waits_is_run_anew_after_a_restart(tmp_path: Path, number: signal.Signals, plain: bool) -> None:
    code = shown("python")
    (tmp_path / "weather.py").write_text(code.replace("async ", "").replace("await ", "") if plain else code)
    settings = {"dialects": {"aap": {}}, **yaml.safe_load(shown("yaml"))}
    with running(tmp_path, **settings) as server:
        session = session_of(server, "weather")
        call = call_of(turn(server, session, {"role": "user", "content": "weather"}))
        server.end(number)
    with running(tmp_path, **settings) as server:
        assert text_of(turn(server, session, result(call, "Tomorrow"))) == "Tomorrow it will be sunny in Ankara."

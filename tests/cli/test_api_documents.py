"""`dragoman openapi` and `dragoman asyncapi` print what a server with these settings would serve."""

import json
from collections.abc import Callable

from typer.testing import Result

Run = Callable[..., Result]


def test_the_settings_say_what_is_described(dragoman: Run) -> None:
    document = json.loads(dragoman("openapi").stdout)
    assert document["openapi"] == "3.1.0"
    assert {"/aap/sessions", "/healthz", "/console/api/hello"} <= set(document["paths"])
    assert "/socket.io/" not in document["paths"]


def test_a_dialect_is_described_that_the_settings_do_not_serve(dragoman: Run) -> None:
    document = json.loads(dragoman("asyncapi", "--dialect", "blade").stdout)
    assert document["asyncapi"] == "3.0.0"
    assert [one["address"] for one in document["channels"].values()] == ["/socket.io/"]


def test_an_unknown_dialect_is_a_mistake_of_the_user(dragoman: Run) -> None:
    result = dragoman("openapi", "--dialect", "app")
    assert result.exit_code == 2
    assert result.stderr == "there is no dialect 'app'; did you mean 'aap'?\n"

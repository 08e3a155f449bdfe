"""The fuzzer can be repeated, reaches what it should, and its judges can say no."""

from pathlib import Path
from random import Random

import yaml

from gateway.app import Gateway
from gateway.composition import load_components
from gateway.config import load_config
from tests.prove.fuzz.requests import RequestMaker, Route, routes_of
from tests.prove.fuzz.target import MIB, complaints_of, growth
from tests.prove.fuzz.values import KnownIds, ValueMaker
from tests.support.dialect_tables import ALL_DIALECTS

SETTINGS = {
    "dialects": ALL_DIALECTS, "agents": {"demo": {"backend": "demo"}},
    "log": "memory",
}


def routes(folder: Path) -> list[list[Route]]:
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump({**SETTINGS, "data": str(folder / "data")}))
    return routes_of(Gateway(load_components(load_config(file))).web)


def test_the_same_number_makes_the_same_request(tmp_path: Path) -> None:
    requests = RequestMaker(routes(tmp_path), KnownIds())
    made = [[str(requests.make(Random(f"1 {number}"))) for number in range(50)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 40


def test_routes_come_with_the_models_that_their_handlers_read_and_the_words_of_their_query(tmp_path: Path) -> None:
    found = {f"{route.method} {route.path}": route for alike in routes(tmp_path) for route in alike}
    assert [model["title"] for model in found["POST /api/scheduled-tasks"].models] == ["NewTask"]
    assert "from" in found["GET /api/scheduled-tasks/calendar"].words
    assert found["GET /aap/sessions"].models == []


def test_ids_stand_where_the_server_gave_them() -> None:
    known = KnownIds()
    known.add("/api/sessions?limit=1", ["sess_1"])
    known.add("/api/scheduled-tasks", ["task_1"])
    assert {known.choose(Random(seed), "sessions") for seed in range(20)} == {"sess_1"}
    assert {known.choose(Random(seed), "conversations") for seed in range(20)} == {"sess_1"}
    values = [ValueMaker(Random(seed), known).id_of("scheduled-tasks") for seed in range(50)]
    assert "task_1" in values and len(set(values)) > 3


def test_a_traceback_is_a_complaint_and_a_line_about_a_stranger_is_none() -> None:
    lines = [
        '{"event":"malformed_request","level":"info"}\n', '{"event":"request_failed","level":"error"}\n',
        '{"event":"x","level":"warning","exception":"Traceback (most recent call last): ..."}\n', "warnings.warn(x)\n",
    ]
    assert complaints_of(lines) == [line.rstrip() for line in lines[1:]]


def test_memory_that_rises_in_the_second_half_is_growth() -> None:
    places = [float(number) for number in range(100)]
    for each, grows in ((0.0, False), (0.1, False), (1.0, True)):
        rise, allowed = growth(places, [100 * MIB + each * place * MIB for place in places])
        assert (rise > allowed) is grows

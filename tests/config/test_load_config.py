"""Settings come from four places, one before the other, and every mistake is told with its place."""

from pathlib import Path

import pytest

from gateway.config import load_config
from gateway.yaml_positions import Problems

ROOT = Path(__file__).parents[2]
GOOD = "dialects: {speech: {mount: /speech}}\nagents: {demo: {backend: demo}}\n"


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str) -> Path:
    file = Path("config.yaml")
    file.write_text(text)
    return file


def problems(text: str) -> list[str]:
    with pytest.raises(Problems) as caught:
        load_config(written(text))
    return str(caught.value).splitlines()


# -- from where -------------------------------------------------------------------------------------------------------

def test_the_file_of_the_repository_works_as_it_is() -> None:
    config = load_config(ROOT / "config.yaml")
    assert (config.host, config.port, config.default_agent) == ("127.0.0.1", 18900, "demo")
    assert config.data == ROOT / "data"


def test_the_command_line_goes_before_the_environment_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(GOOD + "port: 1\n")
    assert load_config(file).port == 1
    monkeypatch.setenv("DRAGOMAN_PORT", "2")
    assert load_config(file).port == 2
    assert load_config(file, {"port": 3, "host": None}).port == 3


def test_a_variable_reaches_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_LIMITS__TURN_SECONDS", "60")
    monkeypatch.setenv("DRAGOMAN_AGENTS__DEMO__MODEL", "demo-2")
    monkeypatch.setenv("DRAGOMAN_LOGGING", '{"level": "debug"}')
    config = load_config(written(GOOD + "limits: {send_seconds: 5}\n"))
    assert (config.limits.turn_seconds, config.limits.send_seconds) == (60, 5)
    assert config.agents["demo"].model == "demo-2"
    assert config.logging.level == "debug"


def test_paths_are_meant_from_the_folder_of_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "table.yaml").touch()
    (folder / "config.yaml").write_text(GOOD + "data: here\nmappings: {speech: table.yaml}\n")
    config = load_config(Path("elsewhere/config.yaml"), {"data": "/there"})
    assert config.data == Path("/there")
    assert config.source_files == (folder / "config.yaml", folder / "table.yaml")
    assert load_config(Path("elsewhere/config.yaml")).data == folder / "here"


def test_what_else_is_said_of_a_dialect_is_its_own() -> None:
    config = load_config(written("dialects: {speech: {mount: /s/, tick: 30}, plain: }\nagents: {a: {backend: demo}}"))
    assert config.dialects["speech"].mount == "/s"
    assert config.dialects["speech"].settings == {"tick": 30}
    assert config.dialects["plain"].mount is None


# -- mistakes ---------------------------------------------------------------------------------------------------------

FIVE_MISTAKES = """\
hots: 127.0.0.1
port: many
log: memori
dialects:
  speech: {mount: /speech}
agents:
  demo:
    backend: demo
    version: one
limits:
  turn_second: 5
"""


def test_five_mistakes_are_five_lines() -> None:
    assert problems(FIVE_MISTAKES) == [
        "config.yaml:1:1: there is no setting 'hots'; did you mean 'hosts'?",
        "config.yaml:2:7: port: must be a whole number, not 'many'",
        "config.yaml:3:6: unknown log 'memori'; did you mean 'memory'?",
        "config.yaml:9:14: 'one' is not a semantic version; write it as 1.0.0",
        "config.yaml:11:3: there is no setting 'turn_second'; did you mean 'turn_seconds'?",
    ]


DEEP_MISTAKES = """\
dialects:
  speech: {mount: speech}
  song: {mount: /speech/}
agents:
  demo:
    backend: demo
    tools:
      - {name: search, premission: ask}
      - {name: search, permission: maybe}
    options:
      - {name: tone, type: select, options: [plain, formal], default: plian}
      - {name: mood, type: select}
      - {name: size, type: select, options: [small]}
      - {name: pace, options: [slow]}
    capabilities: {streeming: [delta], images: [ftp]}
mappings:
  speach: a.yaml
  song: missing.yaml
"""


def test_mistakes_are_found_at_every_level() -> None:
    assert problems(DEEP_MISTAKES) == [
        "config.yaml:2:19: 'speech' is not a path; write it as '/speech'",
        "config.yaml:3:17: '/speech/' is where 'speech' is mounted already",
        "config.yaml:8:24: there is no setting 'premission'; did you mean 'permission'?",
        "config.yaml:9:16: 'search' is in 'tools' a second time",
        "config.yaml:9:36: agents.demo.tools.1.permission: must be 'allow', 'ask' or 'deny', not 'maybe'",
        "config.yaml:11:71: the default 'plian' is not among the options; did you mean 'plain'?",
        "config.yaml:12:28: a select needs something to choose from; add `options: [...]`",
        "config.yaml:13:9: a select needs a default; it is one of: small",
        "config.yaml:14:22: only a select has options; add `type: select`",
        "config.yaml:15:20: there is no setting 'streeming'; did you mean 'streaming'?",
        "config.yaml:15:49: agents.demo.capabilities.images.0: must be 'http' or 'data', not 'ftp'",
        "config.yaml:17:3: 'speach' is not served; did you mean 'speech'?",
        "config.yaml:18:9: there is no file 'missing.yaml'; the path starts at the folder of the config file",
    ]


def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PORT", "-1")
    monkeypatch.setenv("DRAGOMAN_PROT", "1")
    monkeypatch.setenv("DRAGOMAN_LIMITS__TURN_SECOND", "1")
    monkeypatch.setenv("DRAGOMAN_LOGGING", '{"level": "loud"}')
    monkeypatch.setenv("DRAGOMAN_SERVICE_HOST", "10.0.0.1")  # what a cluster sets beside a service of this name
    assert problems(GOOD) == [
        "variable DRAGOMAN_LIMITS__TURN_SECOND: there is no setting 'turn_second'; did you mean 'turn_seconds'?",
        "variable DRAGOMAN_LOGGING: logging.level: must be 'debug', 'info', 'warning' or 'error', not 'loud'",
        "variable DRAGOMAN_PORT: port: must be at least 0, not '-1'",
        "variable DRAGOMAN_PROT: there is no setting 'prot'; did you mean 'port'?",
    ]


def test_a_group_that_is_not_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_LIMITS", "{")
    found = problems(GOOD + "prot: 1\n")
    assert found[0] == "config.yaml:3:1: there is no setting 'prot'; did you mean 'port'?"
    assert found[1].startswith("variable DRAGOMAN_LIMITS: a whole group must be JSON: ")


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(Problems, match=r"^option --port: port: must be at most 65535, "):
        load_config(written(GOOD), {"port": 99999})


def test_a_list_from_the_environment_is_not_blamed_on_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_AGENTS__DEMO__TOOLS", '[{"nam": "search"}]')
    assert problems("dialects: {speech: }\nagents: {demo: {backend: demo, tools: [{name: x}]}}") == [
        "variable DRAGOMAN_AGENTS__DEMO__TOOLS: 'name' is missing",
        "variable DRAGOMAN_AGENTS__DEMO__TOOLS: there is no setting 'nam'; did you mean 'name'?",
    ]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_without_keys_only_this_machine_is_let_in(host: str) -> None:
    assert load_config(written(GOOD + f"host: '{host}'\nauth: none\n")).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com"])
def test_strangers_need_keys(host: str) -> None:
    assert problems(GOOD + f"host: '{host}'\n") == [
        f"config.yaml:3:7: auth: none is for this machine only, but on host '{host}' others could use the agents; "
        "set `auth: keys` and make a key with `dragoman keys add NAME`, or set `host: 127.0.0.1`",
    ]
    assert load_config(written(GOOD + f"host: '{host}'\nauth: keys\n")).auth == "keys"


def test_several_ways_in_can_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    oidc = "oidc: {issuer: 'https://login.example', audience: a}\n"
    for text, asks_for in (
        ("auth: none\n", ()), ("auth: keys\n", ("keys",)), (f"auth: oidc\n{oidc}", ("oidc",)),
        (f"auth: [oidc, keys]\n{oidc}", ("keys", "oidc")),
    ):
        assert load_config(written(GOOD + text)).auth_methods == asks_for
    monkeypatch.setenv("DRAGOMAN_AUTH", "keys")
    monkeypatch.setenv("DRAGOMAN_ADMINS", '["root"]')
    config = load_config(written(GOOD))
    assert (config.auth_methods, config.admins) == (("keys",), ("root",))


def test_a_way_in_that_lets_in_nobody_or_everybody_is_refused() -> None:
    assert problems(GOOD + "auth: kyes\n") == [
        "config.yaml:3:7: auth: 'kyes' is not a way to authenticate; there are: none, keys, oidc"]
    assert problems(GOOD + "auth: [keys, none]\n") == [
        "config.yaml:3:7: auth: 'none' is not a way to authenticate; list keys, oidc, or both"]
    assert "an empty list lets nobody in" in problems(GOOD + "auth: []\n")[0]
    assert problems(GOOD + "auth: oidc\n") == [
        "config.yaml:3:7: auth: oidc needs to know who signs the tokens; add `oidc: {issuer: https://…, audience: …}`"]
    for url in ("http://login.example", "ftp://x", "login.example", "http://["):
        [problem] = problems(GOOD + f"auth: oidc\noidc: {{audience: a, issuer: '{url}'}}\n")
        assert f"'{url}' is not an https:// address" in problem
    assert problems(GOOD + "auth: oidc\noidc: {audience: a, issuer: 'https://x', algorithms: [HS256]}\n")


def test_an_empty_file_serves_nothing() -> None:
    assert problems("") == [
        "config.yaml:1:1: 'agents' names nothing to serve; name one at least: `agents: {demo: {backend: demo}}`",
        "config.yaml:1:1: 'dialects' names nothing to serve; name one at least: `dialects: {NAME: }`",
    ]


@pytest.mark.parametrize(("text", "problem"), [
    ("- a\n", "config.yaml:1:1: the settings must be a mapping; write them as `name: value`"),
    ("port: [\n", "config.yaml:2:1: not YAML: while parsing a flow node, expected the node content, "
                  "but found '<stream end>'"),
    (GOOD + "port: 1\nport: 2\n", "config.yaml:4:1: 'port' is here a second time; the first is in line 3"),
    (GOOD + "outbound: {allow: [10.0.0.0/8, '*.corp.example', redis, '[::1]', 'http://x']}\n",
     "config.yaml:3:66: outbound.allow.4: expected a host name (mcp.example, *.example) or a network "
     "(10.0.0.0/8, ::1)"),
    (GOOD + "limits: 5\n", "config.yaml:3:9: limits: must be a mapping, as `{name: value}`, not 5"),
])
def test_what_is_no_mapping_of_settings_is_told(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(Problems, match=r"^nowhere\.yaml:1:1: there is no such file; name another with --config$"):
        load_config("nowhere.yaml")


def test_folders_of_skills_and_docs_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("dialects: {aap: {}}\nagents: {demo: {backend: demo}}\nmanagement: {skills: mine}\n")
    management = load_config(file).management
    assert (management.skills, management.docs) == (tmp_path / "mine", None)

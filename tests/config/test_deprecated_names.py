"""Settings under old names work, and a warning names the place and the new name."""

from pathlib import Path

import pytest

from deploy.release.version import current_version
from gateway.backends.llm.settings import RETRIES_REMOVED_IN
from gateway.config import load_config
from gateway.config.deprecated_names import OLD_ORIGIN_SETTINGS, RENAMED_SETTINGS
from gateway.http.metrics import DEPRECATED_METRICS
from gateway.yaml_positions import Problems

GOOD = "dialects: {speech: {mount: /speech}}\nagents: {demo: {backend: demo}}\n"
OLD = GOOD + """\
journal: {level: debug}
limits:
  sessions_at_hand: 7
shadow:
  backend: demo
  at_once: 3
  seconds: 9
"""


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


def test_old_names_of_the_file_work_and_are_warned_of() -> None:
    config = load_config(written(OLD))
    assert config.shadow is not None
    assert (config.logging.level, config.limits.cached_sessions) == ("debug", 7)
    assert (config.shadow.max_concurrent, config.shadow.timeout_seconds) == (3, 9)
    assert config.warnings == (
        "config.yaml:3:1: 'journal' is an old name, to be removed in 0.3.0 (not before 2027-05-01); "
        "use 'logging', which means the same",
        "config.yaml:5:3: 'limits.sessions_at_hand' is an old name, to be removed in 0.3.0 (not before 2027-05-01); "
        "use 'limits.cached_sessions', which means the same",
        "config.yaml:8:3: 'shadow.at_once' is an old name, to be removed in 0.3.0 (not before 2027-05-01); "
        "use 'shadow.max_concurrent', which means the same",
        "config.yaml:9:3: 'shadow.seconds' is an old name, to be removed in 0.3.0 (not before 2027-05-01); "
        "use 'shadow.timeout_seconds', which means the same",
    )


def test_new_names_are_not_warned_of() -> None:
    assert load_config(written(GOOD + "logging: {level: debug}\nlimits: {cached_sessions: 7}\n")).warnings == ()


def test_a_wrong_value_under_an_old_name_is_found_at_its_place() -> None:
    assert problems(GOOD + "journal:\n  levl: info\n  level: loud\n") == [
        "config.yaml:4:3: there is no setting 'levl'; did you mean 'level'?",
        "config.yaml:5:10: logging.level: must be 'debug', 'info', 'warning' or 'error', not 'loud'",
    ]


def test_both_names_together_are_a_mistake() -> None:
    assert problems(GOOD + "logging: {level: info}\njournal: {level: debug}\n") == [
        "config.yaml:4:1: 'journal' is the old name of 'logging', and both are set; remove the old one",
    ]


@pytest.mark.parametrize(("variable", "value"), [
    ("DRAGOMAN_JOURNAL", '{"level": "error"}'),
    ("DRAGOMAN_JOURNAL__LEVEL", "error"),
    ("dragoman_journal__level", "error"),
])
def test_an_old_variable_goes_before_the_file(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    for name in ("logging", "journal"):
        config = load_config(written(GOOD + f"{name}: {{level: debug, format: json}}\n"))
        assert (config.logging.level, config.logging.format) == ("error", "json")
        assert config.warnings[-1] == (
            f"variable {variable}: 'journal' is an old name, to be removed in 0.3.0 (not before 2027-05-01); "
            "use 'logging', which means the same")


@pytest.mark.parametrize(("variable", "value"), [
    ("DRAGOMAN_LIMITS", '{"sessions_at_hand": 8}'),
    ("DRAGOMAN_LIMITS__SESSIONS_AT_HAND", "8"),
])
def test_an_old_name_within_a_group_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    config = load_config(written(GOOD + "limits: {cached_sessions: 7, turn_seconds: 5}\n"))
    assert (config.limits.cached_sessions, config.limits.turn_seconds) == (8, 5)
    assert config.warnings == (
        f"variable {variable}: 'limits.sessions_at_hand' is an old name, to be removed in 0.3.0 "
        "(not before 2027-05-01); use 'limits.cached_sessions', which means the same",
    )


def test_an_old_variable_that_is_not_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_JOURNAL", "{")
    assert problems(GOOD)[0].startswith("variable DRAGOMAN_JOURNAL: a whole group must be JSON: ")


@pytest.mark.parametrize("variable", ["UPLOADS", "OUTBOUND", "WORKSPACE", "LOGGING"])
def test_every_group_that_is_not_json_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(f"DRAGOMAN_{variable}", "{")
    assert problems(GOOD)[0].startswith(f"variable DRAGOMAN_{variable}: a whole group must be JSON: ")


@pytest.mark.parametrize("variable", ["HOSTS", "TRUSTED_PROXIES", "ADMINS"])
def test_every_list_that_is_not_json_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(f"DRAGOMAN_{variable}", "example.com")
    assert problems(GOOD)[0].startswith(f"variable DRAGOMAN_{variable}: a list must be JSON: ")


def test_the_page_on_upgrading_lists_every_old_name() -> None:
    page = (Path(__file__).parents[2] / "docs" / "upgrading.md").read_text()
    for old, (new, removed_in) in RENAMED_SETTINGS.items():
        path = ".".join(map(str, old))
        group = path.rpartition(".")[0] + "." if "." in path else ""
        assert f"| `{path}` | `{group}{new}` | {removed_in} |" in page
    for name, metric in DEPRECATED_METRICS.items():
        assert f"| `{name}` | `{metric.name}` | {metric.removed_in} |" in page


def test_no_old_name_is_kept_longer_than_was_said() -> None:
    """Whoever makes the release that a row names removes the row, or gives the old name more time."""
    current = version_numbers(current_version(Path(__file__).parents[2]))
    ends = [*(new.removed_in for new in RENAMED_SETTINGS.values()), *OLD_ORIGIN_SETTINGS.values(), RETRIES_REMOVED_IN,
            *(metric.removed_in for metric in DEPRECATED_METRICS.values())]
    assert [end for end in ends if version_numbers(end) <= current] == []


def version_numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))

"""Dashboard and alerts name metrics and labels that exist, and no metric of ours is left out of the dashboard."""

import json
import re
from pathlib import Path

import yaml

from gateway.http.metrics import DEPRECATED_METRICS
from gateway.usage import ENDPOINT, FEATURE
from tests.support.gateway_server import serving

GRAFANA = Path(__file__).parents[2] / "deploy/grafana"
BOARD = json.loads((GRAFANA / "dashboard.json").read_text())
RULES = [rule for group in yaml.safe_load((GRAFANA / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
SHOWN = [target["expr"] for panel in PANELS for target in panel["targets"]]
ALERTS = [rule["expr"] for rule in RULES]
NAME = re.compile(r"\b(?:dragoman|process|python)_\w+")
BY_PROMETHEUS = {"instance", "job", "le"}


async def exported(folder: Path) -> dict[str, set[str]]:
    """Sample → its labels, of a server that has counted everything once."""
    async with serving(folder) as served:
        metrics = served.gateway.metrics
        metrics.count_events("aap", 1)
        metrics.turn_ended("completed", 1.0)
        metrics.count_loss("aap", "cas", "text")
        for kind in (ENDPOINT, FEATURE):
            served.gateway.usage_counts.count("aap", "", "curl/8", kind, "text")
        families = list(metrics.registry.collect())
    found: dict[str, set[str]] = {}
    for family in families:
        names = {"counter": [f"{family.name}_total"], "histogram": [f"{family.name}_bucket"]}.get(
            family.type, [family.name])
        for name in names:
            found[name] = {label for sample in family.samples for label in sample.labels}
    return found


async def test_every_metric_that_is_named_exists(tmp_path: Path) -> None:
    there = await exported(tmp_path)
    variables = [one["query"]["query"] for one in BOARD["templating"]["list"] if one["type"] == "query"]
    for expression in (*SHOWN, *ALERTS, *variables):
        assert set(NAME.findall(expression)) - there.keys() == set(), expression


async def test_every_metric_of_ours_is_shown(tmp_path: Path) -> None:
    there = {name for name in await exported(tmp_path) if name.startswith("dragoman_")}
    shown = {name for expression in SHOWN for name in NAME.findall(expression)}
    assert there - shown - DEPRECATED_METRICS.keys() == set(), "show these in a panel"


KEY_LABELS = {"dragoman_key_requests_total": {"key"}, "dragoman_key_refusals_total": {"key", "limit"}}


async def test_every_label_that_is_named_exists(tmp_path: Path) -> None:
    there = await exported(tmp_path)
    labels = set().union(*there.values(), BY_PROMETHEUS, *KEY_LABELS.values())
    for expression in (*SHOWN, *ALERTS):
        grouped = [word for words in re.findall(r"\bby \(([^)]*)\)", expression) for word in words.split(", ")]
        matched = re.findall(r'(\w+)(?:=~|!=|=)"', expression)
        assert {*grouped, *matched} <= labels, expression


def test_panels_are_numbered_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_alert_says_what_to_do() -> None:
    for rule in RULES:
        assert rule["labels"]["severity"] in ("page", "warn")
        assert rule["annotations"].keys() == {"summary", "remedy"}


def test_expressions_are_balanced() -> None:
    for expression in (*SHOWN, *ALERTS):
        for begin, end in ("()", "[]", "{}"):
            assert expression.count(begin) == expression.count(end), expression

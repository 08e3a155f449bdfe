"""The chart renders, its objects refer to each other rightly, and its settings are settings of ours."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config import load_config
from gateway.http.health import Readiness, health_routes
from tests.support.helm_templates import Chart, UnknownTemplate

CHART = Path(__file__).parents[2] / "deploy/helm"
SECRETS = {"DRAGOMAN_SECRETS_KEY": "k" * 40}
Objects = dict[str, Any]


@pytest.fixture(scope="module")
def objects() -> Objects:
    return Chart(CHART).documents(secrets=SECRETS, autoscaling={"enabled": True})


def test_every_object_is_there_under_one_name(objects: Objects) -> None:
    assert objects.keys() == {
        "ConfigMap", "Secret", "Deployment", "Service", "Ingress", "PodDisruptionBudget", "HorizontalPodAutoscaler"}
    assert {one["metadata"]["name"] for one in objects.values()} == {"mine-dragoman"}


def test_selectors_find_the_pods(objects: Objects) -> None:
    pods = objects["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    for selector in (
        objects["Deployment"]["spec"]["selector"]["matchLabels"], objects["Service"]["spec"]["selector"],
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector
        assert selector.items() <= pods


def container(objects: Objects) -> Any:
    [one] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    return one


def test_references_lead_to_objects_of_the_chart(objects: Objects) -> None:
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert volumes.keys() == {one["name"] for one in container(objects)["volumeMounts"]}
    assert volumes["config"]["configMap"]["name"] == "mine-dragoman"
    assert container(objects)["envFrom"] == [{"secretRef": {"name": "mine-dragoman"}}]
    [port] = container(objects)["ports"]
    [service] = objects["Service"]["spec"]["ports"]
    assert service["targetPort"] == port["name"]
    [rule] = objects["Ingress"]["spec"]["rules"]
    [path] = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "mine-dragoman", "port": {"name": service["name"]}}
    assert objects["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == "mine-dragoman"


def test_the_settings_of_the_chart_are_settings(objects: Objects, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(objects["ConfigMap"]["data"]["config.yaml"])
    config = load_config(tmp_path / "config.yaml")
    assert [config.port] == [one["containerPort"] for one in container(objects)["ports"]]
    places = {one["name"]: one["mountPath"] for one in container(objects)["volumeMounts"]}
    assert str(config.data) == places["data"]
    assert objects["Ingress"]["spec"]["rules"][0]["host"] in config.hosts
    grace = objects["Deployment"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    [_, before] = container(objects)["lifecycle"]["preStop"]["exec"]["command"]
    assert grace > config.limits.drain_seconds + int(before)


def test_probes_ask_routes_that_exist(objects: Objects) -> None:
    routes = {route.path for route in health_routes(Readiness())}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container(objects)[probe]["httpGet"]["path"] in routes
    assert container(objects)["livenessProbe"]["httpGet"]["path"] == "/healthz", "a server that drains is alive"


def test_pods_have_no_rights(objects: Objects) -> None:
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container(objects)["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def test_the_ingress_has_what_streams_need(objects: Objects) -> None:
    said = objects["Ingress"]["metadata"]["annotations"]
    words = {name.removeprefix("nginx.ingress.kubernetes.io/"): value for name, value in said.items()}
    assert words["proxy-buffering"] == "off"
    assert int(words["proxy-read-timeout"]) > 30, "longer than every heartbeat"
    assert words["upstream-hash-by"] == "$remote_addr"


def test_servers_are_added_by_running_turns(objects: Objects) -> None:
    [metric] = objects["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == "dragoman_running_turns"
    assert "replicas" not in objects["Deployment"]["spec"], "the autoscaler decides"


def test_a_secret_or_a_claim_that_exists_is_used() -> None:
    objects = Chart(CHART).documents(existingSecret="theirs", filesClaim="files", ingress={"enabled": False})
    assert "Secret" not in objects
    assert "Ingress" not in objects
    assert "HorizontalPodAutoscaler" not in objects
    assert container(objects)["envFrom"] == [{"secretRef": {"name": "theirs"}}]
    assert objects["Deployment"]["spec"]["replicas"] == 3
    [data] = [one for one in objects["Deployment"]["spec"]["template"]["spec"]["volumes"] if one["name"] == "data"]
    assert data["persistentVolumeClaim"] == {"claimName": "files"}


@pytest.mark.parametrize("log", [
    "rediss://default:hush@redis:6379/0", "rediss+sentinel://default:hush@s1,s2,s3/main?wait=1",
    "rediss+cluster://default:hush@n1,n2,n3?wait=1&partitions=128",
])
def test_servers_find_redis_and_trust_its_certificate(
    log: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    log += f"{'&' if '?' in log else '?'}ssl_ca_certs={tmp_path}/ca.crt"
    (tmp_path / "ca.crt").touch()
    objects = Chart(CHART).documents(secrets={**SECRETS, "DRAGOMAN_LOG": log}, redisCertificates="redis-ca")
    monkeypatch.setenv("DRAGOMAN_LOG", objects["Secret"]["stringData"]["DRAGOMAN_LOG"])
    (tmp_path / "config.yaml").write_text(objects["ConfigMap"]["data"]["config.yaml"])
    assert load_config(tmp_path / "config.yaml").log == log
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    assert {"name": "redis-tls", "secret": {"secretName": "redis-ca"}} in pod["volumes"]
    assert {"name": "redis-tls", "mountPath": "/etc/redis-tls", "readOnly": True} in container(objects)["volumeMounts"]


def test_a_chart_without_the_key_for_secrets_is_refused() -> None:
    with pytest.raises(UnknownTemplate, match="seals secrets of clients"):
        Chart(CHART).documents()


def test_every_value_is_used() -> None:
    chart = Chart(CHART)
    chart.documents(secrets=SECRETS, autoscaling={"enabled": True}, filesClaim="x", redisCertificates="x")
    other = Chart(CHART)
    other.documents(existingSecret="x")
    used = {word.removeprefix(".Values.") for word in chart.used | other.used}

    def unused(values: Any, path: str) -> list[str]:
        if path in used:
            return []
        inner = values.items() if isinstance(values, dict) else ()
        return [name for key, value in inner for name in unused(value, f"{path}.{key}" if path else key)] or (
            [] if isinstance(values, dict) and values else [path])

    assert unused(yaml.safe_load((CHART / "values.yaml").read_text()), "") == []


def test_the_version_of_the_chart_is_that_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    text = (CHART.parents[1] / "pyproject.toml").read_text()
    assert f'\nversion = "{chart["version"]}"\n' in text
    assert chart["appVersion"] == chart["version"]

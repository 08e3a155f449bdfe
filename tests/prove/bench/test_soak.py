"""The smallest run of the soak: it goes through every dialect and tells its figures."""

import pytest

from adapters import known_dialects
from bench import soak, soak_clients
from bench.soak import main


@pytest.mark.timeout(900)
def test_a_short_run_goes_through_every_dialect(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everybody comes once, however long that takes; nobody is cut or given up because the machine is slow.

    What the server holds is not judged, for it has had no time to come to rest.
    """
    patient = soak.SETTINGS.replace("send_seconds: 3", "send_seconds: 600")
    assert patient != soak.SETTINGS
    quick = {"SAMPLE_SECONDS": 0.1, "WARM": 2, "IDLE": 5, "SLACK_BYTES": 1 << 40, "SETTINGS": patient}
    for name, value in quick.items():
        monkeypatch.setattr(soak, name, value)
    monkeypatch.setattr(soak_clients, "TURN_SECONDS", 600.0)
    code = main(["--minutes", "0"])
    told = capsys.readouterr().out
    assert code == 0, told
    figures = ("per 1,000 turns", "per idle session", "open files", "tasks")
    for word in (*(f"{name} " for name in known_dialects()), *figures):
        assert word in told


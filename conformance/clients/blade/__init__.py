"""Clients of Blade: their requirements, the scripted server that they talk to, and a small correct client."""

from pathlib import Path

from conformance.clients.suite import ClientSuite

HERE = Path(__file__).parent


def suite() -> ClientSuite:
    """Everything needed to examine a Blade client."""
    from conformance.clients.blade import judgements
    from conformance.clients.blade.scripted_server import BladeScriptedServer
    from conformance.clients.blade.situations import SITUATIONS
    from conformance.clients.judgement import collect_judgements
    from conformance.kit.requirement import read_catalogue

    catalogue = read_catalogue(HERE / "requirements.yaml")
    return ClientSuite(catalogue, SITUATIONS, collect_judgements(judgements), BladeScriptedServer)

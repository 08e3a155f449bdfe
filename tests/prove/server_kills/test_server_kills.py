"""The tests of servers that die, with servers in processes of their own that are killed (SIGKILL)."""

from tests.adapters.aap.client.test_remote_deaths import test_over_the_death_of_the_server as test_a_remote_of_aap
from tests.adapters.aap.server.routes.test_turns import test_over_the_death_of_the_server as test_a_client_of_aap
from tests.adapters.blade.server.test_resume import test_over_the_death_of_the_server as test_a_client_of_blade
from tests.adapters.cas.server.test_resume import test_over_the_death_of_the_server as test_a_client_of_cas
from tests.adapters.zenflux.client.test_turn_stream import (
    test_the_server_dies_and_comes_back as test_a_remote_of_zenflux,
)
from tests.adapters.zenflux.server.test_resume import test_over_the_death_of_the_server as test_a_client_of_zenflux

__all__ = [
    "test_a_client_of_aap", "test_a_client_of_blade", "test_a_client_of_cas", "test_a_client_of_zenflux",
    "test_a_remote_of_aap", "test_a_remote_of_zenflux",
]

"""What all tests share: asyncio as the event loop, and property tests that repeat."""

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("coatcheck.testing")

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],  # how fast the machine is proves nothing
)
settings.register_profile(
    "soak", settings.get_profile("suite"), derandomize=False, max_examples=5_000, print_blob=True
)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"

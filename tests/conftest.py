"""What all tests share: a quiet journal, and property tests without a stopwatch."""

import logging

import structlog
from hypothesis import HealthCheck, settings

settings.register_profile("dragoman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dragoman")
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))

"""How many examples a law is tried on."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def examples(count: int) -> settings:
    """`count` examples by default, 20 times as many with --long. Random tokenizers are large data
    and some are refused, which is no reason to fail."""
    scale = settings.default.max_examples // 100
    checks = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
    return settings(max_examples=count * scale, suppress_health_check=checks)

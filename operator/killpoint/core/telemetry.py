"""Quiet: what keeps frameworks from telling anybody of a run, and from waiting for a network that it has no need of."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

QUIET: Mapping[str, str] = MappingProxyType(
    {
        "ANONYMIZED_TELEMETRY": "false",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_DISABLE_TRACKING": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "LANGCHAIN_TRACING_V2": "false",
        "LANGSMITH_TRACING": "false",
        "OTEL_SDK_DISABLED": "true",
    }
)
"""Environment variables of every worker, wherever it runs: a setting that differed would be one more axis."""

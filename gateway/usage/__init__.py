"""Usage: which clients speak which dialect, which endpoints and documented features they use, and what a move costs."""

from .losses import ClientLosses, FeatureLoss, client_losses
from .notices import NoticedDifference, feature_of_fact, noticed_differences
from .observed_sessions import ObservedSessions, StreamWatchers
from .report import ClientUsage, client_usage, parse_age
from .request_counter import RequestCounter
from .usage_counts import ENDPOINT, FEATURE, OTHERS, UsageCounts, UsageMetrics
from .usage_store import KIND, UsageRow, UsageStore, Use, rows_of, rows_since

__all__ = [
    "ENDPOINT",
    "FEATURE",
    "KIND",
    "OTHERS",
    "ClientLosses",
    "ClientUsage",
    "FeatureLoss",
    "NoticedDifference",
    "ObservedSessions",
    "RequestCounter",
    "StreamWatchers",
    "UsageCounts",
    "UsageMetrics",
    "UsageRow",
    "UsageStore",
    "Use",
    "client_losses",
    "client_usage",
    "feature_of_fact",
    "noticed_differences",
    "parse_age",
    "rows_of",
    "rows_since",
]

"""What a Prometheus server scrapes: few series, no label that grows with the number of runs."""

from __future__ import annotations

from killpoint_payments.ledger import Ledger


def render_metrics(ledger: Ledger, *, ready: bool) -> str:
    """The text exposition format, version 0.0.4."""
    lines = [
        "# HELP killpoint_payments_requests_total Requests that could have an effect, by what became of them.",
        "# TYPE killpoint_payments_requests_total counter",
    ]
    lines += [
        f'killpoint_payments_requests_total{{kind="{kind}",outcome="{outcome}"}} {count}'
        for (kind, outcome), count in sorted(ledger.outcomes.items())
    ]
    lines += [
        "# HELP killpoint_payments_unlogged_total Failed requests that have no line in the request log.",
        "# TYPE killpoint_payments_unlogged_total counter",
        f"killpoint_payments_unlogged_total {ledger.unlogged}",
        "# HELP killpoint_payments_in_flight Requests whose transaction has not ended.",
        "# TYPE killpoint_payments_in_flight gauge",
        f"killpoint_payments_in_flight {ledger.in_flight.total()}",
        "# HELP killpoint_payments_ready Whether this boot takes requests.",
        "# TYPE killpoint_payments_ready gauge",
        f"killpoint_payments_ready {int(ready)}",
    ]
    return "\n".join(lines) + "\n"

"""The outside world of a crash experiment: a payments service that witnesses every effect in a ledger of its own.

It commits charges, refunds and notifications as a real provider would (idempotency keys, replays, conflicts), and logs
every request with the attempt that sent it, which the signed token says and nothing else. It knows nothing of
experiments, points or verdicts, and judges nothing: it only tells, on its admin port, what it saw.
"""

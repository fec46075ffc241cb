"""``python -m killpoint_payments``."""

from __future__ import annotations

from killpoint_payments.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

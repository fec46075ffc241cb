"""``python -m fake_worker``: an attempt that is started cold."""

from __future__ import annotations

from fake_worker import main  # type: ignore[import-not-found] # on the path of the workers only

main()

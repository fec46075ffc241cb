"""Workers with another main program: how a public report's application differs from the sample one is in there."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.contract.rig import Setup

FOLDER = Path(__file__).parent


def variant_of(setup: Setup, program: str, folder: Path) -> Setup:
    """The setup with ``<framework>_variant/<program>.py`` as its main; the lock and the package are the setup's own."""
    framework = setup.workload.name
    workload = folder / framework
    (workload / "src").mkdir(parents=True)
    shutil.copy(setup.workload / "requirements.lock", workload)
    shutil.copy(FOLDER / f"{framework}_variant" / f"{program}.py", workload / "src")
    for package in (setup.workload / "src").iterdir():
        (workload / "src" / package.name).symlink_to(package)
    return Setup(workload=workload, entry={**setup.entry, "name": f"{setup.name}-{program}", "module": program})

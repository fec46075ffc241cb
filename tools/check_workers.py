"""Check the framework workers' types where their frameworks are known: each in an environment made from its own lock.

    python -m tools.check_workers               all of them
    python -m tools.check_workers langgraph     only this one

`make check` sees the frameworks' names as Any, which is cheap and checks all that is around them. This costs an
environment for each framework (some are large), kept in .killpoint/types until its lock changes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tools.lock import LOCK, SHARED, projects

ENVIRONMENTS = Path(".killpoint/types")


def environment(workload: Path) -> Path:
    """The interpreter of an environment that holds what the workload's lock pins. Made anew when the lock changes."""
    folder = ENVIRONMENTS / workload.name
    python, stamp = folder / "bin" / "python", folder / LOCK
    lock = (workload / LOCK).read_bytes()
    if not stamp.is_file() or stamp.read_bytes() != lock:
        uv = [str(Path(sys.executable).with_name("uv")), "--quiet"]
        subprocess.run([*uv, "venv", "--clear", "--python", sys.executable, str(folder)], check=True)
        sync = [*uv, "pip", "sync", "--python", str(python), "--require-hashes", str(workload / LOCK)]
        subprocess.run(sync, check=True)
        stamp.write_bytes(lock)
    return python


def main(names: list[str]) -> int:
    """The exit code: 0 if mypy found nothing in any of the workers."""
    root = Path.cwd()
    codes: list[int] = []
    for project in projects(root):
        workload = project.folder.relative_to(root)
        if project.is_root or workload.name in SHARED or (names and workload.name not in names):
            continue
        print(f"== {workload}", flush=True)
        mypy = [sys.executable, "-m", "mypy", "--python-executable", str(environment(workload)), str(workload / "src")]
        codes.append(subprocess.run([*mypy, "--cache-dir", f".mypy_cache/{workload.name}"], check=False).returncode)
    return max(codes, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""All benchmarks, one after another: what they compare, they compare within one run."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("bench.payments", "bench.trials", "bench.passes", "bench.memory", "bench.cluster")


def main() -> None:
    for benchmark in BENCHMARKS:
        print(f"== {benchmark}", flush=True)
        subprocess.run([sys.executable, "-m", benchmark], check=True)


if __name__ == "__main__":
    main()

"""The one-node cluster by hand.

python -m tests.cluster.node up|down|status
"""

from __future__ import annotations

import sys

from tests.cluster.node import lifecycle
from tests.cluster.node.commands import ClusterError, say
from tests.cluster.node.layout import Layout


def main(arguments: list[str]) -> int:
    """The exit code: 0 done (status: it runs), 1 not, 2 wrong usage."""
    layout = Layout.from_environment()
    try:
        match arguments:
            case ["up"]:
                lifecycle.up(layout)
                sys.stdout.write(f"{layout.kubeconfig}\n")
            case ["down"]:
                lifecycle.down(layout)
            case ["status"]:
                runs = lifecycle.is_up(layout)
                sys.stdout.write(f"up: {layout.kubeconfig}\n" if runs else "down\n")
                return 0 if runs else 1
            case _:
                say(__doc__ or "")
                return 2
    except ClusterError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

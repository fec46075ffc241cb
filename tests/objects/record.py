"""``python -m tests.objects.record KUBECONFIG``: write down what an API server that has the definition says."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from tests.objects.corpus import ANSWERS, bad
from tests.objects.server import ApiServer

HEAD = (
    "# Made by `python -m tests.objects.record KUBECONFIG`: what an API server says of each bad object. Do not edit.\n"
)


def main(kubeconfig: Path, namespace: str = "default") -> None:
    server = ApiServer.at(kubeconfig, namespace)
    answers = {sample.name: server.says(sample) for sample in bad()}
    text = yaml.safe_dump(answers, sort_keys=False, width=1000, allow_unicode=True)
    ANSWERS.write_text(HEAD + text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

"""A Kubernetes cluster for tests, and the project's images in it.

python -m tests.cluster up            bring it up, unless it is; print its kubeconfig
python -m tests.cluster down          end it and remove all it left
python -m tests.cluster status        exit code 0 if it is up
python -m tests.cluster images [NAME] build these images, or all, and load them into the cluster
"""

from __future__ import annotations

import sys
import time

from tests.cluster import providers
from tests.cluster.images import builders, catalog
from tests.cluster.images.catalog import Image
from tests.cluster.node.commands import ClusterError, say
from tests.cluster.node.layout import Layout
from tests.cluster.providers import Provider


def main(arguments: list[str]) -> int:
    """The exit code: 0 done, 1 not, 2 wrong usage."""
    try:
        return _carry_out(arguments, Layout.from_environment())
    except ClusterError as error:
        say(str(error))
        return 1


def _carry_out(arguments: list[str], layout: Layout) -> int:
    match arguments:
        case ["up"]:
            provider = providers.choose(layout)
            provider.up()
            sys.stdout.write(f"{provider.kubeconfig}\n")
        case ["down"]:
            providers.choose(layout).down()
        case ["status"]:
            provider = providers.choose(layout)
            is_up = provider.is_up()
            sys.stdout.write(f"up: {provider.kubeconfig}\n" if is_up else "down\n")
            return 0 if is_up else 1
        case ["images", *names] if {*names} <= {image.name for image in catalog.IMAGES}:
            _images(catalog.named(names), layout, providers.choose(layout))
        case _:
            say(__doc__ or "")
            return 2
    return 0


def _images(images: tuple[Image, ...], layout: Layout, provider: Provider) -> None:
    builder = builders.builder(layout.cache)
    loads = provider.is_up()
    for image in images:
        began = time.monotonic()
        digest = image.digest(builder.base)
        told = "was built"
        if not builder.has(image, digest):
            builder.build(image, digest)
            told = f"built in {time.monotonic() - began:.0f} s"
        began = time.monotonic()
        if loads and provider.load(image, digest, builder):
            told += f", in the cluster after {time.monotonic() - began:.1f} s"
        say(f"{image.repository}:{catalog.TAG} ({digest}) {told}")
    if not loads:
        say("no cluster is up: none was loaded into it")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""An image of one file, as an archive that containerd imports: no builder is needed for that."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_image(archive: Path, *, name: str, program: Path) -> None:
    """Write ``archive`` with one image whose only file and entry point is ``program``, run by nobody."""
    layer = _tar({program.name: program.read_bytes()}, mode=0o755)
    layer_digest = hashlib.sha256(layer).hexdigest()
    machine = platform.machine()
    config = json.dumps(
        {
            "architecture": ARCHITECTURES.get(machine, machine),
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}"], "User": "65535:65535"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
    archive.write_bytes(_tar({config_name: config, "manifest.json": manifest, "layer.tar": layer}, mode=0o644))


def _tar(files: dict[str, bytes], *, mode: int) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = mode
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()

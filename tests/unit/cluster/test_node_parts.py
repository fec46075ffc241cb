"""The one-node cluster's parts that need neither root nor a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.images.catalog import IMAGES, Image, tracked
from tests.cluster.node import archive, configuration, lifecycle, preconditions, processes
from tests.cluster.node.commands import ClusterError, run
from tests.cluster.node.layout import INSIDE, Layout
from tests.cluster.node.processes import Process


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours that waits for its end."""
    if sys.platform != "linux":
        pytest.skip("start times are read from Linux' /proc")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_process_is_killed_by_id_and_start_time_together(sleeper: subprocess.Popen[bytes]) -> None:
    process = Process.of(sleeper.pid)
    assert process is not None
    process.kill(seconds_max=10)
    assert sleeper.wait(timeout=10) == -9


def test_a_process_that_has_got_the_id_of_another_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    process = Process.of(sleeper.pid)
    assert process is not None
    Process(pid=process.pid, started=process.started - 1).kill(seconds_max=10)
    assert sleeper.poll() is None


def test_a_node_is_remembered_by_its_owner_while_it_lives(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    place = tmp_path / "process.json"
    assert processes.remembered(place, owner=tmp_path) is None
    process = Process.of(sleeper.pid)
    assert process is not None
    processes.remember(process, place, owner=tmp_path)
    assert processes.remembered(place, owner=tmp_path) == process
    assert processes.remembered(place, owner=tmp_path / "another") is None
    sleeper.kill()
    sleeper.wait()
    assert processes.remembered(place, owner=tmp_path) is None


def test_down_refuses_a_folder_that_holds_other_things(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ClusterError, match="holds other things than a cluster"):
        lifecycle.down(Layout(state=tmp_path, cache=tmp_path))
    assert (tmp_path / "thesis.tex").exists()


def test_all_that_is_in_the_way_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(ClusterError) as raised:
        preconditions.require()
    text = str(raised.value)
    assert "needs root" in text
    assert "needs Go" in text
    assert "there is no apt-get here" in text


def test_elsewhere_than_on_linux_that_is_all_there_is_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert preconditions.unmet() == ["the one-node cluster runs on Linux only (this is darwin)"]


def test_the_nodes_configuration_names_no_folder_of_this_machine() -> None:
    """State is reached through INSIDE only, so that it may lie anywhere."""
    home = str(Path(__file__).parents[3])
    files = configuration.files()
    assert not [path for path, text in files.items() if home in text]
    assert str(INSIDE) in files["config/containerd.toml"]
    assert json.loads(files["config/kubelet.json"])["kind"] == "KubeletConfiguration"


def test_an_image_of_one_program_is_an_archive_that_names_it(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(b"\x7fELF")
    archive.write_image(tmp_path / "pause.tar", name="localhost/pause:1", program=program)
    with tarfile.open(tmp_path / "pause.tar") as tar:
        manifest = json.loads(member(tar, "manifest.json"))[0]
        config = json.loads(member(tar, manifest["Config"]))
    assert manifest["RepoTags"] == ["localhost/pause:1"]
    assert config["config"]["Entrypoint"] == ["/pause"]


def member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_an_image_is_told_by_its_sources_and_its_base(image: Image) -> None:
    assert image.dockerfile.is_file()
    assert all(tracked((source,)) for source in image.sources)
    assert image.digest("one") == image.digest("one")
    assert image.digest("one") != image.digest("another")


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
def test_an_image_copies_only_what_its_digest_covers(image: Image) -> None:
    """What a Dockerfile copies but its image does not name would not lead to a new build when it changes."""
    copied = [
        os.path.normpath(f"{image.context}/{path}")
        for line in image.dockerfile.read_text(encoding="utf-8").splitlines()
        if line.startswith("COPY ") and "--from=" not in line
        for path in line.split()[1:-1]
    ]
    covered = tracked(image.sources)
    assert not [path for path in copied if not tracked((path,)) <= covered]


def test_a_program_that_fails_is_told_with_its_last_words() -> None:
    with pytest.raises(ClusterError, match=r"ended with 3:\n  no such thing"):
        run(sys.executable, "-c", "import sys; print('no such thing'); sys.exit(3)")

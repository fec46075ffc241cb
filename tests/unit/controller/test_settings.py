"""What the operator is started with, and what it says where that cannot be."""

from __future__ import annotations

import pytest

from killpoint.controller.settings import NEEDED, Settings, SettingsError

WHOLE = {
    "KILLPOINT_DATABASE_URL": "postgresql://admin:secret@db/postgres",
    "KILLPOINT_SIGNING_KEY": "key-of-tokens",
    "KILLPOINT_PAYMENTS_URL": "http://payments:8080",
    "KILLPOINT_PAYMENTS_ADMIN_URL": "http://payments:8081",
    "KILLPOINT_PAYMENTS_ADMIN_TOKEN": "admin-token",
    "KILLPOINT_IMAGES": '{"langgraph": "killpoint-langgraph:1"}',
}


def read(own_namespace: str | None = None, **changes: str) -> Settings:
    return Settings.from_environment({**WHOLE, **changes}, own_namespace=own_namespace, identity="op-1")


def refused(**changes: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read(**changes)
    return str(caught.value)


def test_everything_that_is_missing_is_named_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({}, own_namespace=None, identity="op-1")
    lines = str(caught.value).splitlines()
    assert [line.split(" ")[0] for line in lines] == list(NEEDED)
    assert all("set it to" in line for line in lines)


def test_secrets_are_not_shown() -> None:
    shown = repr(read(KILLPOINT_CONTROL_DATABASE_URL="postgresql://c:hidden@db/c"))
    for secret in ("secret", "key-of-tokens", "admin-token", "hidden"):
        assert secret not in shown


@pytest.mark.parametrize(
    ("given", "own", "namespaces"),
    [
        ("", "ops", ("ops",)),
        ("", None, ("default",)),
        ("a, b,a", "ops", ("a", "b")),
        ("*", "ops", ()),
    ],
)
def test_namespaces_are_the_own_one_unless_others_are_named(
    given: str, own: str | None, namespaces: tuple[str, ...]
) -> None:
    assert read(own, KILLPOINT_NAMESPACES=given).namespaces == namespaces


def test_all_namespaces_and_some_of_them_do_not_go_together() -> None:
    assert "KILLPOINT_NAMESPACES" in refused(KILLPOINT_NAMESPACES="*,a")


@pytest.mark.parametrize("images", ["langgraph", "[]", "{}", '{"langgraph": 1}', '{"langgraph": " "}', "nul"])
def test_images_that_are_no_images_are_refused(images: str) -> None:
    assert refused(KILLPOINT_IMAGES=images).startswith("KILLPOINT_IMAGES: expected")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KILLPOINT_EXPERIMENTS_MAX", "0"),
        ("KILLPOINT_EXPERIMENTS_MAX", "many"),
        ("KILLPOINT_EXPERIMENTS_MAX", "٣"),
        ("KILLPOINT_PROBES_PORT", "70000"),
        ("KILLPOINT_EVIDENCE_PORT", "70000"),
        ("KILLPOINT_EVIDENCE_SERVICE", "operator"),
        ("KILLPOINT_EVIDENCE_SERVICE", "operator:evidence/proxy"),
        ("KILLPOINT_IMAGE_PULL_POLICY", "sometimes"),
        ("KILLPOINT_LOG_LEVEL", "LOUD"),
    ],
)
def test_what_cannot_be_is_named_with_what_can(name: str, value: str) -> None:
    said = refused(**{name: value})
    assert said.startswith(f"{name}: expected")
    assert value in said


def test_probes_can_be_switched_off() -> None:
    assert read(KILLPOINT_PROBES_PORT="0").probes_port is None
    assert read().probes_port == 8080


def test_evidence_is_served_where_a_port_is_given() -> None:
    assert read().evidence_port is None
    assert read(KILLPOINT_EVIDENCE_PORT="8081").evidence_port == 8081

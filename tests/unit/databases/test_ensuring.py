"""What `python -m killpoint.databases` takes, before it talks to any server."""

from __future__ import annotations

import pytest

from killpoint.databases.__main__ import Settings, UsageError, main

ENVIRON = {"KILLPOINT_DATABASE_URL": "postgresql://admin:word@db/postgres", "KILLPOINT_SERVICE_PASSWORD": "secret"}


def test_a_name_and_two_variables_are_all_it_needs_and_its_secrets_are_not_shown() -> None:
    settings = Settings.read(["killpoint_payments"], ENVIRON)
    assert settings == Settings(name="killpoint_payments", admin=ENVIRON["KILLPOINT_DATABASE_URL"], password="secret")
    assert "secret" not in repr(settings)
    assert "word" not in repr(settings)


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["Upper"], ["with-dash"], ["9th"], ["x" * 64]])
def test_a_name_that_no_role_should_have_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="usage: python -m"):
        Settings.read(arguments, ENVIRON)


@pytest.mark.parametrize("name", ENVIRON)
def test_what_is_missing_is_named_with_its_purpose(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is not set: set it to "):
        Settings.read(["killpoint_payments"], {**ENVIRON, name: ""})


def test_wrong_usage_ends_with_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err

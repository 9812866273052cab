"""The public interface is that of the recorded page: a break is a decision."""

from __future__ import annotations

from typing import Any

import pytest
from tools.interface import PAGE, lines_of, members, page, signature


def test_the_interface_is_the_recorded_one() -> None:
    recorded = PAGE.read_text(encoding="utf-8").splitlines()
    now = page().splitlines()
    gone = [line for line in recorded if line not in now]
    come = [line for line in now if line not in recorded]
    assert now == recorded, (
        f"The interface breaks in {gone or 'no line'}, and is new in {come or 'no line'}. docs/support.md "
        "says what a break needs. When it is decided, run `make interface`, and name it in CHANGELOG.md."
    )


class Example:
    kind: str

    def method(self, text: str, *, size: int = 3, _hidden: object = None) -> None: ...

    @classmethod
    def made(cls, name: str = "a") -> Example:
        return cls()

    @property
    def value(self) -> int:
        return 3

    def _private(self) -> None: ...


def test_members_are_public_names_with_their_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Example, "__module__", "bpe_tokenizer.example")
    assert list(members(Example)) == [
        "    .kind",
        "    .made(name='a')",
        "    .method(text, *, size=3)",
        "    .value",
    ]


def test_a_default_without_a_value_is_its_name() -> None:
    def takes(kind: Any = dict, call: Any = lines_of) -> None: ...

    assert signature(takes) == "(kind=dict, call=lines_of)"

"""What another connection need not tell again."""

from __future__ import annotations

from regatta.client.watch_memory import WatchMemory

ONE, TWO = ("default", "one"), ("default", "two")


def test_the_same_text_is_no_news() -> None:
    memory = WatchMemory()

    assert [memory.is_news(ONE, text) for text in ("a", "a", "b", "a")] == [True, False, True, True]
    assert memory.is_news(TWO, "a")


def test_what_was_told_and_is_not_seen_again_has_vanished() -> None:
    memory = WatchMemory()
    memory.is_news(ONE, "a")
    memory.is_news(TWO, "a")
    assert memory.vanished() == []

    memory.reconnected()
    memory.is_news(TWO, "a")

    assert memory.vanished() == [ONE]
    assert memory.vanished() == []
    assert memory.is_news(ONE, "a")


def test_only_what_was_told_can_be_gone() -> None:
    memory = WatchMemory()
    memory.is_news(ONE, "a")

    assert [memory.forget(ONE), memory.forget(ONE), memory.forget(TWO)] == [True, False, False]
    memory.reconnected()
    assert memory.vanished() == []


def test_being_in_step_is_told_once() -> None:
    memory = WatchMemory()

    assert [memory.first_sync(), memory.first_sync()] == [True, False]

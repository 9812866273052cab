"""Finds stop strings in a text that arrives in parts."""

from __future__ import annotations

from collections.abc import Iterable

from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten

__all__ = ["StopStrings", "checked_stop"]


def checked_stop(stop: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return stop strings as a tuple.

    Raises:
        ArgumentTypeError: It is neither a `str` nor strings.
        OptionError: A string is empty.

    >>> checked_stop("END"), checked_stop(["a", "b"])
    (('END',), ('a', 'b'))
    """
    if stop is None:
        return ()
    try:
        texts = (stop,) if isinstance(stop, str | bytes) else tuple(iter(stop))
    except TypeError:  # also an array of no dimension, which is an Iterable
        raise ArgumentTypeError(f"stop must be a str or a list of them, not {type(stop).__name__}") from None
    for text in texts:
        if not isinstance(text, str):
            raise ArgumentTypeError(f"stop must be a str or a list of them; it holds {shorten(text, 80)}")
        if not text:
            raise OptionError("a stop string is empty, which would end every reply: leave it out")
    return texts


class StopStrings:
    """Ends a text before the stop string that is complete first; of several at one end, before the longest.

    So the result does not depend on how the text is cut into parts.

    Args:
        stops: The strings, none of them empty.

    Attributes:
        found: The stop string that was found; None before.

    >>> stops = StopStrings(["END"])
    >>> stops.step("a"), stops.step(" E"), stops.step("Nough E"), stops.step("ND, etc."), stops.found
    ('a', ' ', 'ENough ', '', 'END')
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.found: str | None = None

    def step(self, text: str) -> str:
        """Return the text that no stop string can begin in: held text, and text of the next part."""
        text = self._held + text
        places = ((text.find(stop), stop) for stop in self._stops)
        found = [(start + len(stop), start, stop) for start, stop in places if start >= 0]
        if found:
            _, start, self.found = min(found)
            self._held = ""
            return text[:start]
        held = max((self._begun(text, stop) for stop in self._stops), default=0)
        cut = len(text) - held
        self._held = text[cut:]
        return text[:cut]

    def flush(self) -> str:
        """Return the held text, which begins no stop string: the text is at its end."""
        text, self._held = self._held, ""
        return text

    @staticmethod
    def _begun(text: str, stop: str) -> int:
        """Return the length of the longest beginning of a stop string at the end of a text."""
        lengths = range(min(len(stop) - 1, len(text)), 0, -1)
        return next((length for length in lengths if text.endswith(stop[:length])), 0)

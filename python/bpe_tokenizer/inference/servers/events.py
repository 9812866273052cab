"""Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["read_events"]


def read_events(lines: Iterable[bytes]) -> Iterator[str]:
    r"""Yield the data of each event; an event without a blank line at its end is ignored.

    Args:
        lines: The lines of a stream, with their line ends `\n` or `\r\n`.

    >>> list(read_events([b": hello\n", b"event: x\n", b"data: a\r\n", b"data:b\n", b"\n", b"data: cut"]))
    ['a\nb']
    """
    data: list[str] = []
    for line in lines:
        text = line.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")
        if not text:
            if data:
                yield "\n".join(data)
            data = []
        elif text == "data" or text.startswith("data:"):
            data.append(text[len("data:") :].removeprefix(" "))

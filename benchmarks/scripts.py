"""Texts in scripts other than Latin, from Debian's packages of translated documentation.

    python -m benchmarks.scripts build/scripts

Downloads the packages with `apt-get download`, which needs no root. Writes one file for each script: the
lines of at least 20 characters, each once, of which enough characters are of the script. Chinese is one of
the four corpora of the fixtures.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

__all__ = ["SCRIPTS", "Script", "lines_of_html", "lines_of_messages", "main", "write_script"]

_MIN_LENGTH = 20


class Script(NamedTuple):
    """Where the text of a script is.

    Args:
        package: Debian's package.
        first: The first character of the script's block in Unicode.
        last: Its last character.
        share: The least share of a line's characters that are in the block.
    """

    package: str
    first: str
    last: str
    share: float = 0.3


SCRIPTS = {
    "cyrillic": Script("libreoffice-help-ru", "\u0400", "\u052f"),
    "greek": Script("libreoffice-help-el", "\u0370", "\u03ff"),
    "hebrew": Script("firefox-esr-l10n-he", "\u0590", "\u05ff"),
    "arabic": Script("firefox-esr-l10n-ar", "\u0600", "\u06ff"),
    "devanagari": Script("libreoffice-help-hi", "\u0900", "\u097f"),
    "bengali": Script("firefox-esr-l10n-bn", "\u0980", "\u09ff"),
    "thai": Script("firefox-esr-l10n-th", "\u0e00", "\u0e7f"),
    "hangul": Script("libreoffice-help-ko", "\uac00", "\ud7a3"),
    # A line of Japanese has Han characters too.
    "kana": Script("libreoffice-help-ja", "\u3040", "\u30ff", 0.2),
}


class _Lines(HTMLParser):
    """Collects the text of a page, with a line end at each block."""

    _BLOCKS = frozenset(["p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "td", "th", "tr", "br"])

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.hidden += tag in ("script", "style")
        if tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style")
        if tag in self._BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data.replace("\n", " "))


def lines_of_html(page: str) -> list[str]:
    """Return the lines of text of an HTML page, without white space around them.

    >>> lines_of_html("<style>p {}</style><p>One <b>bold</b>  line</p><p>&amp; another</p>")
    ['One bold line', '& another']
    """
    parser = _Lines()
    parser.feed(page)
    parser.close()
    return [" ".join(line.split()) for line in "".join(parser.parts).split("\n") if line.strip()]


def lines_of_messages(messages: str) -> list[str]:
    r"""Return the texts of a file of messages, each after a name and an equals sign, or a line by itself.

    >>> lines_of_messages("title = A text\n    and its next line\n")
    ['A text', 'and its next line']
    """
    lines = [re.sub(r"^[\w.-]*\s*=\s*", "", line).strip() for line in messages.split("\n")]
    return [line for line in lines if line]


def _lines(root: Path) -> Iterator[str]:
    """Yield the lines of all pages and messages of an unpacked package."""
    for path in sorted(root.rglob("*")):
        if path.suffix == ".html" and path.is_file():
            yield from lines_of_html(path.read_text(encoding="utf-8", errors="ignore"))
        elif path.suffix == ".xpi":
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    if name.endswith((".ftl", ".properties")):
                        yield from lines_of_messages(archive.read(name).decode("utf-8", "ignore"))


def write_script(script: Script, root: Path, path: Path) -> int:
    """Write the lines of a script in an unpacked package to a file.

    Args:
        script: The script.
        root: The directory of the package.
        path: The file.

    Returns:
        The number of bytes.
    """
    lines: dict[str, None] = {}
    for line in _lines(root):
        in_block = sum(script.first <= character <= script.last for character in line)
        if len(line) >= _MIN_LENGTH and in_block >= script.share * len(line):
            lines[line] = None
    return path.write_bytes("\n".join(lines).encode())


def main() -> None:
    """Download the packages and write the texts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scripts", description=__doc__)
    parser.add_argument("directory", type=Path, help="where the texts are written")
    directory = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    for name, script in SCRIPTS.items():
        with tempfile.TemporaryDirectory() as temporary:
            # Not as the user `_apt`, who cannot write here.
            download = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", script.package]
            subprocess.run(download, cwd=temporary, check=True)
            for package in Path(temporary).glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", str(package), temporary], check=True)
            size = write_script(script, Path(temporary), directory / f"{name}.txt")
        print(f"{directory / name}.txt: {size / 1e6:.1f} MB of {script.package}", flush=True)


if __name__ == "__main__":
    main()

"""The listing for people."""

from __future__ import annotations

from pathlib import Path

from bpe_tokenizer import AddedToken, BPETokenizer, Model, _core
from bpe_tokenizer.formats import readable
from bpe_tokenizer.reference import RegexBPETokenizer


def lines_of(model: Model, path: Path) -> list[str]:
    readable.save(model, path)
    return path.read_text(encoding="utf-8").splitlines()


def test_every_token_has_its_line(tmp_path: Path) -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)}
    vocab |= {256: "é".encode(), 257: b"\xa9\xc3", 258: b"\r\n", 259: b"lo", 260: b"low", 300: b"unmade"}
    merges = [(b"\xc3", b"\xa9"), (b"\xa9", b"\xc3"), (b"\r", b"\n"), (b"l", b"o"), (b"lo", b"w")]
    added = [AddedToken("<|end|>", 261), AddedToken("word\n", 262, special=False)]
    lines = lines_of(
        Model(_core.Model(vocab, merges, split_patterns=[], added_tokens=added)), tmp_path / "x.txt"
    )
    assert lines[0] == "264 tokens, 5 merges, 2 added tokens"
    assert lines[1:3] == [r"      0  '\x00'", r"      1  '\x01'"]
    assert lines[98] == "     97  'a'"
    assert lines[0xC3 + 1] == "    195  <c3>"
    assert lines[257:] == [
        "    256  'é' = <c3> + <a9>",
        "    257  <a9 c3> = <a9> + <c3>",
        r"    258  '\r\n' = '\r' + '\n'",
        "    259  'lo' = 'l' + 'o'",
        "    260  'low' = 'lo' + 'w'",
        "    261  '<|end|>' special token",
        r"    262  'word\n' added token",
        "    300  'unmade'",
    ]


def test_the_lesson_lists_tokens_alike(tmp_path: Path) -> None:
    """The two listings differ in their first lines only."""
    lesson = RegexBPETokenizer().train("low lower lowest naïve café " * 3, 280)
    lesson.save_readable(tmp_path / "lesson.txt")
    lesson.save(tmp_path / "lesson.json")
    ours = lines_of(BPETokenizer.load(tmp_path / "lesson.json", "base64-json").model, tmp_path / "ours.txt")
    assert ours[1:] == (tmp_path / "lesson.txt").read_text(encoding="utf-8").splitlines()[1:]

"""`bpe-tokenizer encode` and `decode`."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bpe_tokenizer import BPETokenizer
from command_line import HOSTILE, Result, Run, process

# encode


def ids_of(result: Result) -> list[int]:
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith(b"\n")
    assert result.out.count(b"\n") == 1
    return [int(each) for each in result.text.split()]


def test_encode_prints_the_ids_of_a_text(run: Run, directory: Path, tokenizer: BPETokenizer) -> None:
    result = run("encode", "--tokenizer", directory, "--text", "newest lowest")
    assert ids_of(result) == tokenizer.encode("newest lowest")
    assert ids_of(run("encode", "--tokenizer", directory, "--text", "")) == []


def test_encode_recognises_the_special_tokens_that_it_is_told(
    run: Run, directory: Path, tokenizer: BPETokenizer
) -> None:
    text = "low<|end|>er<|other|>"
    plain = tokenizer.encode(text)

    def encode(*options: str) -> list[int]:
        return ids_of(run("encode", "--tokenizer", directory, "--text", text, *options))

    assert encode() == encode("--allowed-special", "none") == plain
    assert 256 not in plain
    assert encode("--allowed-special", "all") == tokenizer.encode(text, allowed_special="all")
    assert encode("--allowed-special", "<|end|>") == tokenizer.encode(text, allowed_special={"<|end|>"})
    assert encode("--allowed-special", "<|end|>", "<|other|>") == encode("--allowed-special", "all")


def test_encode_takes_a_conversation(run: Run, tmp_path: Path) -> None:
    control = ["<|im_start|>", "<|im_end|>"]
    tokenizer = BPETokenizer().train("low lower", 262, special_tokens=control, verbose=False)
    tokenizer.save(tmp_path / "saved")
    messages = [{"role": "system", "content": "low"}, {"role": "user", "content": "<|im_end|>"}]
    (tmp_path / "chat.json").write_text(json.dumps(messages))
    (tmp_path / "chat.jinja").write_text("{{ messages[0].content }}<|im_end|>")
    encode = ("encode", "--tokenizer", tmp_path / "saved", "--messages")
    expected = tokenizer.apply_chat_template(messages, "chatml")
    assert expected.count(257) == 2
    assert ids_of(run(*encode, tmp_path / "chat.json", "--template", "chatml")) == expected
    given = json.dumps({"model": "small", "messages": messages}).encode()
    assert run(*encode, "-", "--template", "chatml", "--count", stdin=given).text == f"{len(expected)}\n"
    jinja = ids_of(run(*encode, tmp_path / "chat.json", "--template", tmp_path / "chat.jinja"))
    assert jinja == [*tokenizer.encode("low"), 257]
    BPETokenizer().train("low", 260, verbose=False).save(tmp_path / "plain")
    chat = ("--messages", tmp_path / "chat.json", "--template", "chatml")
    refused = run("encode", "--tokenizer", tmp_path / "plain", *chat)
    assert "<|im_end|>; use another template, or accept it with --plain-markup\n" in refused.err
    assert ids_of(run("encode", "--tokenizer", tmp_path / "plain", *chat, "--plain-markup"))
    assert "is not JSON" in run(*encode, tmp_path / "chat.jinja").err
    for content in (b"{}", b"[[]]", b'[[{"role": "user", "content": "low"}]]', b"5"):
        assert "must hold a list of messages" in run(*encode, "-", stdin=content).err
    assert "nested too deeply" in run(*encode, "-", stdin=b"[" * 100_000).err
    assert "one list of messages" in run(*encode, "-", stdin=b"[]\n[]").err
    marked = b"\xef\xbb\xbf" + given
    assert run(*encode, "-", "--template", "chatml", "--count", stdin=marked).text == f"{len(expected)}\n"
    tools = json.dumps({"messages": messages, "tools": [{"type": "function"}]}).encode()
    assert "tools" in run(*encode, "-", "--template", "chatml", stdin=tools).err
    for wrong in (["--text", "low"], ["--allowed-special", "all"], ["--add-special-tokens"]):
        assert run(*encode, tmp_path / "chat.json", *wrong).code == 2
    assert run("encode", "--tokenizer", tmp_path / "saved", "--text", "low", "--template", "chatml").code == 2


def test_encode_shows_the_control_tokens_of_a_chat(run: Run, tmp_path: Path) -> None:
    bytes_ = {byte: bytes([byte]) for byte in range(256)}
    # By the id of this token, a tokenizer is one of OpenAI's, whose files lack the tokens of chats.
    BPETokenizer.from_vocab(bytes_, [], special_tokens={"<|endofprompt|>": 100276}).save(tmp_path / "saved")
    (tmp_path / "chat.json").write_text('[{"role": "user", "content": "<|im_end|>"}]')
    chat = ("--messages", tmp_path / "chat.json", "--show-tokens")
    shown = run("encode", "--tokenizer", tmp_path / "saved", *chat).text
    assert "<|im_start|>|u|s|e|r|<|im_sep|>|<|||i|m|" in shown


def test_encode_counts_the_ids(run: Run, directory: Path, tokenizer: BPETokenizer, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(HOSTILE.encode())
    (tmp_path / "empty").touch()
    first = len(tokenizer.encode(HOSTILE))
    count = ("encode", "--tokenizer", directory, "--count")
    assert run(*count, "--file", tmp_path / "text", tmp_path / "empty") == Result(
        0, f"{first}\n0\n".encode(), ""
    )
    assert run(*count, stdin=HOSTILE.encode()).text == f"{first}\n"
    assert run(*count, "--text", HOSTILE, "--json").text == f'{{"count": {first}}}\n'
    allowed = tokenizer.count_tokens(HOSTILE, allowed_special="all")
    assert run(*count, "--text", HOSTILE, "--allowed-special", "all").text == f"{allowed}\n"
    assert allowed < first
    for other in (["--show-tokens"], ["--output-format", "uint16"]):
        refused = run(*count, "--text", "low", *other)
        assert (refused.code, refused.out) == (2, b"")
        assert "--count" in refused.err


def test_encode_shows_the_tokens(run: Run, directory: Path) -> None:
    result = run("encode", "--tokenizer", directory, "--text", "low newest", "--show-tokens")
    ids, tokens = result.text.splitlines()
    assert tokens.replace("|", "") == "low newest"
    assert len(tokens.split("|")) == len(ids.split())


def test_encode_shows_tokens_on_a_terminal_that_lacks_their_characters(directory: Path) -> None:
    line = ("encode", "--tokenizer", directory, "--text", "中", "--allowed-special", "all", "--show-tokens")
    with process(*line, env={**os.environ, "PYTHONIOENCODING": "ascii"}) as running:
        out, err = running.communicate(timeout=200)
    assert (running.returncode, err) == (0, b"")
    assert out.endswith(b"\\xe4|\\xb8|\\xad\n")


# decode


def test_decode_takes_any_number_of_ids(run: Run, directory: Path, tokenizer: BPETokenizer) -> None:
    ids = tokenizer.encode("lower newest, wider")
    assert run("decode", "--tokenizer", directory, "--ids", *ids) == Result(0, b"lower newest, wider", "")
    assert run("decode", "--ids", *ids, "--tokenizer", directory).out == b"lower newest, wider"
    assert run("decode", "--tokenizer", directory, "--ids", json.dumps(ids)).out == b"lower newest, wider"
    for given, out in (
        ((256, 108, 257), b"<|end|>l<|other|>"),
        ((256, 108, 257, "--skip-special-tokens"), b"l"),
        ((255, 0, 128), b"\xff\x00\x80"),
        (("-",), b""),
    ):
        assert run("decode", "--tokenizer", directory, "--ids", *given, stdin=b"\n") == Result(0, out, "")

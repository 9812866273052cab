"""Broken Hugging Face files, and crashes while one is saved."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, FormatError, Model, PostProcessor
from bpe_tokenizer.formats import huggingface
from hf_files import contents, good, read, round_trip, write
from sampling import DAY, sample_size

# -- broken files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not valid JSON: (Expecting value|EOF while parsing a value at line 1 column 0)"),
        (b"{", "is not valid JSON"),
        (b"[]", r"(must be an object, not \[\]|invalid type: sequence, expected an object)"),
        (b"null", "(must be an object, not null|invalid type: null, expected an object)"),
        (b'{"version": "1.0", "version": "1.0"}', "duplicate key ['\"]version['\"] in an object"),
        (b'{"a": "\xff"}', "is not UTF-8: byte 0xff at offset 7"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8: byte 0xff at offset 0"),
        (b'\xef\xbb\xbf{"a": 1}', "is not valid JSON: (Unexpected UTF-8 BOM|begins with a byte order mark)"),
        (b'{"a": NaN}', "(holds the number NaN|is not valid JSON: expected value at line 1 column 7)"),
        (b'{"a": 1e999}', "holds the number 1e999, which is not finite"),
        pytest.param(
            b'{"a": ' + b"9" * 5000 + b"}",
            "is not valid JSON: Exceeds the limit",
            marks=pytest.mark.skipif(not hasattr(sys, "get_int_max_str_digits"), reason="has no limit"),
        ),
        (b'{"a": ["\\ud83d"]}', "holds a lone surrogate"),
        (b'{"\\udc00": 1}', "(holds a lone surrogate|lone leading surrogate in hex escape)"),
        (b'{"a":' * 100_000, "(is nested too deeply|is not valid JSON: EOF)"),
        (b"[" * 1_000_000, "(is nested too deeply|is not valid JSON: EOF)"),
        (b'{"a":' * 90_000 + b"1" + b"}" * 90_000, "is nested too deeply"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_broken_json(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(data)
    with pytest.raises(FormatError, match=message):
        huggingface.load(tmp_path)
    write(tmp_path, good())
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError, match=rf"/{name}: (.* )?{message}"):
            huggingface.load(tmp_path)
        (tmp_path / name).unlink()


def test_paired_surrogates_are_a_character(tmp_path: Path) -> None:
    document = good()
    document["added_tokens"][1]["content"] = "<🙂>"
    document["post_processor"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=True))
    assert BPETokenizer.from_pretrained(tmp_path).special_tokens["<🙂>"] == 259


def test_steps_nested_a_hundred_times(tmp_path: Path) -> None:
    document = good()
    members = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers"}
    members |= {"post_processor": "processors", "decoder": "decoders"}
    for name, member in [*members.items()] * 100:
        document[name] = {"type": "Sequence", member: [document[name]]}
    assert huggingface.load(write(tmp_path, document)).core.normalizers == [("NFC",)]


# -- crashes --------------------------------------------------------------------------------------------


@pytest.fixture
def two_models(tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer) -> list[Model]:
    """Models that differ in everything, and whose configs do not fit the other's tokens."""
    core = plain_tokenizer.model.core.with_added_tokens([AddedToken("<x>", 7777)])
    roles = {"eos": "<x>", "bos": ""}
    other = Model(core, roles, PostProcessor((), (7777, 97)), {"model_max_length": 2})
    return [dataclasses.replace(tokenizer.model, config={"model_max_length": 1}), other]


SAVE_FOREVER = """
import sys
from bpe_tokenizer.formats import huggingface
models = [huggingface.load(directory) for directory in sys.argv[1:3]]
huggingface.save(models[0], sys.argv[3])
print("ready", flush=True)
while True:
    for model in models:
        huggingface.save(model, sys.argv[3])
"""


@pytest.mark.sampled(1.0)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9")
def test_kill_9_while_saving_leaves_one_of_the_two(two_models: list[Model], tmp_path: Path) -> None:
    directories = [str(tmp_path / name) for name in ("a", "b", "target")]
    for model, directory in zip(two_models, directories, strict=False):
        huggingface.save(model, directory)
    expected = [contents(model) for model in two_models]
    generator = random.Random(os.environ[DAY])
    for _ in range(sample_size(20, 0.2)):
        command = [sys.executable, "-c", SAVE_FOREVER, *directories]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(generator.uniform(0, 0.06))
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert contents(huggingface.load(directories[2])) in expected


@pytest.mark.parametrize("moved", [0, 1, 2])
@pytest.mark.parametrize("first", [0, 1, None], ids=["over one", "over the other", "into nothing"])
@pytest.mark.usefixtures("ctrl_c")
def test_a_crash_after_each_move(
    two_models: list[Model], moved: int, first: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = two_models[1 - (first or 0)]
    if first is not None:
        huggingface.save(two_models[first], tmp_path)
    replace = Path.replace
    moves: list[Path] = []

    def crash(self: Path, target: Path) -> Path:
        if len(moves) == moved:
            os.kill(os.getpid(), signal.SIGINT)
        moves.append(target)
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", crash)
        if moved < 2:
            with pytest.raises(KeyboardInterrupt):
                huggingface.save(new, tmp_path)
        else:
            huggingface.save(new, tmp_path)
    if moved == 0 and first is None:
        with pytest.raises(FormatError, match=r"holds no tokenizer\.json"):
            huggingface.load(tmp_path)
        return
    loaded = huggingface.load(tmp_path)
    assert contents(loaded) == contents(new if moved or first is None else two_models[first])
    round_trip(two_models[0], tmp_path)  # what was left over is in nobody's way
    round_trip(two_models[1], tmp_path)


def test_what_a_crash_cut_off_is_passed_over(two_models: list[Model], tmp_path: Path) -> None:
    for model in two_models:
        huggingface.save(model, tmp_path)
        config = (tmp_path / "tokenizer_config.json").read_bytes()
        for index, data in enumerate((b"", config[:50], b"{}", b"\xff", b'{"bpe_tokenizer": 5}')):
            (tmp_path / f".tokenizer_config.json.{index}.tmp").write_bytes(data)
        assert contents(huggingface.load(tmp_path)) == contents(model)
        (tmp_path / "tokenizer_config.json").unlink()
        assert huggingface.load(tmp_path).core.vocab == model.core.vocab


def test_what_a_crash_left_is_found_after_what_it_cut_off(two_models: list[Model], tmp_path: Path) -> None:
    huggingface.save(two_models[0], tmp_path)
    config = tmp_path / "tokenizer_config.json"
    config.rename(tmp_path / ".tokenizer_config.json.1.tmp")
    (tmp_path / ".tokenizer_config.json.0.tmp").write_bytes(b"{")
    assert contents(huggingface.load(tmp_path)) == contents(two_models[0])
    left = read(tmp_path / ".tokenizer_config.json.1.tmp") | {"eos_token": 5}
    (tmp_path / ".tokenizer_config.json.1.tmp").write_text(json.dumps(left))
    with pytest.raises(FormatError, match=r"/tokenizer_config\.json: eos_token: must be a string, not 5"):
        huggingface.load(tmp_path)


def test_the_mode_of_a_file_is_kept(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    plain_tokenizer.save(tmp_path)
    plain = tmp_path / "plain"
    plain.touch()
    assert (tmp_path / "tokenizer.json").stat().st_mode == plain.stat().st_mode
    (tmp_path / "tokenizer.json").chmod(0o640)
    plain_tokenizer.save(tmp_path)
    assert (tmp_path / "tokenizer.json").stat().st_mode & 0o777 == 0o640

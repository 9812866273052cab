"""Ray Data counts and encodes what one machine does, also when its workers are killed.

`make test-ray` installs it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.distributed import CountSettings, count_with_ray, encode_with_ray, tokenize_with_ray
from bpe_tokenizer.errors import CorpusError, SpecialTokenError
from distributed.cases import documents, run_example
from distributed.count_cases import COUNT_CHECKS, Counting
from distributed.shard_cases import SHARD_CHECKS, Tokenizing, check_two_runs, own_id

# Before Ray is imported: it stays on this machine, and reports to nobody.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
ray: Any = pytest.importorskip("ray", reason="Ray is not installed; `make test-ray` does it")
pa: Any = pytest.importorskip("pyarrow")

# Ray leaves files and sockets to the garbage collector.
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    # The names of sockets have to be short.
    directory = TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=256 << 20,
        _node_ip_address="127.0.0.1",
        _temp_dir=directory.name,
        log_to_driver=False,
        logging_level=logging.ERROR,
        # Idle workers of one stage are not ended because another stage has its own.
        _system_config={"num_workers_soft_limit": 8},
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    yield
    ray.shutdown()
    directory.cleanup()


def dataset(texts: list[Any], blocks: int, kind: Any = None) -> Any:
    parts = [texts[start::blocks] for start in range(blocks)]
    return ray.data.from_arrow([pa.table({"text": pa.array(part, kind or pa.string())}) for part in parts])


@pytest.mark.parametrize("check", COUNT_CHECKS)
def test_counting(
    check: Callable[[Counting], None],
    tmp_path: Path,
    stdlib_texts: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check(Counting(count_with_ray, dataset, tmp_path, stdlib_texts, monkeypatch))


@pytest.mark.parametrize("check", [*SHARD_CHECKS, check_two_runs])
def test_shards(
    check: Callable[[Tokenizing], None],
    tmp_path: Path,
    tokenizer: BPETokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rows(texts: Sequence[Any]) -> Any:
        half = len(texts) // 2
        parts = texts[:half], texts[half:]
        return ray.data.from_arrow([pa.table({"text": each, "id": [*map(own_id, each)]}) for each in parts])

    monkeypatch.setattr(ray.data.DataContext.get_current().execution_options, "preserve_order", True)
    check(Tokenizing(tokenize_with_ray, tmp_path, tokenizer, rows, monkeypatch))


def test_a_row_that_is_no_text_is_named(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    for text, problem in ((None, "null"), (b"low \xff", "UTF-8")):
        rows = dataset([b"low", text, b""], 1, pa.binary())
        for output in (None, tmp_path / problem):
            with pytest.raises(CorpusError, match=rf"^[^\n]*row 1\b[^\n]*{problem}") as caught:
                count_with_ray(rows, CountSettings(), output=output)
            assert type(caught.value) is CorpusError
        with pytest.raises(CorpusError, match=rf"row 1\b.*{problem}"):
            encode_with_ray(rows, tokenizer).take_all()
    with pytest.raises(CorpusError, match="no column 'body'; the columns are 'text'"):
        count_with_ray(dataset(["low"], 1), CountSettings(), field="body")


def test_encoding(tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    texts = documents(stdlib_texts)[:100]
    encoded = encode_with_ray(dataset(texts, 3), tokenizer)
    assert encoded.schema().types[-1] == pa.list_(pa.uint32())
    rows = {row["text"]: [*row["input_ids"]] for row in encoded.take_all()}
    assert rows == {text: tokenizer.encode(text) for text in texts}
    special = encode_with_ray(dataset(["a<|eos|>"], 1), tokenizer, "text", "ids", True, {"<|eos|>"})
    assert [[*row["ids"]] for row in special.take_all()] == [tokenizer.encode("a<|eos|>", True, "all")]
    with pytest.raises(SpecialTokenError):
        encode_with_ray(dataset(["a"], 1), tokenizer, allowed_special={"<|none|>"}).take_all()


def test_the_example(tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as short:
        done = run_example("count_with_ray.py", tmp_path, RAY_TMPDIR=short)
    assert done.returncode == 0, done.stderr
    assert "the same merges as on one machine: True" in done.stdout
    assert "the same shards: True" in done.stdout

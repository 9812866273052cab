"""Count pieces with Ray, train on the counts, and tokenize: the extra `ray`.

On a cluster, call `ray.init()` without arguments and read the texts with `ray.data.read_parquet` or similar.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests, tokenize_corpus
from bpe_tokenizer.distributed import CountSettings, count_with_ray, encode_with_ray, tokenize_with_ray
from shared import library_files

# A cluster on this machine only, without network access and usage reports.
os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def main() -> None:
    """Count and encode on Ray, and compare with what this process does."""
    ray: Any = import_module("ray")
    pyarrow: Any = import_module("pyarrow")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=256 << 20,
        _node_ip_address="127.0.0.1",
        log_to_driver=False,
        logging_level=logging.ERROR,
        # Keeps idle workers of one stage while another stage starts its workers.
        _system_config={"num_workers_soft_limit": 8},
    )
    files = library_files()
    tokenizer = BPETokenizer("gpt2", normalization=None)
    settings = CountSettings.of(tokenizer)

    directory = Path(tempfile.mkdtemp(prefix="counted-"))
    counts = count_with_ray(files, settings, unit_bytes=1 << 20, output=directory / "counts")
    print(f"{counts.documents} files, {counts.pieces:,} pieces, {counts.distinct:,} of them distinct")

    texts = [path.read_bytes().decode() for path in files]
    dataset = ray.data.from_arrow(pyarrow.table({"text": texts})).repartition(4)
    print("rows and files give equal counts:", count_with_ray(dataset, settings) == counts)

    tokenizer.train_from_counts(counts, 1000, verbose=False)
    local = BPETokenizer("gpt2", normalization=None).train(files, 1000, verbose=False)
    print("the same merges as on one machine:", tokenizer.merges == local.merges)

    rows = encode_with_ray(dataset, tokenizer).take(3)
    print("the same ids:", all([*row["input_ids"]] == local.encode(row["text"]) for row in rows))

    made = tokenize_with_ray(files, directory / "ray", tokenizer, append_eos=False, verbose=False)
    tokenize_corpus(files, directory / "local", tokenizer, append_eos=False, part=0, of=1, verbose=False)
    again = merge_manifests(directory / "local")
    equal = [
        one.read_bytes() == other.read_bytes() for one, other in zip(made.files, again.files, strict=True)
    ]
    print("the same shards:", all(equal))
    shutil.rmtree(directory)
    ray.shutdown()


if __name__ == "__main__":
    main()

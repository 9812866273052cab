"""Steps for a pipeline of datatrove: `pip install datatrove orjson`.

`TokenWriter` takes the place of datatrove's `DocumentTokenizer` without shuffling: the files are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bpe_tokenizer import BPETokenizer
from shared import library_files, library_tokenizer

PipelineStep: Any = import_module("datatrove.pipeline.base").PipelineStep
TokenizedFile: Any = import_module("datatrove.pipeline.tokens.tokenizer").TokenizedFile


class TokenWriter(PipelineStep):  # type: ignore[misc]  # datatrove has no types
    """Writes the ids of the documents of each task to a file, and their number to `token_count`.

    Args:
        output_folder: Where the files go: `00000_tokens.ds` for the first task, with the ends of its
            documents in `00000_tokens.ds.index`.
        tokenizer: The tokenizer; it is pickled for the tasks.
        add_special_tokens: Whether to add the model's special tokens to each document.
        batch_size: Number of documents that are encoded together.
    """

    name = "Token writer"
    type = "TOKENIZER"

    def __init__(
        self,
        output_folder: str,
        tokenizer: BPETokenizer,
        add_special_tokens: bool = False,
        batch_size: int = 10_000,
    ) -> None:
        super().__init__()
        self.output_folder = output_folder
        self.tokenizer = tokenizer
        self.add_special_tokens = add_special_tokens
        self.batch_size = batch_size

    def run(self, data: Iterator[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Write the documents of one task, and pass them on.

        Args:
            data: The documents.
            rank: Number of the task.
            world_size: Number of tasks.

        Yields:
            The documents, with `token_count`.
        """
        dtype = np.dtype("<u4" if self.tokenizer.n_vocab > 2**16 else "<u2")
        file = TokenizedFile(self.output_folder, f"{rank:05d}_tokens.ds", token_size=dtype.itemsize)
        documents = iter(data)
        while batch := list(islice(documents, self.batch_size)):
            with self.track_time(unit="batch"):
                texts = [document.text for document in batch]
                # datatrove runs a task on each processor.
                ids, offsets = self.tokenizer.encode_ragged(texts, self.add_special_tokens, threads=1)
                file.write_bytes(ids.astype(dtype).tobytes(), offsets[1:].tolist())
            self.stat_update("tokens", value=len(ids))
            for document, count in zip(batch, np.diff(offsets).tolist(), strict=True):
                document.metadata["token_count"] = count
                yield document
        file.close()


def main() -> None:
    """Tokenize documents in two tasks, and read the files of ids."""
    executor: Any = import_module("datatrove.executor.local").LocalPipelineExecutor
    reader: Any = import_module("datatrove.pipeline.readers").JsonlReader
    json: Any = import_module("json")
    tokenizer = library_tokenizer()
    texts = [path.read_text(encoding="utf-8") for path in library_files()]
    with TemporaryDirectory() as directory:
        folder, halves = Path(directory, "texts"), (texts[::2], texts[1::2])
        folder.mkdir()
        for number, half in enumerate(halves):
            lines = (json.dumps({"text": text, "id": str(row)}) for row, text in enumerate(half))
            (folder / f"{number}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        pipeline = [reader(str(folder)), TokenWriter(f"{directory}/tokens", tokenizer)]
        stats = executor(pipeline, tasks=2, workers=1, logging_dir=f"{directory}/logs").run()
        for number, half in enumerate(halves):
            ids = np.fromfile(f"{directory}/tokens/{number:05d}_tokens.ds", np.uint16)
            ends = np.fromfile(f"{directory}/tokens/{number:05d}_tokens.ds.index", np.uint64)
            expected, offsets = tokenizer.encode_ragged(half)
            print("the same ids:", np.array_equal(ids, expected) and np.array_equal(ends, offsets[1:]))
        tokens = stats.stats[1].stats["tokens"].total
        print(f"{tokens:,} tokens")


if __name__ == "__main__":
    main()

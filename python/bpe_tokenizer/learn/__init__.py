"""The course: the checks of its exercises, and the pictures of its chapters.

The chapters are pages in `docs/learn/`. `python -m bpe_tokenizer.learn check 3` checks a file of answers;
`check(3, globals())` checks the answers in a notebook.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

__all__ = ["check", "load_ipython_extension"]

_FILES = "BPE_TOKENIZER_FIXTURES"


def check(chapter: int, names: Mapping[str, Any]) -> None:
    """Check the answers to a chapter's exercises, and print one line for each exercise.

    Output that the answers print is not shown. An exercise may run for 5 seconds.

    Args:
        chapter: The number of the chapter.
        names: The reader's names: `globals()` in a notebook.

    Raises:
        ValueError: The course has no such chapter.

    Example:
        >>> check(1, {})
        no answer yet  character_vocabulary
        no answer yet  encode_characters
        no answer yet  unknown_share
        no answer yet  compression_ratio
        no answer yet  table_numbers
    """
    from bpe_tokenizer.learn.chapters import load_chapter
    from bpe_tokenizer.learn.limits import run_limited
    from bpe_tokenizer.learn.runner import line

    for exercise in load_chapter(chapter).exercises:
        print(line(run_limited(exercise, names)))


def load_ipython_extension(shell: Any) -> None:
    """Define `%%with_files`: it runs a notebook's cell if the vocabularies of other models are there.

    IPython calls this for `%load_ext bpe_tokenizer.learn`.

    Args:
        shell: The shell of IPython.
    """

    def with_files(line: str, cell: str) -> None:
        if os.environ.get(_FILES):
            shell.run_cell(cell)
        else:
            print(f"This cell needs the files that the variable {_FILES} names, so it is skipped.")

    shell.register_magic_function(with_files, "cell")

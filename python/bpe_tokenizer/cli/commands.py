"""The list of commands.

To add a command, write its function in a module of the same name, and add its lines to `COMMANDS` and
`EXAMPLES`.
"""

__all__ = ["COMMANDS", "EXAMPLES", "FILE_COMMANDS", "OPERANDS", "REPEATABLE", "option_name"]

# Each command with its line in the help, which fits into 80 columns. A command's module is imported only when
# the command runs.
COMMANDS = {
    "train": "Learn a vocabulary from text files, and save it.",
    "count": "Count pieces, to train later (tokens: `encode --count`).",
    "encode": "Turn text into ids.",
    "decode": "Turn ids into bytes.",
    "chat": "Talk to a language model.",
    "info": "Show a tokenizer's sizes, special tokens and a round trip.",
    "convert": "Write a tokenizer in another format, and check the result.",
    "compare": "Compare tokenizers on a corpus.",
    "report": "Show a tokenizer's statistics on a corpus.",
    "tokenize-corpus": "Turn a corpus into the token files of training programs.",
    "merge-manifests": "Make the manifest of a corpus that was tokenized in parts.",
    "view": "Show the tokens of a text in a browser, file or terminal.",
    "demo": "Train on Python's own library, and encode unseen files.",
    "doctor": "Show versions, extras, caches, and what to install.",
}

# A line that works, for the help and for errors. Before a command is named, that of "".
EXAMPLES = {
    "": "bpe-tokenizer encode --tokenizer DIR --text 'Hello'",
    "train": "bpe-tokenizer train --corpus corpus.txt --output DIR",
    "count": "bpe-tokenizer count --corpus corpus.txt --output corpus.counts",
    "encode": "bpe-tokenizer encode --tokenizer DIR --text 'Hello'",
    "decode": "bpe-tokenizer decode --tokenizer DIR --ids 9906 11",
    "chat": "bpe-tokenizer chat --model model.gguf",
    "info": "bpe-tokenizer info --tokenizer DIR",
    "convert": "bpe-tokenizer convert DIR out.gguf --to gguf",
    "compare": "bpe-tokenizer compare DIR1 DIR2 --corpus corpus.txt",
    "report": "bpe-tokenizer report --tokenizer DIR --corpus corpus.txt",
    "tokenize-corpus": "bpe-tokenizer tokenize-corpus --tokenizer DIR --corpus corpus.txt --output SHARDS",
    "merge-manifests": "bpe-tokenizer merge-manifests SHARDS",
    "view": "bpe-tokenizer view --tokenizer DIR --text 'Hello'",
    "demo": "bpe-tokenizer demo",
    "doctor": "bpe-tokenizer doctor",
}

# Options that take several values, in all commands that have them.
REPEATABLE = frozenset(
    {
        "--allowed-special",
        "--corpus",
        "--counts",
        "--drop",
        "--ids",
        "--message",
        "--special",
        "--stop",
        "--weights",
    }
)
# Commands in which --file takes several values too.
FILE_COMMANDS = frozenset({"encode", "decode"})

# Options whose values people write without the option's name, in this order. A text may be that of a file.
OPERANDS = {
    "train": ("--corpus",),
    "count": ("--corpus",),
    "encode": ("--tokenizer", "--text"),
    "decode": ("--tokenizer", "--ids"),
    "chat": ("--model",),
    "info": ("--tokenizer",),
    "convert": ("--to",),
    "report": ("--tokenizer", "--corpus"),
    "tokenize-corpus": ("--tokenizer", "--corpus"),
    "view": ("--tokenizer", "--text"),
}

# Earlier names of options, and those of the package's arguments.
_ALIASES = {"pattern": "split-pattern", "special-tokens": "special"}


def option_name(name: str) -> str:
    """Return the name of an option or of a command, for a name that means the same.

    Args:
        name: The name without its dashes at the beginning.

    Example:
        >>> option_name("vocab_size"), option_name("pattern"), option_name("text")
        ('vocab-size', 'split-pattern', 'text')
    """
    name = name.replace("_", "-")
    return _ALIASES.get(name, name)

"""The list of commands.

To add a command, write its function in a module of the same name, and add its lines to `COMMANDS` and
`EXAMPLES`.
"""

__all__ = ["ALIASES", "COMMANDS", "EXAMPLES", "FILE_COMMANDS", "REPEATABLE"]

# Each command with its line in the help, which fits into 80 columns. A command's module is imported only when
# the command runs.
COMMANDS = {
    "train": "Learn a vocabulary from text files, and save it.",
    "count": "Count the distinct pieces of text files, to train later.",
    "encode": "Turn text into ids.",
    "decode": "Turn ids into bytes.",
    "chat": "Talk to a language model.",
    "info": "Show a tokenizer's sizes, special tokens and a round trip.",
    "convert": "Write a tokenizer in another format, and check the result.",
    "compare": "Compare tokenizers on a corpus.",
    "report": "Show a tokenizer's statistics on a corpus.",
    "tokenize-corpus": "Turn a corpus into the token files of training programs.",
    "view": "Show the tokens of a text in a browser, file or terminal.",
    "demo": "Train on Python's own library, and encode unseen files.",
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
    "view": "bpe-tokenizer view --tokenizer DIR --text 'Hello'",
    "demo": "bpe-tokenizer demo",
}

# Options that take several values, in all commands that have them.
REPEATABLE = frozenset(
    {"--allowed-special", "--corpus", "--counts", "--drop", "--ids", "--message", "--special", "--weights"}
)
# Commands in which --file takes several values too.
FILE_COMMANDS = frozenset({"encode", "decode"})

# Earlier names of options, which still work.
ALIASES = {"--pattern": "--split-pattern"}

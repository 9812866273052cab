"""The list of commands.

To add a command, write its function in a module of the same name, and add its line to `COMMANDS`.
"""

__all__ = ["COMMANDS", "REPEATABLE"]

# Each command with its line in the help. A command's module is imported only when the command runs.
COMMANDS = {
    "train": "Learn a vocabulary from text files, or from counts of their pieces, and save it.",
    "count": "Count the distinct pieces of text files, for `train --counts`.",
    "encode": "Turn text into ids.",
    "decode": "Turn ids into bytes.",
    "chat": "Talk to a language model.",
    "info": "Show a tokenizer's sizes, special tokens, first and last tokens, and a round trip.",
    "convert": "Write a tokenizer in another format, and check that it is still the same.",
    "compare": "Compare tokenizers on the same corpus, and show where they cut it differently.",
    "report": "Show a tokenizer's statistics on a corpus: compression, fertility, use of tokens.",
    "tokenize-corpus": "Turn a corpus into the token files that training programs read.",
    "view": "Show the tokens of a text on a local page, in an HTML file or in the terminal.",
    "demo": "Train on Python's own library, save, reload, and encode unseen files.",
}

# Options that take several values.
REPEATABLE = frozenset(
    {"--allowed-special", "--corpus", "--counts", "--drop", "--ids", "--message", "--special", "--weights"}
)

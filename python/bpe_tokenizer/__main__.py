"""`python -m bpe_tokenizer`: the same as the command `bpe-tokenizer`."""

from bpe_tokenizer.cli import main

if __name__ == "__main__":
    main()

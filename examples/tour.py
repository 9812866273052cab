"""A tour of everything that the package does, section by section.

It needs no network and no optional library, and takes a few seconds:

    python examples/tour.py

Each section is also a separate program in this directory.
"""

from __future__ import annotations

import section01_training
import section02_split_patterns
import section03_normalization
import section04_special_tokens
import section05_tokenizer
import section06_streams
import section07_files
import section08_chat_templates
import section09_inference
import section10_command_line
import section11_reference
import section12_vocabularies_over_time
from bpe_tokenizer import __version__

SECTIONS = (
    section01_training,
    section02_split_patterns,
    section03_normalization,
    section04_special_tokens,
    section05_tokenizer,
    section06_streams,
    section07_files,
    section08_chat_templates,
    section09_inference,
    section10_command_line,
    section11_reference,
    section12_vocabularies_over_time,
)


def main() -> None:
    """Run the sections in order."""
    print(f"bpe-tokenizer {__version__}")
    for section in SECTIONS:
        section.main()
    print("\nThe tour is complete; every check passed.")


if __name__ == "__main__":
    main()

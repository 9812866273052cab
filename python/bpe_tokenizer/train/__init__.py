"""Training: corpora to piece counts, piece counts to merges, and vocabularies that grow and shrink."""

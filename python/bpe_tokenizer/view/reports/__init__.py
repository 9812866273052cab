"""Statistics of tokenizers on a corpus, as tables, JSON and pages."""

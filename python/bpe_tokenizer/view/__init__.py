"""Tokens, merges and statistics shown to people."""

"""Tokens for people: as printable text, and as chips in HTML."""

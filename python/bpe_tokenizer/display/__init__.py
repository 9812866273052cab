"""Tokens for people: as printable text, and as chips and cards in HTML."""

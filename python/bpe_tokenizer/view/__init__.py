"""Showing tokens to people."""

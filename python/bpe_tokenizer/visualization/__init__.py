"""A text cut into its tokens, to look at: their bytes and places, and the merges that made them."""

from bpe_tokenizer.visualization.tokens import Piece, Token, Visualization, visualize

__all__ = ["Piece", "Token", "Visualization", "visualize"]

"""Small stories in the manner of TinyStories, for the capstone: the same ones on every machine."""

from __future__ import annotations

import random

__all__ = ["stories"]

_NAMES = ("Lily", "Tom", "Mia", "Ben", "Sara", "Max", "Anna", "Tim")
_ANIMALS = ("dog", "cat", "bird", "frog", "bear", "rabbit", "mouse", "duck")
_PLACES = ("park", "garden", "forest", "house", "river", "school", "beach", "farm")
_THINGS = ("ball", "kite", "cake", "hat", "boat", "book", "flower", "drum")
_MOODS = ("happy", "sad", "brave", "tired", "kind", "curious", "little", "sleepy")
_SENTENCES = (
    "Once upon a time, there was a {mood} {animal} named {name}.",
    "{name} liked to play in the {place} with a red {thing}.",
    'One day, {name} saw a {mood} {animal} near the {place}. "Hello!" said {name}. "Do you want my {thing}?"',
    "The {animal} was very {mood}, so {name} gave it the {thing}.",
    "They looked for the {thing} in the {place}, but they couldn't find it.",
    '"Don\'t be {mood}," said the {animal}. "We can share the {thing}!"',
    "They walked to the {place} and sat down. It was {count} steps away.",
    "In the end, {name} and the {animal} were {mood} and went home.",
)


def stories(number: int, seed: int = 0, end: str = "<|endoftext|>") -> str:
    """Return stories of four to seven sentences, with a text after each.

    Args:
        number: How many.
        seed: Other seeds give other stories.
        end: The text after each story.

    Example:
        >>> stories(1, seed=3)[:52]
        'Once upon a time, there was a sleepy duck named Max.'
        >>> stories(1000).count("<|endoftext|>")
        1000
    """
    chance = random.Random(seed)
    made = []
    for _ in range(number):
        middle = chance.sample(_SENTENCES[1:-1], chance.randint(2, 5))
        told = [
            sentence.format(
                name=chance.choice(_NAMES),
                animal=chance.choice(_ANIMALS),
                place=chance.choice(_PLACES),
                thing=chance.choice(_THINGS),
                mood=chance.choice(_MOODS),
                count=chance.randint(2, 2000),
            )
            for sentence in (_SENTENCES[0], *middle, _SENTENCES[-1])
        ]
        made.append(f"{' '.join(told)}\n{end}\n")
    return "".join(made)

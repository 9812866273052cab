"""Rows of a batch are those that a naive implementation makes, for any options and in every form."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, OptionError
from small_tokenizers import tiny

BOS, EOS, PAD = 256, 257, 258
Row = tuple[list[int], list[int], list[tuple[int, int]]]


def letters() -> BPETokenizer:
    tokenizer = tiny()
    tokenizer.add_special_tokens({"<s>": BOS, "</s>": EOS, "<pad>": PAD})
    return tokenizer


LETTERS = letters()


def windows(length: int, size: int, stride: int, side: str) -> list[tuple[int, int]]:
    """The parts of a text that rows of a size hold, each with `stride` ids of the one before."""
    found = []
    for start in count(0, size - stride):
        found.append((start, min(start + size, length)))
        if start + size >= length:
            break
    return found if side == "right" else [(length - end, length - start) for start, end in found]


def naive(texts: list[str], pairs: list[str] | None, add: bool, options: dict[str, Any]) -> list[Row]:
    """Cut, surround and fill the rows; a `ValueError` where that cannot be."""
    added, limit, side = (
        2 * add * (2 if pairs else 1),
        options.get("max_length", 0),
        options["truncation_side"],
    )
    rows: list[tuple[list[int], list[tuple[int, int]]]] = []
    for number, text in enumerate(texts):
        both = [text, pairs[number]] if pairs else [text]
        cuts = [[(0, len(part)) for part in both]]
        if options["truncation"]:
            if limit < added:
                raise ValueError("no room")
            sizes, room = [len(part) for part in both], limit - added
            while sum(sizes) > room:
                # Of equal parts, the text that was shorter at first is cut, or else the first one.
                longer = int(len(both) == 2 and (sizes[1], len(text)) > (sizes[0], len(both[1])))
                at = {"only_first": 0, "only_second": len(both) - 1}.get(options["truncation"], longer)
                if sizes[at] <= ("only" in str(options["truncation"])):  # one id of that text stays
                    raise ValueError("nothing left")
                sizes[at] -= 1
            cuts = [
                [
                    (0, n) if side == "right" else (len(p) - n, len(p))
                    for p, n in zip(both, sizes, strict=True)
                ]
            ]
            if options["return_overflowing_tokens"] and len(text) > room:
                cuts = [[part] for part in windows(len(text), room, options["stride"], side)]
        for parts in cuts:
            ids, spans = [], []
            for part, (start, end) in zip(both, parts, strict=True):
                ids += [BOS] * add + list(part[start:end].encode()) + [EOS] * add
                spans += [(0, 0)] * add + [(at, at + 1) for at in range(start, end)] + [(0, 0)] * add
            rows.append((ids, spans))
    longest = max((len(ids) for ids, _ in rows), default=0)
    size = 0
    if options["padding"]:
        size = limit if options["padding"] == "max_length" else min(longest, limit or longest)
        size = -(-size // (options["pad_to_multiple_of"] or 1)) * (options["pad_to_multiple_of"] or 1)
    made: list[Row] = []
    for ids, spans in rows:
        missing = max(0, size - len(ids))
        left = missing * (options["padding_side"] == "left")
        columns: Any = zip((ids, [1] * len(ids), spans), (PAD, 0, (0, 0)), strict=True)
        filled = [[pad] * left + column + [pad] * (missing - left) for column, pad in columns]
        made.append((filled[0], filled[1], filled[2]))
    return made


@st.composite
def given_options(draw: st.DrawFn) -> tuple[list[str], list[str] | None, bool, dict[str, Any]]:
    word = st.text("abcd", max_size=9)
    texts = draw(st.lists(word, min_size=1, max_size=4))
    pairs = draw(st.none() | st.lists(word, min_size=len(texts), max_size=len(texts)))
    add, truncation = draw(st.booleans()), draw(st.sampled_from([False, True, "longest_first"]))
    if truncation and pairs:
        truncation = draw(st.sampled_from([truncation, "only_first", "only_second"]))
    padding = draw(st.sampled_from([False, True, "longest", "max_length"]))
    options: dict[str, Any] = {
        "truncation": truncation,
        "padding": padding,
        "return_overflowing_tokens": bool(truncation) and not pairs and draw(st.booleans()),
        "stride": 0,
        **{name: draw(st.sampled_from(["left", "right"])) for name in ("padding_side", "truncation_side")},
        "pad_to_multiple_of": draw(st.sampled_from([None, None, 1, 3])),
    }
    if truncation or padding == "max_length" or (padding and draw(st.booleans())):
        options["max_length"] = draw(st.integers(1, 12) | st.sampled_from([2, 4]))
    if options["return_overflowing_tokens"]:
        options["max_length"] = max(options["max_length"], 2 * add + 1)
        options["stride"] = draw(st.integers(0, options["max_length"] - 2 * add - 1))
    return texts, pairs, add, options


SIDES = {"padding_side": "right", "truncation_side": "right", "pad_to_multiple_of": None}
NOTHING_LEFT = {
    "truncation": True,
    "padding": False,
    "return_overflowing_tokens": False,
    "stride": 0,
    **SIDES,
}


@pytest.mark.filterwarnings("ignore:a row has")
@settings(max_examples=200)
@given(given_options())
@example((["abcd", "a"], None, True, NOTHING_LEFT | {"max_length": 2}))
@example((["abcd"], ["a"], True, NOTHING_LEFT | {"max_length": 4}))
def test_rows_are_those_of_a_naive_implementation(
    case: tuple[list[str], list[str] | None, bool, dict[str, Any]],
) -> None:
    texts, pairs, add, options = case
    given: dict[str, Any] = {"text_pair": pairs, **options}
    forms: list[dict[str, Any]] = [
        {},
        {"return_offsets_mapping": True},
        {"return_dict": True},
        {"return_tensors": "np"},
    ]
    try:
        expected = naive(texts, pairs, add, options)
    except ValueError:
        for form in forms:
            with pytest.raises(OptionError, match=r"leaves no room|cannot bring a pair"):
                LETTERS.encode_batch(texts, add, **given, **form)
        return
    ids, masks, spans = ([row[column] for row in expected] for column in range(3))
    for form in forms[:2]:
        results = LETTERS.encode_batch(texts, add, **given, **form)
        assert len(results) == len(texts)
        rows = [row for result in results for row in (result, *(result.overflowing or ()))]
        assert [row.ids for row in rows] == ids
        assert [row.attention_mask for row in rows] == masks
        assert [row.offsets for row in rows] == (spans if form else [None] * len(rows))
    table = LETTERS.encode_batch(texts, add, **given, **forms[2])
    assert (table["input_ids"], table["attention_mask"]) == (ids, masks)
    if len({len(row) for row in ids}) > 1:
        with pytest.raises(OptionError, match="rows of one length"):
            LETTERS.encode_batch(texts, add, **given, **forms[3])
        return
    arrays = LETTERS.encode_batch(texts, add, **given, **forms[3])
    assert (arrays["input_ids"].tolist(), arrays["attention_mask"].tolist()) == (ids, masks)

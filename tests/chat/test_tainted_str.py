"""A `TaintedStr` is a string for Python, and each of its characters has a provenance."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer.chat.jinja.formatting import percent_format
from bpe_tokenizer.chat.jinja.rope import Rope
from bpe_tokenizer.chat.jinja.tainted_str import (
    TEMPLATE,
    Provenance,
    TaintedStr,
    as_tainted,
    concat,
    merge_provenances,
)
from bpe_tokenizer.chat.jinja.values import (
    TaintedInt,
    holds_content,
    provenances_of,
    taint,
    to_output,
)
from bpe_tokenizer.chat.segment import Origin
from linear import assert_linear
from tainting import (
    CYRILLIC,
    GREEK,
    LATIN,
    few,
    owned,
    owner,
    runs,
    separators,
    shorts,
    tainted_argument,
    texts,
)


def formatted(template: str, arguments: Any) -> TaintedStr:
    # Of texts that are all empty nothing is tracked.
    return as_tainted(percent_format(template, arguments))


numbers = st.integers(-3, 16)
steps = st.sampled_from([-2, -1, 2, 3])
counts = st.integers(-1, 5)
OPERATIONS: dict[str, tuple[Callable[..., Any], list[st.SearchStrategy[Any]]]] = {
    "+": (lambda text, other: text + other, [texts]),
    "+ reflected": (lambda text, other: other + text, [texts]),
    "*": (lambda text, times: text * times, [st.integers(-1, 3)]),
    "* reflected": (lambda text, times: times * text, [st.integers(-1, 3)]),
    "slice": (lambda text, start, stop: text[start:stop], [numbers, numbers]),
    "step": (lambda text, start, stop, step: text[start:stop:step], [numbers, numbers, steps]),
    "characters": (lambda text: list(text), []),
    "reversed": (lambda text: list(reversed(text)), []),
    "unpacked": (lambda text: [*text], []),
    "str": (lambda text: str(text), []),
    "strip": (lambda text, chars: text.strip(chars), [st.none() | shorts]),
    "lstrip": (lambda text, chars: text.lstrip(chars), [st.none() | shorts]),
    "rstrip": (lambda text, chars: text.rstrip(chars), [st.none() | shorts]),
    "split": (lambda text, sep, most: text.split(sep, most), [st.none() | separators, st.integers(-1, 3)]),
    "rsplit": (lambda text, sep, most: text.rsplit(sep, most), [st.none() | separators, st.integers(-1, 3)]),
    "splitlines": (lambda text, keep: text.splitlines(keep), [st.booleans()]),
    "partition": (lambda text, sep: text.partition(sep), [separators]),
    "rpartition": (lambda text, sep: text.rpartition(sep), [separators]),
    "replace": (lambda text, old, new, most: text.replace(old, new, most), [shorts, shorts, counts]),
    "join": (lambda text, parts: text.join(parts), [st.lists(texts, max_size=4)]),
    "removeprefix": (lambda text, prefix: text.removeprefix(prefix), [shorts]),
    "removesuffix": (lambda text, suffix: text.removesuffix(suffix), [shorts]),
    "upper": (lambda text: text.upper(), []),
    "lower": (lambda text: text.lower(), []),
    "title": (lambda text: text.title(), []),
    "capitalize": (lambda text: text.capitalize(), []),
    "casefold": (lambda text: text.casefold(), []),
    "swapcase": (lambda text: text.swapcase(), []),
    "expandtabs": (lambda text, size: text.expandtabs(size), [st.integers(0, 8)]),
    "expandtabs by eight": (lambda text: text.expandtabs(), []),
    "center": (lambda text, width: text.center(width), [numbers]),
    "ljust": (lambda text, width: text.ljust(width), [numbers]),
    "rjust": (lambda text, width, fill: text.rjust(width, fill), [numbers, st.sampled_from("- +")]),
    "zfill": (lambda text, width: text.zfill(width), [numbers]),
    "%": (lambda text, other: formatted("-%s|%10s|%%|%.3s", (text, other, text)), [texts]),
    "named %": (lambda text, other: formatted("%(a)s-%(b)-9s", {"a": text, "b": other}), [texts]),
    "translate": (lambda text: text.translate({ord("a"): "ß", ord("ж"): None, ord("α"): "Σσ"}), []),
}  # fmt: skip


def strings(value: Any) -> Iterable[str]:
    """All strings of a result."""
    return [value] if isinstance(value, str) else value


@few
@given(st.data())
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_str_and_keep_every_characters_owner(name: str, data: st.DataObject) -> None:
    operate, strategies = OPERATIONS[name]
    text = data.draw(texts)
    arguments = [data.draw(strategy) for strategy in strategies]
    expected = operate(text, *arguments)
    for given_arguments in (arguments, [tainted_argument(argument) for argument in arguments]):
        result = operate(owned(text), *given_arguments)
        assert result == expected
        assert list(map(type, strings(result))) == [TaintedStr] * len(list(strings(expected)))
        plain = given_arguments is arguments
        for piece in strings(result):
            assert_owned(piece, None if plain else name)
            if plain:
                # What a plain argument brings is the template's.
                assert set(provenances_of(piece)) <= set(provenances_of(owned(text)))


def assert_owned(text: str, name: str | None) -> None:
    """Check that every letter is its owner's; one that a plain argument brought may be the template's."""
    assert isinstance(text, TaintedStr)
    ends = [end for _, end, _ in text.runs()]
    assert ends == sorted(set(ends))
    assert not text or (ends[0] > 0 and ends[-1] == len(text))
    for start, end, known in text.runs():
        for character in str(text)[start:end]:
            expected = owner(character)
            if expected is not TEMPLATE:
                assert known == expected or (name is None and known == TEMPLATE), (
                    text,
                    character,
                    known,
                )


@few
@given(st.lists(st.tuples(shorts, st.sampled_from([LATIN, GREEK, TEMPLATE])), max_size=9))
def test_runs_are_joined_and_cut_exactly(pieces: list[tuple[str, Provenance]]) -> None:
    text = as_tainted(concat([TaintedStr(piece, known) for piece, known in pieces]))
    expected = [(character, known) for piece, known in pieces for character in piece]
    assert [
        (character, known) for start, end, known in text.runs() for character in str(text)[start:end]
    ] == expected
    assert [known for _, _, known in text.runs()] == [
        known
        for position, (_, known) in enumerate(expected)
        if position == 0 or expected[position - 1][1] != known
    ]
    for start in range(0, len(text) + 1, 3):
        for end in range(start, len(text) + 1, 2):
            cut = text[start:end]
            found = [(c, known) for first, last, known in cut.runs() for c in str(cut)[first:last]]
            assert found == expected[start:end]
    assert [(character, character.provenances[0]) for character in text] == expected


def test_equal_parts_keep_their_own_provenance() -> None:
    """Only the place of a part tells whose it is."""
    text = as_tainted(concat(["a a ", TaintedStr("a a", LATIN), " ", TaintedStr("a", GREEK)]))
    assert [(start, end) for start, end, _ in text.runs()] == [(0, 4), (4, 7), (7, 8), (8, 9)]
    expected = [TEMPLATE, TEMPLATE, LATIN, LATIN, GREEK]
    for pieces in (text.split(), text.split(" "), text.rsplit(), text.rsplit(" ")):
        assert [piece.provenances[0] for piece in pieces] == expected
    assert [known for _, _, known in text.replace("a", "", 4).runs()] == [TEMPLATE, LATIN, TEMPLATE, GREEK]
    assert [known for _, _, known in text.replace("a ", "", 2).runs()] == [LATIN, TEMPLATE, GREEK]
    assert [known for _, _, known in text.rpartition(" a")[0].runs()] == [TEMPLATE, LATIN]
    # The last piece is also the start of the separator.
    text = as_tainted(concat(["abab", TaintedStr("a", LATIN)]))
    for pieces in (text.split("ab"), text.rsplit("ab")):
        assert [list(piece.provenances) for piece in pieces] == [[], [], [LATIN]]


def test_only_strings_are_joined() -> None:
    """What `str` makes of other objects would lose the provenance of the content in them."""
    with pytest.raises(TypeError, match="expected str instance"):
        as_tainted(["a"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected str instance"):
        owned("a").join(["a", 1])  # type: ignore[list-item]


def test_a_rope_stands_for_its_text() -> None:
    rope, text = Rope(Rope("b", owned("a")), "c"), "bac"
    for other in ("bac", "bad", "b", "", Rope("ba", "c")):
        for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
            assert compare(rope, other) is compare(text, str(other))
    assert (repr(rope), rope[1:], list(rope), "ac" in rope) == (repr(text), "ac", list(text), True)


def test_marks_reach_all_of_a_rope_once() -> None:
    marked: list[str] = []

    def mark(text: str) -> str:
        marked.append(text)
        return text.upper()

    deep: str | Rope = "a"
    for _ in range(200):
        deep = Rope(deep, "b")
    assert isinstance(deep, Rope)
    once = deep.with_marks(mark)
    assert once == "A" + "B" * 200
    assert "".join(sorted(marked)) == "a" + "b" * 200
    # The parts far down are joined to one text.
    assert 40 < len(marked) < 70
    count = len(marked)
    grown = Rope(once, "c")
    assert grown.with_marks(mark) == "A" + "B" * 200 + "C"
    assert marked[count:] == ["c"]


def test_rewriting_many_runs_takes_linear_time() -> None:
    """If the text to its left changes a run, the prefixes locate it; with very many runs, none is located."""
    few, many = (as_tainted(concat([owned("as"), "ß"] * times)) for times in (20, 20_000))
    for rewrite in (str.upper, str.title):
        assert [known for _, _, known in few.map_runs(rewrite).runs()] == [LATIN, TEMPLATE] * 20
    assert len(many.upper().provenances) == 40_000
    (known,) = many.title().provenances
    assert known.lost_reason == "text of very many parts was rewritten"
    for method in (TaintedStr.upper, TaintedStr.title):
        assert_linear(lambda units, method=method: method(many[: 3 * units]), 5_000)  # type: ignore[misc]


def test_merged_tags_say_what_all_have_in_common() -> None:
    messages = [Provenance(Origin("messages", 2, "content")), Provenance(Origin("messages", 2, "name"))]
    assert merge_provenances(messages[:1]) == messages[0]
    assert merge_provenances([*messages, TEMPLATE]) == Provenance(Origin("messages", 2))
    assert merge_provenances([*messages, LATIN]) == Provenance(Origin("messages"))
    assert merge_provenances([CYRILLIC, LATIN], "why") == Provenance(Origin("messages"), lost_reason="why")
    assert merge_provenances(messages, "why") == Provenance(Origin("messages", 2), lost_reason="why")
    assert merge_provenances([Provenance(Origin("messages")), LATIN]) == Provenance(Origin("messages"))
    reasons = [LATIN._replace(lost_reason=reason) for reason in ("first", "second", "third")]
    assert merge_provenances([LATIN, *reasons]) == reasons[0]
    assert merge_provenances([]).origin is not None


def test_what_is_unknown_counts_as_content() -> None:
    assert holds_content(object())
    assert holds_content([{"a": iter("")}])
    assert holds_content(str)
    assert not holds_content([{"a": ("b", 1, None, True, 1.5, range(3))}, {}.keys(), as_tainted("x")])
    assert holds_content(to_output(object()))
    assert list(provenances_of([object()])) == [Provenance(Origin("messages"))]
    assert list(provenances_of(slice(1, TaintedInt(7, LATIN)))) == [LATIN]
    assert list(provenances_of([Rope("-", owned("aα"))])) == [LATIN, GREEK]


def test_content_is_found_in_values_that_hold_themselves() -> None:
    items: list[Any] = [owned("a")]
    items += [items, owned("α")]
    assert list(provenances_of(items)) == [LATIN, GREEK]
    fields: dict[str, Any] = {"-": owned("a")}
    fields |= {"+": fields, "|": owned("α")}
    assert list(provenances_of([fields])) == [LATIN, GREEK]


def test_what_content_was_made_into_is_content_at_every_depth() -> None:
    lost = LATIN._replace(lost_reason="why")
    assert taint(True, lost) is True
    assert taint(None, lost) is None
    ((key, item),) = taint({"a": "b"}, lost).items()
    assert [*runs(key), *runs(item)] == [("a", lost), ("b", lost)]
    assert [runs(part) for part in taint(iter(["a", "b"]), lost)] == [[("a", lost)], [("b", lost)]]
    # A number is not the text that could not be followed.
    assert taint(7, lost).provenance == taint(7.5, lost).provenance == LATIN
    # Content in it keeps what the origins have in common.
    other = GREEK._replace(lost_reason="other")
    assert runs(taint(TaintedStr("a", other), lost)) == [
        ("a", Provenance(Origin("messages"), lost_reason="why"))
    ]

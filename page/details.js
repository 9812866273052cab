/** What is known about one token: a card at the pointer, and a panel for the selected one. */

import { lastAtMost } from "./ascending.js";
import { countNoun, formatNumber, make } from "./dom.js";
import { FLAG_ADDED, FLAG_BEGINS_INSIDE, FLAG_ENDS_INSIDE, FLAG_SPECIAL } from "./chips.js";
import { iconButton } from "./icons.js";
import { characterName, hexBytes, isInvisible, printable } from "./printable.js";
import { inCharacters, splitCharacter } from "./token_rows.js";

/**
 * Collects what is known about a token of an encoded text.
 * @param {{encoded: object, bytes: import("./measure.js").TokenBytes, text: string}} view
 * @param {number} token
 */
export function tokenFacts({ encoded, bytes, text }, token) {
  const { ids, starts, ends, byteStarts, byteEnds, flags, pieces } = encoded;
  const first = lastAtMost(pieces, token);
  const end = first + 1 < pieces.length ? pieces[first + 1] : ids.length;
  const isAdded = (flags[token] & (FLAG_ADDED | FLAG_SPECIAL)) !== 0;
  return {
    token,
    id: ids[token],
    bytes: bytes.get(ids[token]),
    start: starts[token],
    end: ends[token],
    characters: [starts[token], ends[token]].map((place) => inCharacters(text, place)),
    byteStart: byteStarts[token],
    byteEnd: byteEnds[token],
    flags: flags[token],
    isAdded,
    isSpecial: (flags[token] & FLAG_SPECIAL) !== 0,
    // A piece may be the whole text, so it is joined only when it is shown.
    piece: isAdded ? null : () => joinBytes(Array.from(ids.subarray(pieces[first], end), (id) => bytes.get(id))),
    pieceTokens: end - pieces[first],
    shared: sharedCharacters(encoded, text, token),
  };
}

/** The characters of which a token has only some bytes, and how many tokens have the bytes of each. */
function sharedCharacters({ starts, ends, flags }, text, token) {
  const places = new Set();
  // The span of a token has the whole of such a character.
  if (flags[token] & FLAG_BEGINS_INSIDE) places.add(starts[token]);
  if (flags[token] & FLAG_ENDS_INSIDE) places.add(ends[token] - splitCharacter(text, starts[token], ends[token]).length);
  return Array.from(places, (place) => {
    let [first, last] = [token, token];
    while (flags[first] & FLAG_BEGINS_INSIDE && ends[first - 1] > place) first -= 1;
    while (flags[last] & FLAG_ENDS_INSIDE && starts[last + 1] <= place) last += 1;
    return { character: String.fromCodePoint(text.codePointAt(place)), tokens: last - first + 1 };
  });
}

function joinBytes(parts) {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

/** A span, counted from 0: "3", "3 to 7" with both ends, or "before 3" if it is empty. */
function spanText(start, end) {
  if (end <= start) return `before ${formatNumber(start)}`;
  return end - start === 1 ? formatNumber(start) : `${formatNumber(start)} to ${formatNumber(end - 1)}`;
}

const LONG_TOKEN = 64;
// The merges of a longer piece take seconds to list.
const MAX_TRACED = 20_000;

function shortBytes(bytes) {
  return bytes.length > LONG_TOKEN
    ? `${hexBytes(bytes.subarray(0, LONG_TOKEN))} … (${countNoun(bytes.length, "byte")})`
    : hexBytes(bytes) || "none";
}

function quoted(bytes, limit = 200) {
  const { text } = printable(bytes);
  return `“${text.length > limit ? `${text.slice(0, limit)}…` : text}”`;
}

/** What a part of a character belongs to: "“é”, made of 2 tokens". */
function sharedText(shared) {
  return shared.map(({ character, tokens }) => {
    const name = isInvisible(character) ? characterName(character) : `“${character}”`;
    return `${name}, made of ${formatNumber(tokens)} tokens`;
  }).join("; ");
}

/** The card next to the chip under the pointer or with the focus. */
export class HoverCard {
  element = make("div", { class: "hover-card", role: "tooltip", hidden: true });

  /**
   * @param {ReturnType<typeof tokenFacts>} facts
   * @param {HTMLElement} chip
   */
  show(facts, chip) {
    const row = (name, value) => [make("dt", {}, name), make("dd", { class: "number" }, value)];
    this.element.replaceChildren(
      make(
        "p",
        { class: "hover-card-id number" },
        String(facts.id),
        facts.isAdded ? make("span", { class: "tag" }, facts.isSpecial ? "special" : "added") : null,
      ),
      make(
        "dl",
        {},
        ...row("bytes", shortBytes(facts.bytes)),
        ...row("characters", spanText(...facts.characters)),
        ...(facts.shared.length > 0 ? row("part of", sharedText(facts.shared)) : []),
      ),
    );
    this.element.hidden = false;
    const box = chip.getBoundingClientRect();
    const { offsetWidth, offsetHeight } = this.element;
    const left = Math.max(8, Math.min(innerWidth - offsetWidth - 8, box.left + box.width / 2 - offsetWidth / 2));
    const isAbove = box.top > offsetHeight + 16;
    this.element.style.left = `${left}px`;
    this.element.style.top = `${isAbove ? box.top - offsetHeight - 8 : box.bottom + 8}px`;
  }

  hide() {
    this.element.hidden = true;
  }
}

/** The panel of the selected token, with the merges of its piece. */
export class DetailsPanel {
  #context;
  #merges;
  #body = make("div", { class: "details-body" });
  #shown = 0;

  /**
   * @param {object} context
   * @param {{element: HTMLElement, show(piece: object): void, clear(): void}} merges
   * @param {() => void} closed
   */
  constructor(context, merges, closed) {
    this.#context = context;
    this.#merges = merges;
    this.element = make(
      "section",
      { class: "details", hidden: true, "aria-label": "Selected token" },
      iconButton("close", "Close the details", closed, { class: "small details-close" }),
      this.#body,
      merges.element,
    );
  }

  /**
   * @param {ReturnType<typeof tokenFacts>} facts
   * @param {{key: number, name: string}} tokenizer
   * @returns {Promise<void>} resolves when the merges are drawn
   */
  async show(facts, tokenizer) {
    this.#shown += 1;
    const number = this.#shown;
    const piece = facts.piece?.();
    const isTraced = piece && piece.length <= MAX_TRACED;
    const rank = make("span", {}, "…");
    const row = (name, ...value) =>
      make("div", { class: "fact" }, make("dt", {}, name), make("dd", { class: "number" }, ...value));
    this.#body.replaceChildren(
      make(
        "div",
        { class: "details-token" },
        this.#context.chip({
          bytes: facts.bytes,
          flags: facts.flags & (FLAG_ADDED | FLAG_SPECIAL),
          colour: facts.token,
        }),
        make("span", { class: "details-id number" }, String(facts.id)),
        make("span", { class: "details-tokenizer quiet" }, tokenizer.name),
      ),
      make(
        "dl",
        { class: "facts" },
        row("Bytes", make("span", { class: "mono" }, shortBytes(facts.bytes))),
        facts.shared.length > 0 ? row("Part of", sharedText(facts.shared)) : null,
        row("At characters", spanText(...facts.characters)),
        row("At bytes", spanText(facts.byteStart, facts.byteEnd)),
        piece ? row("Rank", rank) : row("Kind", `${facts.isSpecial ? "special" : "added"} token: found in the text before merging`),
        // Otherwise the heading of the merges names the piece.
        piece && !isTraced
          ? row(
            "Piece",
            make("span", { class: "mono", dir: "auto" }, quoted(piece)),
            facts.pieceTokens === 1 ? ", one token" : `, ${formatNumber(facts.pieceTokens)} tokens`,
          )
          : null,
      ),
    );
    this.element.hidden = false;
    if (!isTraced) {
      if (piece) rank.textContent = `not looked up: the piece has ${countNoun(piece.length, "byte")}`;
      this.#merges.clear();
      return;
    }
    void this.#showRank(rank, piece, facts.id, tokenizer.key, number);
    await this.#merges.show({ key: tokenizer.key, bytes: piece, title: quoted(piece, 40) });
  }

  async #showRank(element, piece, id, key, number) {
    try {
      const { merges, isWhole } = await this.#context.client.trace(key, piece, { latest: "details" });
      if (number !== this.#shown) return;
      const made = merges.filter((merge) => merge.id === id);
      element.textContent = made.length > 0
        ? formatNumber(made[0].rank)
        : isWhole
        ? "none: the piece is a token, so it is not merged"
        : "none: no merge makes this token";
    } catch (error) {
      if (number === this.#shown) element.textContent = error.message;
    }
  }

  hide() {
    this.#shown += 1;
    this.element.hidden = true;
    this.#merges.clear();
  }
}

/** Breaks tokens into rows: greedy wrapping, in slices, so that a long text never blocks the page. */

import { lastAtMost } from "./ascending.js";
import { FLAG_BEGINS_INSIDE, FLAG_ENDS_INSIDE } from "./chips.js";

/**
 * The rows of an encoded text. A row never breaks inside a token, nor between the tokens of one character if they
 * fit into a row together. A token with a newline ends its row.
 */
export class Rows {
  /** The first token of each row; `count` of them are known. */
  #starts = new Uint32Array(256);
  count = 0;
  isDone = true;
  #next = 0;
  #encoded = { ids: new Uint32Array(), starts: new Uint32Array(), ends: new Uint32Array(), flags: new Uint8Array() };
  #text = "";
  #widths = null;
  #available = 0;
  #gap = 0;

  /** The first token of a row; the number of tokens for the row after the last. */
  start(row) {
    return row < this.count ? this.#starts[row] : this.#next;
  }

  /** The row of a token; the last known row for tokens that have none yet. */
  rowOf(token) {
    return lastAtMost(this.#starts, token, this.count);
  }

  /**
   * Takes a new text. Rows before the first token that differs are kept if the widths are the same.
   * @param {object} encoded
   * @param {string} text
   * @param {import("./measure.js").TokenWidths} widths
   * @param {number} available the width of a row
   * @param {number} gap between chips
   */
  reset(encoded, text, widths, available, gap) {
    const isSameLayout = widths === this.#widths && available === this.#available && gap === this.#gap;
    const kept = isSameLayout ? this.#rowsBefore(firstDifference(this.#encoded, encoded)) : 0;
    this.#next = kept > 0 ? this.start(kept) : 0;
    this.count = kept;
    this.#encoded = encoded;
    this.#text = text;
    this.#widths = widths;
    this.#available = available;
    this.#gap = gap;
    this.isDone = this.#next >= encoded.ids.length;
  }

  /** The number of rows that end well before a token: the row before it could take more of what follows. */
  #rowsBefore(token) {
    if (this.count === 0) return 0;
    return token >= this.#next ? Math.max(0, this.count - 1) : Math.max(0, this.rowOf(token) - 1);
  }

  /**
   * Makes more rows.
   * @param {number} [deadline] of performance.now()
   * @param {number} [rows] stops when this many rows are known
   */
  extend(deadline = Infinity, rows = Infinity) {
    const { ids, flags, starts, ends } = this.#encoded;
    const length = ids.length;
    const available = this.#available;
    let steps = 0;
    while (this.#next < length && this.count < rows) {
      if ((++steps & 63) === 0 && performance.now() > deadline) return;
      this.#add(this.#next);
      let at = this.#next;
      let used = -this.#gap;
      while (at < length) {
        let end = at + 1;
        let signed = this.#widths.signed(ids[at]);
        let width = signed < 0 ? -signed - 1 : signed;
        if (flags[at] & FLAG_ENDS_INSIDE && !(flags[at] & FLAG_BEGINS_INSIDE)) {
          width += this.#widths.character(splitCharacter(this.#text, starts[at], ends[at]));
          while (end < length && flags[end] & FLAG_BEGINS_INSIDE) {
            signed = this.#widths.signed(ids[end]);
            width += (signed < 0 ? -signed - 1 : signed) + this.#widths.metrics.join;
            end += 1;
          }
          // A character of more tokens than fit breaks where it must.
          if (width > available && used < 0) end = at + 1;
        }
        if (used >= 0 && used + this.#gap + width > available) break;
        used += this.#gap + Math.min(width, available);
        at = end;
        if (signed < 0) break;
      }
      this.#next = at;
    }
    this.isDone = this.#next >= length;
  }

  /** The height in rows: an estimate from what is known until all rows are. */
  estimate() {
    if (this.isDone || this.#next === 0) return this.count;
    return Math.ceil((this.count * this.#encoded.ids.length) / this.#next);
  }

  #add(start) {
    if (this.count === this.#starts.length) {
      const larger = new Uint32Array(2 * this.#starts.length);
      larger.set(this.#starts);
      this.#starts = larger;
    }
    this.#starts[this.count] = start;
    this.count += 1;
  }
}

/** The first token where two encoded texts differ. */
function firstDifference(one, other) {
  const length = Math.min(one.ids.length, other.ids.length);
  let at = 0;
  while (at < length && one.ids[at] === other.ids[at] && one.flags[at] === other.flags[at]) at += 1;
  return at;
}

/** A place in a text, counted in characters as in Python, not in UTF-16 code units. */
export function inCharacters(text, place) {
  let pairs = 0;
  for (let at = 0; at < place; at += 1) if (text.codePointAt(at) > 0xffff) pairs += 1;
  return place - pairs;
}

/**
 * The character that a token begins and does not end: the last one of its span.
 * @param {string} text
 * @param {number} start
 * @param {number} end
 */
export function splitCharacter(text, start, end) {
  const low = text.charCodeAt(end - 1);
  const isPair = low >= 0xdc00 && low < 0xe000 && end - 2 >= start;
  return text.slice(isPair ? end - 2 : end - 1, end);
}

const STRONG = /[\p{L}]/u;

/** A character that is written from right to left. */
export const RTL_CHARACTER = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
// A paragraph without letters in this many characters is read left to right.
const LOOKED_AT = 400;

/** The direction of bytes, by their first letter. */
export function directionOf(bytes) {
  return paragraphDirection(new TextDecoder().decode(bytes), 0);
}

/**
 * The direction of the paragraph that holds a position, by its first letter, as HTML's `dir=auto`.
 * @param {string} text
 * @param {number} position
 * @returns {"ltr" | "rtl"}
 */
export function paragraphDirection(text, position) {
  // A newline belongs to the paragraph that it ends.
  const newline = position > 0 ? text.lastIndexOf("\n", position - 1) : -1;
  const start = Math.max(newline + 1, position - 20_000);
  const letter = STRONG.exec(text.slice(start, start + LOOKED_AT));
  return letter !== null && RTL_CHARACTER.test(letter[0]) ? "rtl" : "ltr";
}

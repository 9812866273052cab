/** The tokens of a text as rows of chips, of which only the visible ones are in the document. */

import { lastAtMost } from "./ascending.js";
import { make } from "./dom.js";
import {
  chipClasses,
  chipParts,
  chipText,
  FLAG_ADDED,
  FLAG_BEGINS_INSIDE,
  FLAG_ENDS_INSIDE,
  FLAG_SPECIAL,
} from "./chips.js";
import { TokenBytes, TokenWidths } from "./measure.js";
import { paragraphDirection, Rows, splitCharacter } from "./token_rows.js";
import { characterName, isInvisible, spokenToken } from "./printable.js";

// Rows above and below the visible ones, for scrolling without a gap.
const EXTRA_ROWS = 4;
// Browsers limit the height of an element to 16 to 33 million pixels; taller lists scroll in proportion.
const MAX_HEIGHT = 8_000_000;
const SLICE_MILLISECONDS = 8;
const PRINTED_ROWS = 400;

const NOTHING = {
  ids: new Uint32Array(),
  starts: new Uint32Array(),
  ends: new Uint32Array(),
  byteStarts: new Uint32Array(),
  byteEnds: new Uint32Array(),
  flags: new Uint8Array(),
  pieces: new Uint32Array(),
};

export class TokenView {
  #metrics;
  #switches;
  #rows = new Rows();
  #drawn = new Map();
  #widths = null;
  #frame = 0;
  #slice = 0;
  #active = 0;
  #selected = -1;
  #marked = null;
  #linked = null;
  #available = 0;
  #isPrinting = false;
  #events;
  text = "";
  encoded = NOTHING;
  bytes = new TokenBytes();

  /**
   * @param {import("./measure.js").ChipMetrics} metrics
   * @param {{showsInvisible: boolean, showsIds: boolean}} switches
   * @param {{hovered(token: number): void, selected(token: number): void, left(): void}} events
   */
  constructor(metrics, switches, events) {
    this.#metrics = metrics;
    this.#switches = switches;
    this.#events = events;
    this.list = make("div", {
      class: "token-list",
      role: "listbox",
      "aria-label": "Tokens",
      "aria-orientation": "horizontal",
    });
    this.element = make("div", { class: "token-scroll", tabindex: "-1" }, this.list);
    this.element.addEventListener("scroll", () => this.#draw(), { passive: true });
    this.list.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("pointerover", (event) => this.#toToken(event, (token) => events.hovered(token)));
    this.list.addEventListener("pointerleave", () => events.left());
    this.list.addEventListener("focusin", (event) =>
      this.#toToken(event, (token) => {
        this.#activate(token);
        if (event.target.matches(":focus-visible")) events.hovered(token);
      }));
    this.list.addEventListener("focusout", () => events.left());
    this.list.addEventListener("click", (event) => this.#toToken(event, (token) => this.select(token)));
    new ResizeObserver(() => this.#resized()).observe(this.element);
    addEventListener("beforeprint", () => this.drawAll());
    addEventListener("afterprint", () => this.drawVisible());
  }

  /** The name that screen readers say. */
  setName(name) {
    this.list.setAttribute("aria-label", name);
  }

  /**
   * Shows an encoded text. `bytes` must know its tokens.
   * @param {string} text
   * @param {object} encoded
   * @param {TokenBytes} bytes
   */
  show(text, encoded, bytes) {
    const isSame = bytes === this.bytes;
    this.text = text;
    this.encoded = encoded;
    this.bytes = bytes;
    if (!isSame) this.#widths = null;
    const last = Math.max(0, encoded.ids.length - 1);
    this.#active = Math.min(this.#active, last);
    if (this.#selected > last) this.#selected = -1;
    this.#marked = null;
    this.#layOut();
  }

  setSwitches(switches) {
    this.#switches = switches;
    this.#widths = null;
    this.#layOut();
  }

  /** Marks tokens, for example those whose ends another tokenizer does not have; null marks none. */
  setMarked(marked) {
    this.#marked = marked;
    this.#restyle();
  }

  /** Highlights the tokens that overlap a range of UTF-16 code units; null highlights none. */
  setLinked(range) {
    if (this.#linked === range) return;
    this.#linked = range;
    this.#restyle();
  }

  /** The token that covers a position of the text, in UTF-16 code units. */
  tokenAt(position) {
    return lastAtMost(this.encoded.starts, position);
  }

  /** Selects a token, or none with -1, and tells so. */
  select(token) {
    this.#selected = token;
    if (token >= 0) this.#activate(token);
    this.#restyle();
    this.#events.selected(token);
  }

  get selected() {
    return this.#selected;
  }

  /** Selects a token without telling so. */
  markSelected(token) {
    this.#selected = token;
    this.#restyle();
  }

  /** Scrolls as far as a token needs to be seen. */
  reveal(token) {
    this.#knowRowsTo(token);
    const height = this.#rowHeight();
    const top = this.#rows.rowOf(token) * height;
    const view = this.element.clientHeight - this.#padding();
    const seen = this.#offset();
    if (top < seen) this.#scrollTo(top);
    else if (top + height > seen + view) this.#scrollTo(top + height - view);
    this.#draw();
  }

  focusToken(token) {
    this.reveal(token);
    this.#activate(token);
    this.chipOf(token)?.focus({ preventScroll: true });
  }

  /** The chip of a token if it is drawn. */
  chipOf(token) {
    const drawn = this.#drawn.get(this.#rows.rowOf(token));
    return drawn?.chips[token - drawn.start];
  }

  /** Makes the rows up to a token: wrapping only knows how far it got. */
  #knowRowsTo(token) {
    while (!this.#rows.isDone && this.#rows.start(this.#rows.count) <= token) {
      this.#rows.extend(Infinity, this.#rows.count + 256);
    }
    this.#setHeight();
  }

  #rowHeight() {
    return this.#switches.showsIds ? this.#metrics.heights.ids : this.#metrics.heights.plain;
  }

  #padding() {
    const style = getComputedStyle(this.element);
    return parseFloat(style.paddingBlockStart) + parseFloat(style.paddingBlockEnd);
  }

  #resized() {
    if (this.#isPrinting) return;
    const style = getComputedStyle(this.element);
    const available = this.element.clientWidth - parseFloat(style.paddingInlineStart) -
      parseFloat(style.paddingInlineEnd);
    if (available <= 0) return;
    if (Math.abs(available - this.#available) >= 1) {
      // The token at the top stays at the top.
      const top = this.#rows.start(Math.floor(this.#offset() / this.#rowHeight()));
      this.#available = available;
      this.#layOut();
      if (this.element.scrollTop > 0) {
        this.#knowRowsTo(top);
        this.#scrollTo(this.#rows.rowOf(top) * this.#rowHeight());
      }
    }
    this.#draw();
  }

  #layOut() {
    if (this.#available <= 0) return;
    this.#widths ??= new TokenWidths(this.#metrics, this.bytes, this.#switches);
    this.#rows.reset(this.encoded, this.text, this.#widths, this.#available, this.#metrics.gap);
    const needed = Math.ceil((this.#offset() + this.element.clientHeight) / this.#rowHeight()) + EXTRA_ROWS;
    this.#rows.extend(Infinity, needed);
    this.#setHeight();
    this.#redraw();
    this.#continue();
  }

  /** Makes the remaining rows while the page is idle. */
  #continue() {
    cancelAnimationFrame(this.#slice);
    if (this.#rows.isDone) return;
    this.#slice = requestAnimationFrame(() => {
      this.#rows.extend(performance.now() + SLICE_MILLISECONDS);
      this.#setHeight();
      this.#draw();
      this.#continue();
    });
  }

  #fullHeight() {
    return this.#rows.estimate() * this.#rowHeight();
  }

  #setHeight() {
    this.list.style.blockSize = `${Math.min(MAX_HEIGHT, this.#fullHeight())}px`;
  }

  /** How many pixels of rows are above the view: more than are scrolled if the list is taller than elements can be. */
  #offset() {
    return this.element.scrollTop * this.#scale();
  }

  #scale() {
    const full = this.#fullHeight();
    if (full <= MAX_HEIGHT) return 1;
    const view = this.element.clientHeight;
    return (full - view) / Math.max(1, MAX_HEIGHT - view);
  }

  #scrollTo(offset) {
    this.element.scrollTop = offset / this.#scale();
  }

  #redraw() {
    const hasFocus = this.list.contains(document.activeElement);
    for (const { element } of this.#drawn.values()) element.remove();
    this.#drawn.clear();
    this.#draw();
    if (hasFocus) this.chipOf(this.#active)?.focus({ preventScroll: true });
  }

  /** Draws the rows in view, and removes the others, except the one with the keyboard focus. */
  #draw() {
    if (this.#isPrinting) return;
    const height = this.#rowHeight();
    const offset = this.#offset();
    const shift = this.element.scrollTop - offset;
    const first = Math.max(0, Math.floor(offset / height) - EXTRA_ROWS);
    const last = Math.min(this.#rows.count, Math.ceil((offset + this.element.clientHeight) / height) + EXTRA_ROWS);
    const focused = this.list.contains(document.activeElement) ? this.#rows.rowOf(this.#active) : -1;
    this.#drawRows(first, last, focused, shift);
    this.#ensureTabStop(first, last);
  }

  #drawRows(first, last, focused, shift) {
    const height = this.#rowHeight();
    for (const [row, { element }] of this.#drawn) {
      if ((row < first || row >= last) && row !== focused) {
        element.remove();
        this.#drawn.delete(row);
      }
    }
    for (let row = first; row < last; row++) {
      let drawn = this.#drawn.get(row);
      if (drawn === undefined) {
        drawn = this.#makeRow(row);
        this.#drawn.set(row, drawn);
        this.#insert(drawn.element, row);
      }
      drawn.element.style.insetBlockStart = `${row * height + shift}px`;
    }
  }

  /** Rows stay in the order of the text, which is the order of screen readers. */
  #insert(element, row) {
    element.dataset.row = String(row);
    let next = this.list.lastElementChild;
    while (next !== null && Number(next.dataset.row) > row) next = next.previousElementSibling;
    if (next === null) this.list.prepend(element);
    else next.after(element);
  }

  #makeRow(row) {
    const start = this.#rows.start(row);
    const end = this.#rows.start(row + 1);
    const direction = paragraphDirection(this.text, this.encoded.starts[start] ?? 0);
    const element = make("div", { class: "token-row", role: "presentation", dir: direction });
    const chips = [];
    for (let token = start; token < end; token++) chips.push(this.#makeChip(token));
    element.append(...chips);
    return { element, chips, start };
  }

  #makeChip(token) {
    const { ids, flags, starts, ends } = this.encoded;
    const id = ids[token];
    const bytes = this.bytes.get(id);
    const text = chipText(chipParts(bytes, this.#switches.showsInvisible));
    if (flags[token] & FLAG_ENDS_INSIDE && !(flags[token] & FLAG_BEGINS_INSIDE)) {
      // The character is next to its bytes, which end the token.
      const character = splitCharacter(this.text, starts[token], ends[token]);
      const shown = isInvisible(character) ? make("span", { class: "chip-name" }, characterName(character)) : character;
      text.insertBefore(make("span", { class: "chip-character" }, shown), text.lastChild);
    }
    const chip = make("span", {
      class: this.#classes(token),
      role: "option",
      tabindex: token === this.#active ? "0" : "-1",
      "aria-selected": String(token === this.#selected),
      "aria-setsize": String(ids.length),
      "aria-posinset": String(token + 1),
      "aria-label": this.#label(token, bytes),
      "data-token": String(token),
    }, text);
    if (this.#switches.showsIds) chip.append(make("span", { class: "chip-id" }, String(id)));
    return chip;
  }

  #label(token, bytes) {
    const { ids, flags } = this.encoded;
    const kind = flags[token] & FLAG_SPECIAL ? ", special token" : flags[token] & FLAG_ADDED ? ", added token" : "";
    const differs = this.#marked?.[token] ? ", differs" : "";
    return `${spokenToken(bytes)}, id ${ids[token]}${kind}${differs}`;
  }

  #classes(token) {
    const { starts, ends, flags } = this.encoded;
    let classes = chipClasses(token, flags[token]);
    if (token === this.#selected) classes += " is-selected";
    if (this.#marked?.[token]) classes += " is-marked";
    const linked = this.#linked;
    if (linked !== null && starts[token] < linked.end && ends[token] > linked.start) classes += " is-linked";
    return classes;
  }

  #restyle() {
    for (const { chips, start } of this.#drawn.values()) {
      chips.forEach((chip, index) => {
        const token = start + index;
        chip.className = this.#classes(token);
        chip.setAttribute("aria-selected", String(token === this.#selected));
      });
    }
  }

  /** One chip is in the order of Tab: the active one, or the first in view while that is not drawn. */
  #ensureTabStop(first, last) {
    if (this.encoded.ids.length === 0) return;
    if (this.chipOf(this.#active)) return;
    const row = this.#drawn.get(Math.min(first + EXTRA_ROWS, Math.max(first, last - 1))) ||
      this.#drawn.values().next().value;
    row?.chips[0]?.setAttribute("tabindex", "0");
  }

  #activate(token) {
    for (const chip of this.list.querySelectorAll('[tabindex="0"]')) chip.tabIndex = -1;
    this.#active = token;
    const chip = this.chipOf(token);
    if (chip) chip.tabIndex = 0;
  }

  #toToken(event, action) {
    const chip = event.target.closest?.("[data-token]");
    if (chip) action(Number(chip.dataset.token));
  }

  #key(event) {
    const count = this.encoded.ids.length;
    if (count === 0 || event.altKey || event.metaKey) return;
    const isRtl = event.target.closest(".token-row")?.dir === "rtl";
    const rowsInView = Math.max(1, Math.floor(this.element.clientHeight / this.#rowHeight()) - 1);
    const row = this.#rows.rowOf(this.#active);
    const moves = {
      ArrowRight: () => this.#active + (isRtl ? -1 : 1),
      ArrowLeft: () => this.#active + (isRtl ? 1 : -1),
      ArrowDown: () => this.#inRow(row + 1),
      ArrowUp: () => this.#inRow(row - 1),
      PageDown: () => this.#inRow(row + rowsInView),
      PageUp: () => this.#inRow(row - rowsInView),
      Home: () => (event.ctrlKey ? 0 : this.#rows.start(row)),
      End: () => (event.ctrlKey ? count - 1 : this.#rows.start(row + 1) - 1),
    };
    if (event.key in moves) this.focusToken(Math.max(0, Math.min(count - 1, moves[event.key]())));
    else if (event.key === "Enter" || event.key === " ") this.select(this.#active);
    else if (event.key === "Escape" && this.#selected >= 0) this.select(-1);
    else return;
    event.preventDefault();
  }

  /** The token of a row that is nearest to the active one, from left to right. */
  #inRow(row) {
    const target = Math.max(0, Math.min(this.#rows.isDone ? this.#rows.count - 1 : row, row));
    while (!this.#rows.isDone && this.#rows.count <= target) this.#rows.extend(Infinity, this.#rows.count + 256);
    const at = Math.min(target, this.#rows.count - 1);
    const box = this.chipOf(this.#active)?.getBoundingClientRect();
    if (!box) return this.#rows.start(at);
    this.reveal(this.#rows.start(at));
    const drawn = this.#drawn.get(at);
    if (!drawn) return this.#rows.start(at);
    const centre = (box.left + box.right) / 2;
    const distances = drawn.chips.map((chip) => {
      const { left, right } = chip.getBoundingClientRect();
      return Math.abs((left + right) / 2 - centre);
    });
    return drawn.start + distances.indexOf(Math.min(...distances));
  }

  /** On paper and in pictures all rows follow each other, up to a limit that keeps this fast. */
  drawAll() {
    this.#isPrinting = true;
    this.#rows.extend(Infinity, PRINTED_ROWS);
    const rows = Math.min(PRINTED_ROWS, this.#rows.count);
    this.#drawRows(0, rows, -1, 0);
    this.list.style.blockSize = `${rows * this.#rowHeight()}px`;
  }

  drawVisible() {
    this.#isPrinting = false;
    this.#setHeight();
    this.#redraw();
  }
}

/** The text field, with a highlight for the token under the pointer. */

import { make } from "./dom.js";
import { paragraphDirection, RTL_CHARACTER } from "./token_rows.js";

// The highlight lays out the text a second time, which longer texts make slow; a click selects in any text.
const MAX_HIGHLIGHTED = 60_000;
// In a longer text all paragraphs have one direction: Chromium lays out `dir=auto` anew with every key.
const MAX_MIXED = 100_000;

export class Editor {
  #mirror = make("div", { class: "editor-mirror", "aria-hidden": "true" });
  #usesCrlf = false;
  #changed;

  /**
   * @param {string} text
   * @param {{changed(text: string, event: InputEvent): void, moved(range: {start: number, end: number} | null): void}} events
   */
  constructor(text, events) {
    this.#changed = events.changed;
    this.field = make("textarea", {
      id: "text",
      class: "editor-field",
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      autocorrect: "off",
      placeholder: "Type or paste a text, or drop a file.",
    });
    this.element = make("div", { class: "editor" }, this.#mirror, this.field);
    this.setText(text);
    this.field.addEventListener("input", (event) => {
      this.#setDirection();
      this.#changed(this.text, event);
    });
    this.field.addEventListener("scroll", () => this.#align(), { passive: true });
    document.addEventListener("selectionchange", () => {
      if (document.activeElement === this.field) events.moved(this.#selection());
    });
    this.field.addEventListener("blur", () => events.moved(null));
  }

  /** The text. A field turns line ends into LF; those of a text with CRLF come back here. */
  get text() {
    return this.#usesCrlf ? this.field.value.replaceAll("\n", "\r\n") : this.field.value;
  }

  setText(text) {
    this.#usesCrlf = text.includes("\r\n") && !/(^|[^\r])\n/.test(text);
    if (this.field.value !== text) this.field.value = text;
    this.#setDirection();
    this.highlight(null);
  }

  get usesCrlf() {
    return this.#usesCrlf;
  }

  /** Whether what the field holds is the given text, but for its line ends. */
  holds(text) {
    return this.text === text;
  }

  /** Highlights a range of UTF-16 code units; null ends it. */
  highlight(range) {
    if (range === null || this.field.value.length > MAX_HIGHLIGHTED) {
      this.#mirror.replaceChildren();
      return;
    }
    const { value } = this.field;
    const [start, end] = [this.#toField(range.start), this.#toField(range.end)];
    this.#mirror.dir = this.field.dir;
    // What follows decides where the last line of the highlight breaks.
    this.#mirror.replaceChildren(
      value.slice(0, start),
      make("mark", {}, value.slice(start, end) || "\u200b"),
      value.slice(end, end + 400),
    );
    this.#align();
  }

  /** Selects a range, and scrolls to it. */
  select(range) {
    const [start, end] = [this.#toField(range.start), this.#toField(range.end)];
    this.field.setSelectionRange(start, end);
    const mark = this.#mirror.querySelector("mark");
    if (mark === null) return;
    const top = mark.offsetTop;
    const { scrollTop, clientHeight } = this.field;
    if (top < scrollTop || top + 24 > scrollTop + clientHeight) {
      this.field.scrollTop = Math.max(0, top - clientHeight / 3);
    }
  }

  /** Each paragraph has its own direction in a text with characters that are written from right to left. */
  #setDirection() {
    const { value } = this.field;
    const isMixed = RTL_CHARACTER.test(value);
    this.field.dir = !isMixed ? "ltr" : value.length <= MAX_MIXED ? "auto" : paragraphDirection(value, 0);
  }

  #toField(position) {
    return this.#usesCrlf ? position - (this.text.slice(0, position).split("\r\n").length - 1) : position;
  }

  #selection() {
    const { selectionStart, selectionEnd, value } = this.field;
    if (!this.#usesCrlf) return { start: selectionStart, end: selectionEnd };
    const newlines = (end) => value.slice(0, end).split("\n").length - 1;
    return { start: selectionStart + newlines(selectionStart), end: selectionEnd + newlines(selectionEnd) };
  }

  #align() {
    this.#mirror.style.inlineSize = `${this.field.clientWidth}px`;
    this.#mirror.style.transform = `translateY(${-this.field.scrollTop}px)`;
  }
}

/** The text field, with a highlight for the token under the pointer. */

import { make } from "./dom.js";
import { paragraphDirection, RTL_CHARACTER } from "./token_rows.js";

// The highlight lays out the text a second time, which longer texts make slow; a click selects in any text.
const MAX_HIGHLIGHTED = 60_000;
// In a longer text all paragraphs have one direction: Chromium lays out `dir=auto` anew with every key.
const MAX_MIXED = 100_000;

export class Editor {
  #mirror = make("div", { class: "editor-mirror", "aria-hidden": "true" });
  /** The ends of the lines, which the field turns into LF; null if all are LF. */
  #ends = null;
  #value = "";
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
      this.#keepEnds();
      this.#setDirection();
      this.#changed(this.text, event);
    });
    this.field.addEventListener("scroll", () => this.#align(), { passive: true });
    document.addEventListener("selectionchange", () => {
      if (document.activeElement === this.field) events.moved(this.#selection());
    });
    this.field.addEventListener("blur", () => events.moved(null));
  }

  /** The text with its line ends. */
  get text() {
    if (this.#ends === null) return this.field.value;
    return this.field.value.split("\n").map((line, at) => line + (this.#ends[at] ?? "")).join("");
  }

  setText(text) {
    this.#ends = text.includes("\r") ? text.match(/\r\n|\r|\n/g) : null;
    if (this.field.value !== text) this.field.value = text;
    this.#value = this.field.value;
    this.#setDirection();
    this.highlight(null);
  }

  /** What to say about the line ends: nothing if all are LF. */
  get lineEnds() {
    if (this.#ends === null) return "";
    return this.#ends.every((end) => end === "\r\n") ? "CRLF" : "mixed line ends";
  }

  /** After an edit, all lines outside of it keep their ends; new ones get that of the line before. */
  #keepEnds() {
    const [before, after] = [this.#value, this.field.value];
    this.#value = after;
    if (this.#ends === null) return;
    const shorter = Math.min(before.length, after.length);
    let [same, tail] = [0, 0];
    while (same < shorter && before[same] === after[same]) same += 1;
    while (tail < shorter - same && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
    const lines = (text) => text.split("\n").length - 1;
    const first = lines(before.slice(0, same));
    const added = lines(after.slice(same, after.length - tail));
    const end = this.#ends[first - 1] ?? this.#ends[first] ?? "\n";
    this.#ends.splice(first, lines(before.slice(same, before.length - tail)), ...Array(added).fill(end));
    if (this.#ends.every((each) => each === "\n")) this.#ends = null;
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
    return this.#ends === null ? position : position - (this.text.slice(0, position).split("\r\n").length - 1);
  }

  #selection() {
    const { selectionStart, selectionEnd, value } = this.field;
    if (this.#ends === null) return { start: selectionStart, end: selectionEnd };
    const inText = (end) => {
      const ended = this.#ends.slice(0, value.slice(0, end).split("\n").length - 1);
      return end + ended.filter((each) => each === "\r\n").length;
    };
    return { start: inText(selectionStart), end: inText(selectionEnd) };
  }

  #align() {
    this.#mirror.style.inlineSize = `${this.field.clientWidth}px`;
    this.#mirror.style.transform = `translateY(${-this.field.scrollTop}px)`;
  }
}

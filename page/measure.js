/** The widths of chips, measured on a canvas and kept by token. */

import { chipParts } from "./chips.js";
import { make } from "./dom.js";
import { characterName, isInvisible } from "./printable.js";

// Ids below this have a place in an array; files may give tokens any other ids.
const ARRAY_IDS = 1 << 21;

/** The bytes of the tokens of one tokenizer, as far as texts had them. */
export class TokenBytes {
  #bytes = new Map();

  /** @param {{ids: Uint32Array, offsets: Uint32Array, bytes: Uint8Array}} table */
  add({ ids, offsets, bytes }) {
    for (let at = 0; at < ids.length; at++) {
      this.#bytes.set(ids[at], bytes.subarray(offsets[at], offsets[at + 1]));
    }
  }

  /** @returns {Uint8Array} */
  get(id) {
    return this.#bytes.get(id) || new Uint8Array();
  }
}

/** A typed array by id that grows, with a map for ids that are too large for it. */
class ById {
  constructor(missing) {
    this.missing = missing;
    this.array = new Float32Array(1024).fill(missing);
    this.map = new Map();
  }

  get(id) {
    if (id < this.array.length) return this.array[id];
    return id < ARRAY_IDS ? this.missing : this.map.get(id) ?? this.missing;
  }

  set(id, value) {
    if (id >= ARRAY_IDS) {
      this.map.set(id, value);
      return;
    }
    if (id >= this.array.length) {
      const larger = new Float32Array(Math.min(ARRAY_IDS, Math.max(2 * this.array.length, id + 1))).fill(this.missing);
      larger.set(this.array);
      this.array = larger;
    }
    this.array[id] = value;
  }
}

/** The fonts and paddings of chips, read from a hidden chip, so that the style sheet is their only source. */
export class ChipMetrics {
  #context = document.createElement("canvas").getContext("2d");
  #probe;

  constructor() {
    const text = make(
      "span",
      { class: "chip-text" },
      "x",
      make("span", { class: "chip-name" }, "x"),
      make("span", { class: "chip-hex" }, "x"),
    );
    this.#probe = make(
      "div",
      { class: "metrics-probe", "aria-hidden": "true" },
      make("span", { class: "chip" }, text, make("span", { class: "chip-id" }, "1")),
    );
    document.body.append(this.#probe);
    this.read();
  }

  /** Calls a function whenever the sizes changed: the reader zooms text, or moves to a larger screen. */
  onChange(changed) {
    new ResizeObserver(() => {
      const before = this.fonts.plain;
      this.read();
      if (before !== this.fonts.plain) changed();
    }).observe(this.#probe);
  }

  /** Reads the style again. */
  read() {
    const style = (selector) => getComputedStyle(this.#probe.querySelector(selector));
    const font = (each) => `${each.fontStyle} ${each.fontWeight} ${each.fontSize} ${each.fontFamily}`;
    const sum = (each, ...names) => names.reduce((total, name) => total + parseFloat(each[name]), 0);
    const [chip, name, hex, id] = [".chip", ".chip-name", ".chip-hex", ".chip-id"].map(style);
    this.fonts = { plain: font(chip), sign: font(chip), name: font(name), hex: font(hex), id: font(id) };
    this.hexSpacing = parseFloat(hex.letterSpacing) || 0;
    // Forced colours give chips a border.
    this.padding = sum(chip, "paddingInlineStart", "paddingInlineEnd", "borderInlineStartWidth", "borderInlineEndWidth");
    this.minimum = parseFloat(chip.minInlineSize);
    this.namePadding = sum(
      name,
      "marginInlineStart",
      "marginInlineEnd",
      "paddingInlineStart",
      "paddingInlineEnd",
      "borderInlineStartWidth",
      "borderInlineEndWidth",
    );
    const root = getComputedStyle(document.documentElement);
    const pixels = (property) => {
      const value = root.getPropertyValue(property).trim();
      return parseFloat(value) * (value.endsWith("rem") ? parseFloat(root.fontSize) : 1);
    };
    this.gap = pixels("--chip-gap");
    // Where two chips join, one has more padding and the other a border.
    this.join = 2 * pixels("--chip-join");
    this.heights = {
      plain: pixels("--chip-height") + pixels("--row-gap"),
      ids: pixels("--chip-height-ids") + pixels("--row-gap"),
    };
  }

  /** @param {string} text @param {"plain" | "sign" | "name" | "hex" | "id"} kind */
  textWidth(text, kind) {
    this.#context.font = this.fonts[kind];
    return this.#context.measureText(text).width;
  }

  /** The width of a chip with these parts, without its character. */
  chipWidth(parts, id) {
    let width = parts.length === 0 ? this.textWidth("empty", "name") + this.namePadding : 0;
    for (const { text, kind } of parts) {
      // A longer text is shortened in its chip in any case.
      width += this.textWidth(text.length > 2000 ? text.slice(0, 2000) : text, kind);
      if (kind === "name") width += this.namePadding;
      if (kind === "hex") width += this.hexSpacing * text.length;
    }
    if (id !== null) width = Math.max(width, this.textWidth(String(id), "id"));
    return Math.max(this.minimum, width + this.padding);
  }
}

/** Widths and line breaks of the tokens of one tokenizer, for one setting of the switches. */
export class TokenWidths {
  #widths = new ById(-1);
  #characters = new Map();

  /**
   * @param {ChipMetrics} metrics
   * @param {TokenBytes} bytes
   * @param {{showsInvisible: boolean, showsIds: boolean}} switches
   */
  constructor(metrics, bytes, { showsInvisible, showsIds }) {
    this.metrics = metrics;
    this.bytes = bytes;
    this.showsInvisible = showsInvisible;
    this.showsIds = showsIds;
  }

  /** The width of a token's chip; negative if the token ends its row, as it contains a newline. */
  signed(id) {
    const known = this.#widths.get(id);
    if (known !== -1) return known;
    const bytes = this.bytes.get(id);
    const width = this.metrics.chipWidth(chipParts(bytes, this.showsInvisible), this.showsIds ? id : null);
    const signed = bytes.includes(10) ? -width - 1 : width;
    this.#widths.set(id, signed);
    return signed;
  }

  /** The room of the character that the first of its tokens shows. */
  character(text) {
    let width = this.#characters.get(text);
    if (width === undefined) {
      const own = isInvisible(text)
        ? this.metrics.textWidth(characterName(text), "name") + this.metrics.namePadding
        : this.metrics.textWidth(text, "plain");
      width = own + this.metrics.textWidth("x", "plain") / 2;
      if (this.#characters.size > 20_000) this.#characters.clear();
      this.#characters.set(text, width);
    }
    return width;
  }
}

/** Chips: one token each, in the page's style. */

import { countNoun, make } from "./dom.js";
import { printable, visibleParts } from "./printable.js";

// Flags of the tokens of an encoded text; core.js names them.
export const FLAG_ADDED = 1;
export const FLAG_SPECIAL = 2;
export const FLAG_BEGINS_INSIDE = 8;
export const FLAG_ENDS_INSIDE = 16;

const COLOURS = 8;

/**
 * What a chip shows: runs of text, signs of spaces, names of invisible characters, and hexadecimal bytes.
 * @param {Uint8Array} bytes
 * @param {boolean} showsInvisible
 * @returns {{text: string, kind: "plain" | "sign" | "name" | "hex"}[]}
 */
export function chipParts(bytes, showsInvisible) {
  return printable(bytes).parts.flatMap((part) =>
    part.isHex
      ? [{ text: part.text, kind: "hex" }]
      : visibleParts(part.text, showsInvisible).map((each) => drawableSpaces(each, showsInvisible))
  );
}

/** Line breaks and tabs have no width in a chip, so without signs they are drawn as a space. */
function drawableSpaces(part, showsInvisible) {
  return showsInvisible ? part : { ...part, text: part.text.replace(/[\n\r\t\v\f\0\u0085\u2028\u2029]/g, " ") };
}

/**
 * Makes the content of a chip. `dir=auto` isolates its direction from its neighbours.
 * @param {{text: string, kind: string}[]} parts
 * @returns {HTMLElement}
 */
export function chipText(parts) {
  const text = make("span", { class: "chip-text", dir: "auto" });
  for (const part of parts) {
    if (part.kind === "plain") text.append(part.text);
    else text.append(make("span", { class: `chip-${part.kind}` }, part.text));
  }
  if (parts.length === 0) text.append(make("span", { class: "chip-name" }, "empty"));
  return text;
}

/** The classes of a chip: its colour, and what its flags say. */
export function chipClasses(colour, flags) {
  const classes = ["chip", flags & (FLAG_SPECIAL | FLAG_ADDED) ? "chip-special" : `chip-colour-${colour % COLOURS}`];
  if (flags & FLAG_BEGINS_INSIDE) classes.push("joins-previous");
  if (flags & FLAG_ENDS_INSIDE) classes.push("joins-next");
  return classes.join(" ");
}

/** Says how many symbols before or after the drawn ones are left out. */
export function symbolsLeftOut(count, where) {
  return make("span", { class: "merges-more" }, countNoun(count, `${where} symbol`));
}

/**
 * Makes a function that makes one chip; it follows the switch for invisible characters.
 * @param {{get(): {showsInvisible: boolean}}} store
 */
export function chipMaker(store) {
  /**
   * @param {{bytes: Uint8Array, id?: number, flags?: number, colour?: number}} token `id` is written below
   * @returns {HTMLElement}
   */
  return function chip({ bytes, id, flags = 0, colour = 0 }) {
    const parts = chipParts(bytes, store.get().showsInvisible);
    const made = make("span", { class: chipClasses(colour, flags) }, chipText(parts));
    if (id !== undefined) made.append(make("span", { class: "chip-id" }, String(id)));
    return made;
  };
}

/** Two tokenizers on one text: which tokens differ, and by how much their counts do. */

import { countNoun } from "./dom.js";

/**
 * Marks the tokens of each text that the other does not have with the same bytes of the text.
 * @param {{byteStarts: Uint32Array, byteEnds: Uint32Array}} one
 * @param {{byteStarts: Uint32Array, byteEnds: Uint32Array}} other
 * @returns {[Uint8Array, Uint8Array]}
 */
export function differences(one, other) {
  const marks = [new Uint8Array(one.byteStarts.length).fill(1), new Uint8Array(other.byteStarts.length).fill(1)];
  let left = 0;
  let right = 0;
  while (left < marks[0].length && right < marks[1].length) {
    const start = one.byteStarts[left] - other.byteStarts[right];
    const end = one.byteEnds[left] - other.byteEnds[right];
    if (start === 0 && end === 0) {
      marks[0][left] = 0;
      marks[1][right] = 0;
    }
    if (end <= 0) left += 1;
    if (end >= 0) right += 1;
  }
  return marks;
}

/**
 * Says how the counts of two tokenizers differ, the first being 100 %.
 * @param {string} one
 * @param {number} count
 * @param {string} other
 * @param {number} otherCount
 */
export function comparisonLine(one, count, other, otherCount) {
  const counts = `${one} ${countNoun(count, "token")}, ${other} ${otherCount.toLocaleString("en")}`;
  if (count === otherCount) return `${counts}: the same number`;
  if (count === 0) return counts;
  const share = Math.abs(otherCount / count - 1) * 100;
  const percent = share >= 9.95 ? Math.round(share).toLocaleString("en") : share.toFixed(1);
  return `${counts}: ${percent} % ${otherCount > count ? "more" : "fewer"}`;
}

// The direction of a text: that of its first letter.

// Hebrew, Arabic and the other scripts that run from right to left.
const RIGHT_TO_LEFT = /^[^\p{L}]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * @param {Uint8Array} bytes
 * @returns {boolean}
 */
export function runsRightToLeft(bytes) {
  return RIGHT_TO_LEFT.test(new TextDecoder().decode(bytes));
}

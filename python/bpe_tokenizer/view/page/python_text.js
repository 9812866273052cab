// Text operations of Python that differ from JavaScript's. The chat templates and their error messages need them.

// The characters of str.strip(), which are not those of String.trim().
const PYTHON_SPACE = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const STRIPPED = new RegExp(`^[${PYTHON_SPACE}]+|[${PYTHON_SPACE}]+$`, "g");
const ONLY_SPACE = new RegExp(`^[${PYTHON_SPACE}]+$`);
const UNPRINTABLE = /[\p{C}\p{Z}]/u;
const ESCAPES = new Map([["\n", "\\n"], ["\r", "\\r"], ["\t", "\\t"], ["\\", "\\\\"]]);

/**
 * Removes white space at both ends, as `str.strip()` does.
 * @param {string} text
 * @returns {string}
 */
export function pythonStrip(text) {
  return text.replace(STRIPPED, "");
}

/**
 * Whether a text is white space only, as `str.isspace()` says.
 * @param {string} text
 * @returns {boolean}
 */
export function pythonIsSpace(text) {
  return ONLY_SPACE.test(text);
}

/**
 * Returns `repr(text)`, cut as `errors.shorten` cuts it.
 * @param {string} text
 * @param {number} limit the largest number of characters
 * @returns {string}
 */
export function pythonRepr(text, limit = 80) {
  const characters = Array.from(text).slice(0, limit);
  const quote = characters.includes("'") && !characters.includes('"') ? '"' : "'";
  const shown = Array.from(quote + characters.map((each) => escapeCharacter(each, quote)).join("") + quote);
  return shown.length <= limit ? shown.join("") : `${shown.slice(0, limit - 4).join("")}...${quote}`;
}

function escapeCharacter(character, quote) {
  if (character === quote) return `\\${character}`;
  if (ESCAPES.has(character)) return ESCAPES.get(character);
  if (character === " " || !UNPRINTABLE.test(character)) return character;
  const code = character.codePointAt(0);
  const [prefix, digits] = code < 0x100 ? ["\\x", 2] : code < 0x10000 ? ["\\u", 4] : ["\\U", 8];
  return prefix + code.toString(16).padStart(digits, "0");
}

/** The bytes of a token as something to read: characters, and hexadecimal bytes where no character is whole. */

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// Characters that have no shape of their own, or change the order or shape of their neighbours.
const NAMES = new Map(Object.entries({
  "\u00a0": "NBSP",
  "\u00ad": "SHY",
  "\u034f": "CGJ",
  "\u061c": "ALM",
  "\u180e": "MVS",
  "\u200b": "ZWSP",
  "\u200c": "ZWNJ",
  "\u200d": "ZWJ",
  "\u200e": "LRM",
  "\u200f": "RLM",
  "\u2028": "LS",
  "\u2029": "PS",
  "\u202a": "LRE",
  "\u202b": "RLE",
  "\u202c": "PDF",
  "\u202d": "LRO",
  "\u202e": "RLO",
  "\u202f": "NNBSP",
  "\u2060": "WJ",
  "\u2066": "LRI",
  "\u2067": "RLI",
  "\u2068": "FSI",
  "\u2069": "PDI",
  "\u3000": "IDSP",
  "\ufeff": "BOM",
  "\u007f": "DEL",
  "\u0085": "NEL",
  "\u115f": "HCF",
  "\u1160": "HJF",
  "\u2800": "BLANK",
  "\u3164": "HF",
  "\uffa0": "HHF",
}));
const CONTROLS = (
  "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
).split(" ");
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Zs}\u034f\u115f\u1160\u2800\u3164\ufe00-\ufe0f\uffa0]/u;
// A mark without a letter before it is drawn on a dotted circle.
const MARK = /^\p{M}/u;
const CIRCLE = "\u25cc";
const SIGNS = new Map([[" ", "·"], ["\n", "↵"], ["\t", "→"], ["\r", "␍"]]);

/**
 * @param {Uint8Array} bytes
 * @returns {{text: string, parts: {text: string, isHex: boolean}[]}} bytes that are not whole characters are
 *     hexadecimal in `text`, and parts of their own
 */
export function printable(bytes) {
  try {
    const text = UTF8.decode(bytes);
    return { text, parts: text === "" ? [] : [{ text, isHex: false }] };
  } catch {
    const parts = splitBytes(bytes);
    return { text: parts.map((part) => part.text).join(" "), parts };
  }
}

/** Splits bytes into runs of whole characters and runs of bytes that are parts of characters. */
function splitBytes(bytes) {
  const parts = [];
  let hex = [];
  let at = 0;
  let start = 0;
  const endText = () => {
    if (start < at) parts.push({ text: UTF8.decode(bytes.subarray(start, at)), isHex: false });
  };
  const endHex = () => {
    if (hex.length > 0) parts.push({ text: hex.join(" "), isHex: true });
    hex = [];
  };
  while (at < bytes.length) {
    const length = characterLength(bytes, at);
    if (length === 0) {
      endText();
      hex.push(bytes[at].toString(16).toUpperCase().padStart(2, "0"));
      at += 1;
      start = at;
    } else {
      endHex();
      at += length;
    }
  }
  endText();
  endHex();
  return parts;
}

/** The length of the whole character at a position; 0 if none is there. */
function characterLength(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return 1;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  try {
    UTF8.decode(bytes.subarray(at, at + length));
    return at + length <= bytes.length ? length : 0;
  } catch {
    return 0;
  }
}

/**
 * Splits a text into what is drawn as it is and what is drawn as a sign.
 * @param {string} text
 * @param {boolean} showsSpaces whether spaces, newlines and tabs get a sign; other invisible characters do anyway
 *     when this is true
 * @returns {{text: string, kind: "plain" | "sign" | "name"}[]}
 */
export function visibleParts(text, showsSpaces) {
  if (!showsSpaces || !INVISIBLE.test(text)) {
    return text === "" ? [] : [{ text: MARK.test(text) ? CIRCLE + text : text, kind: "plain" }];
  }
  const parts = [];
  const add = (added, kind) => {
    const last = parts.at(-1);
    if (last && last.kind === kind && kind !== "name") last.text += added;
    else parts.push({ text: added, kind });
  };
  let previous = "";
  for (const character of text) {
    // A joiner or variation selector inside an emoji is a part of its shape.
    const isShaping = /[\u200d\ufe00-\ufe0f]/.test(character) && previous !== "" &&
      previous === parts.at(-1)?.text.slice(-previous.length);
    if (isShaping || !INVISIBLE.test(character)) add(previous === "" && MARK.test(character) ? CIRCLE + character : character, "plain");
    else if (SIGNS.has(character)) add(SIGNS.get(character), "sign");
    else add(characterName(character), "name");
    previous = INVISIBLE.test(character) && !isShaping ? "" : character;
  }
  return parts;
}

/** Whether a character has no shape of its own. */
export function isInvisible(character) {
  return INVISIBLE.test(character);
}

/** The short name of an invisible character: "ZWSP", "NUL", or its code point. */
export function characterName(character) {
  const code = character.codePointAt(0);
  return NAMES.get(character) || CONTROLS[code] || `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Bytes in hexadecimal: "E2 82 AC". */
export function hexBytes(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
}

/** A token in words, for screen readers: spaces and invisible characters by name. */
export function spokenToken(bytes) {
  const { parts } = printable(bytes);
  if (parts.length === 0) return "empty";
  const spoken = new Map([[" ", "space"], ["\n", "newline"], ["\t", "tab"]]);
  const words = [];
  for (const part of parts) {
    if (part.isHex) {
      words.push(`bytes ${part.text}`);
      continue;
    }
    let run = "";
    for (const character of part.text) {
      if (!INVISIBLE.test(character)) {
        run += character;
        continue;
      }
      if (run) words.push(run);
      run = "";
      words.push(spoken.get(character) || characterName(character));
    }
    if (run) words.push(run);
  }
  return words.length > 20 ? `${words.slice(0, 20).join(" ")} and more` : words.join(" ");
}

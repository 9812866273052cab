// A tokenizer as the chat mode uses it, on request with special tokens that its vocabulary lacks.

/**
 * @typedef {import("./chat_tokens.js").ChatEncoded} ChatEncoded
 * @typedef {{text: string, special: boolean}} CoreSegment
 */

// Flags of an added token that is special and a piece for itself; core.js names them.
const SPECIAL_FLAGS = 7;

// Normal forms change each text between added tokens alone. Other steps can treat the first text differently.
const UNICODE_FORMS = new Set(["NFC", "NFD", "NFKC", "NFKD"]);

/** Encodes strings and segments with a tokenizer and more special tokens, as after `add_special_tokens`. */
export class ChatVocabulary {
  #client;
  #added;
  #utf8 = new TextEncoder();

  /**
   * @param {object} client
   * @param {{key: number, info: object}} tokenizer
   * @param {string[]} missing special tokens to add; they take the ids after the largest in use
   */
  constructor(client, { key, info }, missing = []) {
    this.#client = client;
    this.key = key;
    const next = Math.max(info.vocabSize, ...info.addedTokens.map((token) => token.id + 1));
    this.#added = new Map(missing.map((content, place) => [content, next + place]));
    const added = [...this.#added].map(([content, id]) => ({ id, content, special: true }));
    this.addedTokens = [...info.addedTokens, ...added];
    /** @type {Set<string>} */
    this.addedTexts = new Set(this.addedTokens.map((token) => token.content));
  }

  /**
   * Whether the result of more special tokens is known: text is encoded between them, if nothing else changes it.
   * @param {object} info
   * @returns {boolean}
   */
  static canAdd(info) {
    return info.alphabet === "bytes" && info.normalizers.every((name) => UNICODE_FORMS.has(name));
  }

  /**
   * Encodes a text and recognises all special tokens in it.
   * @param {string} text
   * @returns {Promise<ChatEncoded>}
   */
  async encodeString(text) {
    const encode = (segments) => {
      const joined = segments.map((each) => each.text).join("");
      return this.#client.encode(this.key, joined, { special: "all" });
    };
    return this.#joined([{ text, special: true }], encode);
  }

  /**
   * Encodes segments; contents never become control tokens.
   * @param {CoreSegment[]} segments
   * @param {string[]} markup plain added tokens that the template writes
   * @returns {Promise<ChatEncoded>}
   */
  async encodeSegments(segments, markup) {
    return this.#joined(segments, (each) => this.#client.encodeSegments(this.key, each, { markup }));
  }

  /**
   * Returns the bytes of tokens, by id.
   * @param {Iterable<number>} ids
   * @returns {Promise<Map<number, Uint8Array>>}
   */
  async tokenBytes(ids) {
    const added = new Map([...this.#added].map(([content, id]) => [id, this.#utf8.encode(content)]));
    const distinct = Uint32Array.from(new Set(ids)).filter((id) => !added.has(id));
    const { offsets, bytes } = await this.#client.tokenTable(this.key, distinct);
    distinct.forEach((id, place) => added.set(id, bytes.subarray(offsets[place], offsets[place + 1])));
    return added;
  }

  /** Encodes what is between the added tokens, and joins the results. */
  async #joined(segments, encode) {
    if (this.#added.size === 0) return encode(segments);
    const parts = [];
    let between = [];
    for (const { text, special } of segments) {
      for (const part of special ? this.#split(text) : [text]) {
        if (this.#added.has(part) && special) {
          parts.push(between, part);
          between = [];
        } else {
          between.push({ text: part, special });
        }
      }
    }
    parts.push(between);
    const encodedParts = await Promise.all(parts.map((part) => this.#part(part, encode)));
    return joinEncoded(encodedParts);
  }

  #part(part, encode) {
    if (typeof part === "string") {
      const token = { ids: [this.#added.get(part)], starts: [0], ends: [part.length], flags: [SPECIAL_FLAGS] };
      return [token, part.length];
    }
    return part.length === 0 ? emptyEncoded() : encode(part).then((each) => [each, lengthOf(part)]);
  }

  /** Splits a text at the added tokens; the longest of those at a place wins. */
  #split(text) {
    const tokens = [...this.#added.keys()].sort((a, b) => b.length - a.length);
    const pattern = new RegExp(`(${tokens.map((each) => each.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|")})`);
    return text.split(pattern).filter((part) => part !== "");
  }
}

function lengthOf(segments) {
  return segments.reduce((sum, { text }) => sum + text.length, 0);
}

function emptyEncoded() {
  return [{ ids: [], starts: [], ends: [], flags: [] }, 0];
}

function joinEncoded(parts) {
  const size = parts.reduce((sum, [{ ids }]) => sum + ids.length, 0);
  const [ids, starts, ends] = Array.from({ length: 3 }, () => new Uint32Array(size));
  const joined = { ids, starts, ends, flags: new Uint8Array(size) };
  let token = 0;
  let position = 0;
  for (const [part, length] of parts) {
    joined.ids.set(part.ids, token);
    joined.flags.set(part.flags, token);
    for (const name of ["starts", "ends"]) {
      for (let at = 0; at < part.ids.length; at += 1) joined[name][token + at] = part[name][at] + position;
    }
    token += part.ids.length;
    position += length;
  }
  return joined;
}

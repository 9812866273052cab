// A tokenizer as the chat mode uses it, on request with special tokens that its vocabulary lacks.

/**
 * @typedef {import("./chat_tokens.js").ChatEncoded} ChatEncoded
 * @typedef {{text: string, special: boolean}} CoreSegment
 */

/** Encodes strings and segments with a tokenizer and more special tokens, as after `add_special_tokens`. */
export class ChatVocabulary {
  #client;
  #missing;

  /**
   * @param {object} client
   * @param {{key: number, info: object}} tokenizer
   * @param {string[]} missing special tokens to add
   * @param {Record<string, number>} known ids of some of them; the others take the ids after the largest in use
   */
  constructor(client, { key, info }, missing = [], known = {}) {
    this.#client = client;
    this.key = key;
    const next = Math.max(info.nextId, ...missing.map((content) => (known[content] ?? -1) + 1));
    const added = missing.map((content, place) => ({ id: known[content] ?? next + place, content, special: true }));
    this.#missing = added.map(({ content, id }) => [content, id]);
    this.addedTokens = [...info.addedTokens, ...added];
    /** @type {Set<string>} */
    this.addedTexts = new Set(this.addedTokens.map((token) => token.content));
  }

  /**
   * Encodes a text and recognises all special tokens in it.
   * @param {object} template
   * @param {string} text
   * @returns {Promise<ChatEncoded>}
   */
  encodeString(template, text) {
    return this.encodeSegments(template, [{ text, special: true }]);
  }

  /**
   * Encodes segments; contents never become control tokens.
   * @param {object} template
   * @param {CoreSegment[]} segments
   * @returns {Promise<ChatEncoded>}
   */
  encodeSegments({ source }, segments) {
    return this.#client.encodeSegments(this.key, segments, { source, added: this.#missing });
  }

  /**
   * Returns the bytes of tokens, by id.
   * @param {Iterable<number>} ids
   * @returns {Promise<Map<number, Uint8Array>>}
   */
  async tokenBytes(ids) {
    const utf8 = new TextEncoder();
    const added = this.addedTokens.slice(this.addedTokens.length - this.#missing.length);
    const own = new Map(added.map(({ id, content }) => [id, utf8.encode(content)]));
    const found = await this.#client.tokenBytes(this.key, Array.from(ids).filter((id) => !own.has(id)));
    return new Map([...found, ...own]);
  }
}

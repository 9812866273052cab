// The boundary to WebAssembly. `crates/wasm/src/boundary.rs` is the other side.

/** An error with a message for people. `code` is "pattern" if a split pattern is missing or wrong, else undefined. */
export class CoreError extends Error {
  /**
   * @param {string} message
   * @param {string} [code]
   */
  constructor(message, code) {
    super(message);
    this.name = "CoreError";
    this.code = code;
  }
}

/**
 * The tokens of a text, in columns.
 *
 * @typedef {object} Encoded
 * @property {Uint32Array} ids
 * @property {Uint32Array} starts Where each token begins, in UTF-16 code units of the text. A token that covers a part of a
 *   character gets the span of the whole character.
 * @property {Uint32Array} ends
 * @property {Uint32Array} byteStarts The same in bytes of the text in UTF-8, exactly.
 * @property {Uint32Array} byteEnds
 * @property {Uint8Array} flags The sum of: 1 added token, 2 special, 4 first of its piece, 8 begins inside a character,
 *   16 ends inside a character.
 * @property {Uint32Array} pieces The index of the first token of each piece. An added token is a piece.
 * @property {Uint32Array} pieceBytes Where each piece begins, in bytes of the text. Normalisation may move it to the
 *   beginning of the run of characters that it changed.
 */

/**
 * What is known about a tokenizer.
 *
 * @typedef {object} TokenizerInfo
 * @property {number} vocabSize The number of ids, added tokens included.
 * @property {number} nextId The largest id + 1.
 * @property {string[]} patterns The split patterns, in the order in which they apply.
 * @property {string[]} normalizers The steps of normalisation, for people.
 * @property {{id: number, content: string, special: boolean}[]} addedTokens By ascending id.
 * @property {"bytes"|"characters"} alphabet What merging begins with.
 * @property {number} merges The number of merges.
 * @property {Record<string, string>} roles The special tokens by role: bos, eos, pad, unk; as far as the file or their names tell.
 */

/**
 * The merges of a piece. Positions count the symbols of the piece, from 0.
 *
 * @typedef {object} Trace
 * @property {(number|null)[]} symbols The ids that merging begins with; null for a byte without a token that keeps its
 *   neighbours apart.
 * @property {{rank: number, left: number, right: number, leftId: number, rightId: number, id: number}[]} merges In the order
 *   of encoding: the positions at which the two symbols begin, their ids, and the id that replaces both.
 * @property {number[]} ids The ids that encoding gives.
 * @property {boolean} isWhole Whether encoding takes the piece as one token without merging. The merges then show what
 *   merging would do.
 */

/**
 * Which special tokens a call recognises: none, all, or those with these texts.
 * @typedef {"none"|"all"|string[]} SpecialChoice
 */

/** How much JavaScript writes at most, in code units: a text of 256 MB. */
const MAX_UNITS = 1 << 28;

const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder("utf-8");

/** One instance of the WebAssembly module: its memory holds at most one tokenizer. */
class CoreInstance {
  #exports;
  #memory;
  /** Address and size of the two input buffers. */
  #buffers = [
    { address: 0, size: 0 },
    { address: 0, size: 0 },
  ];

  /** @param {WebAssembly.Module} module */
  constructor(module) {
    this.#exports = new WebAssembly.Instance(module, {}).exports;
    this.#memory = this.#exports.memory;
    this.#exports.start();
  }

  /** The bytes of an input buffer. */
  #room(index, size) {
    const buffer = this.#buffers[index];
    if (buffer.size < size) {
      // More than needed, so that a text that grows does not move each time.
      const room = size + (size >> 2) + 64;
      buffer.address = this.#exports.buffer(index, room) >>> 0;
      buffer.size = room;
    }
    return new Uint8Array(this.#memory.buffer, buffer.address, size);
  }

  /** Forgets the input buffers, which a call has freed. */
  forgetBuffers() {
    for (const buffer of this.#buffers) buffer.size = 0;
  }

  /** Copies bytes into a buffer; returns their number. */
  writeBytes(index, bytes) {
    this.#room(index, bytes.length).set(bytes);
    return bytes.length;
  }

  /** Writes a text in UTF-8; returns its number of bytes. */
  writeText(index, text) {
    return utf8Encoder.encodeInto(text, this.#room(index, 3 * text.length)).written;
  }

  /** Writes texts in sequence; returns the bytes of each and of all. A surrogate pair that two of them share is two U+FFFD. */
  writeTexts(index, texts, units) {
    const room = this.#room(index, 3 * units);
    const sizes = [];
    let end = 0;
    for (const text of texts) {
      const { written } = utf8Encoder.encodeInto(text, room.subarray(end));
      sizes.push(written);
      end += written;
    }
    return { sizes, end };
  }

  /** Calls a function; returns the addresses and sizes of the parts of its answer. */
  call(name, ...numbers) {
    let address;
    try {
      address = this.#exports[name](...numbers) >>> 0;
    } catch (error) {
      throw new InstanceTrap(this.#trapMessage(error));
    }
    return this.#parts(address);
  }

  #parts(address) {
    const [status, count] = new Uint32Array(this.#memory.buffer, address, 2);
    const words = new Uint32Array(this.#memory.buffer, address + 8, 2 * count);
    const parts = [];
    for (let index = 0; index < count; index += 1) {
      parts.push({ address: words[2 * index], size: words[2 * index + 1] });
    }
    if (status === 1) {
      const message = this.text(parts[0]);
      throw new CoreError(message, codeOf(message));
    }
    return parts;
  }

  #trapMessage(error) {
    let message = "";
    try {
      message = this.text(this.#parts(this.#exports.trap_message() >>> 0)[0]);
    } catch {
      // The instance is broken; the engine's message must do.
    }
    return message || `${error.message || error} (this may be a lack of memory)`;
  }

  words({ address, size }) {
    return new Uint32Array(this.#memory.buffer, address, size / 4).slice();
  }

  bytes({ address, size }) {
    return new Uint8Array(this.#memory.buffer, address, size).slice();
  }

  text({ address, size }) {
    return utf8Decoder.decode(new Uint8Array(this.#memory.buffer, address, size));
  }
}

/** The WebAssembly code stopped: its instance must not be used again. */
class InstanceTrap extends Error {}

const codeOf = (message) => (message.startsWith("split pattern") ? "pattern" : undefined);

const crashed = (trap) =>
  new CoreError(`the tokenizer's core stopped, which is a bug: ${trap.message}; please report it with the text and the tokenizer`);

/** Checks a text. */
const checkText = (text) => {
  if (typeof text !== "string") throw new CoreError(`the text must be a string, not ${typeof text}`);
  if (text.length > MAX_UNITS) throw new CoreError(`the text has ${text.length} code units; give at most ${MAX_UNITS} at a time`);
  return text;
};

const checkBytes = (bytes, what) => {
  if (!(bytes instanceof Uint8Array)) throw new CoreError(`${what} must be a Uint8Array`);
  return bytes;
};

/** Special tokens with their ids, as an object for JSON. */
const checkTokens = (tokens) => {
  if (tokens === undefined || tokens === null) return undefined;
  if (typeof tokens !== "object" || Array.isArray(tokens)) {
    throw new CoreError("specialTokens must be an object of texts and ids");
  }
  for (const [text, id] of Object.entries(tokens)) {
    if (!Number.isInteger(id) || id < 0 || id >= 0xffffffff) {
      throw new CoreError(`the id of the special token ${JSON.stringify(text)} must be an integer from 0 to 4294967294`);
    }
  }
  return tokens;
};

/** Starts tokenizers. Each has an instance of WebAssembly for itself, so freeing one frees all of its memory. */
export class Core {
  #module;

  /** @param {WebAssembly.Module} module */
  constructor(module) {
    this.#module = module;
  }

  /**
   * Compiles the core.
   *
   * @param {BufferSource} wasm The content of core.wasm.
   * @returns {Promise<Core>}
   */
  static async start(wasm) {
    try {
      return new Core(await WebAssembly.compile(wasm));
    } catch (error) {
      throw new CoreError(`core.wasm cannot be compiled: ${error.message}`);
    }
  }

  /**
   * Loads a packed model of the package.
   *
   * @param {Uint8Array} bytes
   * @returns {CoreTokenizer}
   */
  loadPacked(bytes) {
    checkBytes(bytes, "a packed model");
    return this.#load((instance) => instance.call("load_packed", instance.writeBytes(1, bytes)));
  }

  /**
   * Loads a rank file of tiktoken.
   *
   * @param {Uint8Array} bytes
   * @param {{patterns: string[], specialTokens?: Record<string, number>}} options What a rank file does not hold. The split
   *   patterns apply in their order; without any, the error has the code "pattern".
   * @returns {CoreTokenizer}
   */
  loadRanks(bytes, { patterns, specialTokens } = {}) {
    checkBytes(bytes, "a rank file");
    if (!Array.isArray(patterns) || patterns.length === 0) throw new CoreError("a rank file holds no split pattern", "pattern");
    const options = JSON.stringify({ patterns: patterns.map(String), specialTokens: checkTokens(specialTokens) ?? {} });
    return this.#load((instance) => instance.call("load_ranks", instance.writeText(0, options), instance.writeBytes(1, bytes)));
  }

  /** @param {(instance: CoreInstance) => object[]} call Loads a file, and returns the parts of the answer. */
  #load(call) {
    return new CoreTokenizer(() => {
      const instance = new CoreInstance(this.#module);
      const parts = call(instance);
      instance.forgetBuffers();
      return { instance, parts };
    });
  }

  /**
   * Trains a tokenizer on a text.
   *
   * @param {string} text
   * @param {{vocabSize: number, pattern: string, specialTokens?: Record<string, number>, minFrequency?: number}} options The
   *   options of `BPETokenizer.train`. Special tokens have ids from 256.
   * @returns {{tokenizer: CoreTokenizer, pieces: {bytes: Uint8Array, count: number}[],
   *   merges: {left: number, right: number, id: number, count: number}[]}} The distinct pieces, the most frequent first; and for each merge the ids of both parts and of
   *   the new token, and the count of the pair.
   */
  train(text, { vocabSize, pattern, specialTokens, minFrequency = 2 } = {}) {
    checkText(text);
    if (typeof pattern !== "string" || !pattern) throw new CoreError("a split pattern is needed", "pattern");
    for (const [name, number] of [["vocabSize", vocabSize], ["minFrequency", minFrequency]]) {
      if (!Number.isInteger(number) || number < 0 || number > 0x7fffffff) throw new CoreError(`${name} must be a positive integer`);
    }
    const options = JSON.stringify({ vocabSize, pattern, specialTokens: checkTokens(specialTokens) ?? {}, minFrequency });
    let pieces = [];
    let merges = [];
    const tokenizer = new CoreTokenizer(() => {
      const instance = new CoreInstance(this.#module);
      const parts = instance.call("train", instance.writeText(0, options), instance.writeText(1, text));
      const [offsets, bytes, counts, numbers] = [
        instance.words(parts[0]),
        instance.bytes(parts[1]),
        instance.words(parts[2]),
        instance.words(parts[3]),
      ];
      pieces = Array.from(counts, (count, index) => ({ bytes: bytes.subarray(offsets[index], offsets[index + 1]), count }));
      merges = Array.from({ length: numbers.length / 4 }, (_, index) => {
        const [left, right, id, count] = numbers.subarray(4 * index, 4 * index + 4);
        return { left, right, id, count };
      });
      return { instance, parts: parts.slice(4) };
    });
    return { tokenizer, pieces, merges };
  }
}

/** A tokenizer. `Core` makes it. After `free`, every call fails. */
export class CoreTokenizer {
  /** @type {TokenizerInfo} */
  info;
  #start;
  #instance;
  #isFree = false;

  /** @param {() => {instance: object, parts: object[]}} start Makes an instance with the tokenizer, and its description. */
  constructor(start) {
    this.#start = start;
    this.#open();
  }

  #open() {
    try {
      const { instance, parts } = this.#start();
      this.info = JSON.parse(instance.text(parts[0]));
      this.#instance = instance;
    } catch (error) {
      throw error instanceof InstanceTrap ? crashed(error) : error;
    }
  }

  /** Runs work with the instance. One that trapped is replaced by the next call. */
  #run(work) {
    if (this.#isFree) throw new CoreError("the tokenizer was freed");
    if (!this.#instance) this.#open();
    try {
      return work(this.#instance);
    } catch (error) {
      if (error instanceof CoreError) throw error;
      this.#instance = undefined;
      throw crashed(error);
    }
  }

  /** Writes the choice of special tokens; returns its code. */
  #special(instance, special = "none") {
    if (special === "none") return 0;
    if (special === "all") return 1;
    if (!Array.isArray(special) || !special.every((text) => typeof text === "string")) {
      throw new CoreError('special must be "none", "all" or a list of texts');
    }
    return 2 + instance.writeText(0, JSON.stringify(special));
  }

  /**
   * The tokens of a text with their places. A lone surrogate counts as U+FFFD.
   *
   * @param {string} text
   * @param {{special?: SpecialChoice}} [options]
   * @returns {Encoded}
   */
  encode(text, { special } = {}) {
    checkText(text);
    return this.#run((instance) => {
      const code = this.#special(instance, special);
      const parts = instance.call("encode", instance.writeText(1, text), text.length, code);
      return encoded(instance, parts);
    });
  }

  /**
   * The ids of a text. Takes less time than `encode`.
   *
   * @param {string} text
   * @param {{special?: SpecialChoice}} [options]
   * @returns {Uint32Array}
   */
  encodeIds(text, { special } = {}) {
    checkText(text);
    return this.#run((instance) => {
      const code = this.#special(instance, special);
      return instance.words(instance.call("ids", instance.writeText(1, text), code)[0]);
    });
  }

  /**
   * The number of ids of a text. Takes less time than `encodeIds`.
   *
   * @param {string} text
   * @param {{special?: SpecialChoice}} [options]
   * @returns {number}
   */
  count(text, { special } = {}) {
    checkText(text);
    return this.#run((instance) => {
      const code = this.#special(instance, special);
      return instance.words(instance.call("count", instance.writeText(1, text), code)[0])[0];
    });
  }

  /**
   * The tokens of a chat. Special tokens, and plain added tokens that the template writes, match in its segments only:
   * contents never become control tokens. The ids are those of the package's chat encoding.
   *
   * @param {{text: string, special: boolean}[]} segments In sequence; `special` says that the template wrote the segment.
   * @param {{source?: string, added?: [string, number][]}} [options] `source`: all text that the template may write, also in other
   *   conversations. `added`: special tokens that the tokenizer lacks, with their ids.
   * @returns {Encoded & {segments: Uint32Array, control: Uint32Array}} The places count in the concatenated text. `segments`
   *   has the index of the (first) segment of each token. `control` are the special tokens, and the plain ones of the template.
   */
  encodeSegments(segments, { source = "", added = [] } = {}) {
    if (!Array.isArray(segments)) throw new CoreError("segments must be a list");
    if (!Array.isArray(added)) throw new CoreError("added must be a list of texts and ids");
    const units = segments.reduce((sum, { text }) => sum + checkText(text).length, 0);
    return this.#run((instance) => {
      const { sizes, end } = instance.writeTexts(1, segments.map(({ text }) => text), units);
      const marked = sizes.map((size, index) => [size, Boolean(segments[index].special)]);
      const header = { segments: marked, source: String(source), added };
      const parts = instance.call("encode_segments", instance.writeText(0, JSON.stringify(header)), end);
      return { ...encoded(instance, parts), segments: instance.words(parts[8]), control: instance.words(parts[9]) };
    });
  }

  /**
   * The bytes of an id. A token such as `<0x0A>` of a SentencePiece vocabulary is its byte.
   *
   * @param {number} id
   * @returns {Uint8Array}
   */
  tokenBytes(id) {
    if (!Number.isInteger(id) || id < 0 || id > 0xffffffff) throw new CoreError(`${id} is not an id`);
    return this.tokenTable(Uint32Array.of(id)).bytes;
  }

  /**
   * The bytes of many ids.
   *
   * @param {Uint32Array} ids
   * @returns {{offsets: Uint32Array, bytes: Uint8Array}} The bytes of `ids[i]` are those from `offsets[i]` to `offsets[i + 1]`.
   */
  tokenTable(ids) {
    if (!(ids instanceof Uint32Array)) throw new CoreError("ids must be a Uint32Array");
    return this.#run((instance) => {
      const bytes = new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength);
      const parts = instance.call("token_table", instance.writeBytes(1, bytes));
      return { offsets: instance.words(parts[0]), bytes: instance.bytes(parts[1]) };
    });
  }

  /**
   * The merges of a piece.
   *
   * @param {Uint8Array} bytes
   * @returns {Trace}
   */
  trace(bytes) {
    checkBytes(bytes, "a piece");
    return this.#run((instance) => {
      const parts = instance.call("trace", instance.writeBytes(1, bytes));
      const numbers = instance.words(parts[1]);
      const merges = Array.from({ length: numbers.length / 6 }, (_, index) => {
        const [rank, left, right, leftId, rightId, id] = numbers.subarray(6 * index, 6 * index + 6);
        return { rank, left, right, leftId, rightId, id };
      });
      return {
        symbols: Array.from(instance.words(parts[0]), (symbol) => (symbol === 0xffffffff ? null : symbol)),
        merges,
        ids: Array.from(instance.words(parts[2])),
        isWhole: instance.words(parts[3])[0] === 1,
      };
    });
  }

  /** Frees the memory. */
  free() {
    this.#isFree = true;
    this.#instance = undefined;
    this.#start = undefined;
  }
}

const encoded = (instance, parts) => {
  const [ids, starts, ends, byteStarts, byteEnds] = parts.slice(0, 5).map((part) => instance.words(part));
  return {
    ids,
    starts,
    ends,
    byteStarts,
    byteEnds,
    flags: instance.bytes(parts[5]),
    pieces: instance.words(parts[6]),
    pieceBytes: instance.words(parts[7]),
  };
};

// The package's interface, over the page's core.

import { Core, CoreError, CoreTokenizer } from "./core.js";
import { ENCODINGS, FILE_PATTERNS, PATTERNS } from "./published.js";
import { packTokenizerJson } from "./read_tokenizer_json.js";

export { CoreError as TokenizerError };

const core = await Core.start(await wasm());
const fatal = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const replacing = new TextDecoder("utf-8", { ignoreBOM: true });

async function wasm() {
  const url = new URL("./core.wasm", import.meta.url);
  if (url.protocol === "file:") return (await import("node:fs/promises")).readFile(url);
  return (await fetch(url)).arrayBuffer();
}

const one = (known, name, what) => {
  if (Object.hasOwn(known, name)) return known[name];
  throw new CoreError(`unknown ${what} ${JSON.stringify(name)}; use one of ${Object.keys(known).join(", ")}`);
};

// A misspelt option would pass without an effect.
const options = (given, ...names) => {
  if (given === null || typeof given !== "object") throw new CoreError(`options are an object, not ${JSON.stringify(given)}`);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new CoreError(`there is no option ${unknown}; the options are ${names.join(", ")}`);
  return given;
};

// A name of patterns, or a pattern: a word that is no known name is a misspelt one.
const isName = (pattern) => /^[A-Za-z][\w.-]+$/.test(pattern);

export const encodingNames = Object.freeze(Object.keys(ENCODINGS));
export const patternNames = Object.freeze(Object.keys(PATTERNS));

export function loadRanks(bytes, encoding) {
  if (typeof encoding === "string") return new Tokenizer(core.loadRanks(bytes, one(ENCODINGS, encoding, "encoding")));
  const { patterns } = options(encoding ?? {}, "patterns", "specialTokens");
  if (!Array.isArray(patterns)) {
    throw new CoreError("a rank file holds no split pattern: pass the name of its encoding, or { patterns: [...] }");
  }
  const name = patterns.find(isName);
  if (name !== undefined) {
    throw new CoreError(`patterns are regular expressions, and ${JSON.stringify(name)} is a name: pass the name of an encoding`);
  }
  return new Tokenizer(core.loadRanks(bytes, encoding));
}

export function loadTokenizerJson(file) {
  if (typeof file === "string") return new Tokenizer(core.loadPacked(packTokenizerJson(file, FILE_PATTERNS)));
  let text;
  try {
    text = fatal.decode(file);
  } catch {
    throw new CoreError("tokenizer.json is not UTF-8");
  }
  return loadTokenizerJson(text);
}

export function train(text, given) {
  const { pattern = "cl100k", ...rest } = options(given, "vocabSize", "pattern", "specialTokens", "minFrequency");
  const patterns = isName(pattern) ? one(PATTERNS, pattern, "pattern") : [pattern];
  if (patterns.length > 1) throw new CoreError(`the pattern ${pattern} is several patterns; training takes one`);
  const { tokenizer, ...learned } = core.train(text, { pattern: patterns[0], ...rest });
  return { tokenizer: new Tokenizer(tokenizer), ...learned };
}

export class Tokenizer {
  #core;

  constructor(loaded) {
    if (!(loaded instanceof CoreTokenizer)) throw new CoreError("use loadRanks, loadTokenizerJson or train");
    this.#core = loaded;
  }

  get info() {
    return this.#core.info;
  }

  encode(text, given) {
    return this.#core.encodeIds(text, this.#checked(given));
  }

  encodeWithPlaces(text, given) {
    return this.#core.encode(text, this.#checked(given));
  }

  count(text, given) {
    return this.#core.count(text, this.#checked(given));
  }

  #checked(given = {}) {
    const { special = "none" } = options(given, "special");
    if (special === "none" || special === "all") return given;
    if (!Array.isArray(special)) throw new CoreError('special is "none", "all" or a list of special tokens');
    const known = new Set(this.info.addedTokens.map((token) => token.content));
    const unknown = special.find((content) => !known.has(content));
    if (unknown !== undefined) throw new CoreError(`${JSON.stringify(unknown)} is no special token of this tokenizer`);
    return given;
  }

  decodeBytes(given) {
    if (typeof given?.[Symbol.iterator] !== "function") throw new CoreError("ids are an array, or another iterable");
    const ids = [...given];
    for (const id of ids) {
      if (!Number.isInteger(id) || id < 0 || id > 0xffffffff) throw new CoreError(`${JSON.stringify(id)} is not an id`);
    }
    return this.#core.tokenTable(Uint32Array.from(ids)).bytes;
  }

  decode(ids) {
    return replacing.decode(this.decodeBytes(ids));
  }

  free() {
    this.#core.free();
  }
}

// The package's interface, over the page's core.

import { Core, CoreError, CoreTokenizer } from "./core.js";
import { ENCODINGS, PATTERNS } from "./published.js";
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

export const encodingNames = Object.freeze(Object.keys(ENCODINGS));
export const patternNames = Object.freeze(Object.keys(PATTERNS));

export function loadRanks(bytes, encoding) {
  const options = typeof encoding === "string" ? one(ENCODINGS, encoding, "encoding") : encoding;
  return new Tokenizer(core.loadRanks(bytes, options));
}

export function loadTokenizerJson(file) {
  if (typeof file === "string") return new Tokenizer(core.loadPacked(packTokenizerJson(file)));
  let text;
  try {
    text = fatal.decode(file);
  } catch {
    throw new CoreError("tokenizer.json is not UTF-8");
  }
  return loadTokenizerJson(text);
}

export function train(text, { pattern = "cl100k", ...options }) {
  const patterns = Object.hasOwn(PATTERNS, pattern) ? PATTERNS[pattern] : [pattern];
  if (patterns.length > 1) throw new CoreError(`the pattern ${pattern} is several patterns; training takes one`);
  const { tokenizer, ...rest } = core.train(text, { pattern: patterns[0], ...options });
  return { tokenizer: new Tokenizer(tokenizer), ...rest };
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

  encode(text, options) {
    return this.#core.encodeIds(text, options);
  }

  encodeWithPlaces(text, options) {
    return this.#core.encode(text, options);
  }

  count(text, options) {
    return this.#core.count(text, options);
  }

  decodeBytes(ids) {
    for (const id of ids) {
      if (!Number.isInteger(id) || id < 0 || id > 0xffffffff) throw new CoreError(`${id} is not an id`);
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

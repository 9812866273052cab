/** The worker: it holds the WebAssembly core and its tokenizers, and answers one message at a time. */

import { fromBase64 } from "./base64.js";
import { Core } from "./core.js";
import { packTokenizerJson } from "./read_tokenizer_json.js";

/** @type {Promise<Core> | null} */
let startedCore = null;
const loadedTokenizers = new Map();
// For each tokenizer, which ids the page has the bytes of: an array, as a set takes 10 ms for 1 MB of text.
const seenIds = new Map();
const FLAGGED_IDS = 1 << 20;
let lastKey = 0;

const METHODS = {
  /** Starts the core from the gzip of its WebAssembly, in base64. */
  async start(_core, { wasm }) {
    startedCore = unpackGzip(fromBase64(wasm)).then((bytes) => Core.start(bytes));
    await startedCore;
    return {};
  },
  async loadPacked(core, { packed }) {
    const bytes = await unpackGzip(typeof packed === "string" ? fromBase64(packed) : packed);
    return keepTokenizer(core.loadPacked(bytes));
  },
  loadTokenizerJson: (core, { text, published }) => keepTokenizer(core.loadPacked(packTokenizerJson(text, published))),
  loadRanks: (core, { bytes, options }) => keepTokenizer(core.loadRanks(bytes, options)),
  unload(_core, { key }) {
    loadedTokenizers.get(key)?.free();
    loadedTokenizers.delete(key);
    seenIds.delete(key);
    return null;
  },
  encodeView(_core, { key, text, options }) {
    const encoded = tokenizerOf(key).encode(text, options);
    const ids = newIds(key, encoded.ids);
    const { offsets, bytes } = tokenizerOf(key).tokenTable(ids);
    return { ...encoded, table: { ids, offsets, bytes }, ...textCounts(text) };
  },
  counts: (_core, { key, texts, options }) => texts.map((text) => tokenizerOf(key).count(text, options)),
  fingerprint: (_core, { key, text }) => fingerprintOf(tokenizerOf(key), text),
  tokenTable: (_core, { key, ids }) => tokenizerOf(key).tokenTable(ids),
  trace: (_core, { key, bytes }) => tokenizerOf(key).trace(bytes),
  encodeSegments: (_core, { key, segments, options }) => tokenizerOf(key).encodeSegments(segments, options),
  train(core, { text, options }) {
    const { tokenizer, ...rest } = core.train(text, options);
    return { ...keepTokenizer(tokenizer), ...rest };
  },
};

function keepTokenizer(tokenizer) {
  lastKey += 1;
  loadedTokenizers.set(lastKey, tokenizer);
  return { key: lastKey, info: tokenizer.info };
}

function tokenizerOf(key) {
  const found = loadedTokenizers.get(key);
  if (found === undefined) throw new Error(`the tokenizer ${key} is not loaded`);
  return found;
}

/** A hash that tells tokenizers apart: of what is known about one, and of the ids of a text in many languages (FNV-1a). */
function fingerprintOf(tokenizer, text) {
  const { patterns, normalizers, addedTokens, merges, nextId } = tokenizer.info;
  const known = JSON.stringify([patterns, normalizers, addedTokens, merges, nextId, [...tokenizer.encodeIds(text)]]);
  return [0x811c9dc5, 0x1000193].map((start) => {
    let hash = start;
    for (let at = 0; at < known.length; at++) hash = Math.imul(hash ^ known.charCodeAt(at), 0x01000193);
    return (hash >>> 0).toString(16).padStart(8, "0");
  }).join("");
}

/** The ids that the page did not get before, each once. */
function newIds(key, ids) {
  let seen = seenIds.get(key);
  if (seen === undefined) {
    seen = { flags: new Uint8Array(FLAGGED_IDS), others: new Set() };
    seenIds.set(key, seen);
  }
  const { flags, others } = seen;
  const found = [];
  for (const id of ids) {
    if (id < FLAGGED_IDS ? flags[id] === 1 : others.has(id)) continue;
    if (id < FLAGGED_IDS) flags[id] = 1;
    else others.add(id);
    found.push(id);
  }
  return Uint32Array.from(found);
}

/** The numbers of characters and of UTF-8 bytes of a text. A lone surrogate counts as U+FFFD. */
function textCounts(text) {
  let characterCount = text.length;
  let byteCount = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    if (unit < 0x800) byteCount += 1;
    else if (unit < 0xd800 || unit >= 0xdc00 || !isLow(text.charCodeAt(at + 1))) byteCount += 2;
    else {
      // Two units, one character of four bytes.
      byteCount += 2;
      characterCount -= 1;
      at += 1;
    }
  }
  return { characterCount, byteCount };
}

function isLow(unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

async function unpackGzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Buffers that move to the page instead of being copied: those of typed arrays one and two levels deep. */
function transferables(result) {
  const found = new Set();
  const visit = (value, depth) => {
    if (ArrayBuffer.isView(value)) found.add(value.buffer);
    else if (depth > 0 && value && typeof value === "object" && !Array.isArray(value)) {
      for (const each of Object.values(value)) visit(each, depth - 1);
    }
  };
  visit(result, 2);
  return [...found];
}

self.onmessage = async ({ data: { number, method, args } }) => {
  try {
    const core = startedCore === null ? null : await startedCore;
    const result = await METHODS[method](core, args);
    self.postMessage({ number, result }, transferables(result));
  } catch (error) {
    const { name = "Error", message = String(error), code } = error || {};
    self.postMessage({ number, error: { name, message, code } });
  }
};

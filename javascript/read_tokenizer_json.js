// Reads a byte-level tokenizer.json of Hugging Face `tokenizers`, and packs it for the core.
//
// The package in Python reads these files in full. This reader takes the byte-level files of most models, and refuses
// everything else in one sentence. `crates/wasm/src/packed.rs` describes packed models.

import { CoreError } from "./core.js";
import { BYTE_CHARACTERS } from "./tokenizer_json.js";

const SIGNATURE = [0x89, 0x42, 0x50, 0x45, 2];
const FORMS = ["NFC", "NFD", "NFKC", "NFKD"];
const FLAGS = ["special", "single_word", "lstrip", "rstrip", "normalized"];
const BYTES = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));
const utf8 = new TextEncoder();

const refused = (field, problem) => new CoreError(`tokenizer.json: ${field}: ${problem}; the Python package reads more files`);
const show = (value) => {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
};

/** Refuses a value that is not one of these. */
const need = (field, value, ...known) => {
  if (!known.includes(value ?? null)) throw refused(field, `${show(value)} is not supported, only ${known.map(show).join(" or ")}`);
};
const needObject = (field, value) => {
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw refused(field, "must be an object");
  return value;
};
const needArray = (field, value) => {
  if (!Array.isArray(value)) throw refused(field, "must be an array");
  return value;
};
const isId = (id) => Number.isInteger(id) && id >= 0 && id < 0xffffffff;

/** The steps of a component, which may be one step, a sequence, or nothing. */
const steps = (field, component, items) => {
  if (component === null || component === undefined) return [];
  if (needObject(field, component).type !== "Sequence") return [component];
  return needArray(`${field}.${items}`, component[items]).flatMap((each) => steps(field, each, items));
};

/** The split of a pattern that the package knows. */
const split = (step, { oniguruma }) => {
  need("pre_tokenizer.behavior", step.behavior, "Isolated");
  const pattern = step.pattern?.Regex;
  if (!Object.hasOwn(oniguruma, pattern)) throw refused("pre_tokenizer.pattern", `${show(step.pattern)} is not a published pattern`);
  return ["Split", oniguruma[pattern], "Isolated", false];
};

const preTokenizers = (component, published) => {
  const all = steps("pre_tokenizer", component, "pretokenizers");
  const byteLevel = all.pop();
  need("the last pre_tokenizer", byteLevel?.type, "ByteLevel");
  const found = all.map((step) => {
    need("pre_tokenizer.type", step.type, "Split", "Digits");
    return step.type === "Split" ? split(step, published) : ["Split", step.individual_digits ? "\\p{N}" : "\\p{N}+", "Isolated", false];
  });
  if (byteLevel.add_prefix_space) found.push(["PrefixSpace"]);
  if (byteLevel.use_regex ?? true) found.push(["Split", published.gpt2, "Isolated", false]);
  return found;
};

/** The bytes that a token of a byte-level vocabulary spells; undefined if it spells none. */
const spelled = (token) => {
  const bytes = Array.from(token, (character) => BYTES.get(character));
  return bytes.includes(undefined) ? undefined : Uint8Array.from(bytes);
};

const addedTokens = (tokens, vocab, normalizers) => {
  for (const token of tokens) {
    const { content, id, normalized } = needObject("added_tokens", token);
    if (typeof content !== "string" || !content.isWellFormed() || !isId(id)) throw refused("added_tokens", `${show(token)} needs a content and an id`);
    if (vocab.has(content) && vocab.get(content) !== id) throw refused("added_tokens", `${show(content)} has another id in model.vocab`);
    // What the file may write for other bytes, and what normalisation may change, only the whole reader tells apart.
    if (vocab.has(content) && /[^\0-\x7f]/.test(content) && spelled(content)) throw refused("added_tokens", `${show(content)} spells bytes`);
    if (normalized && normalizers.length > 0) throw refused("added_tokens", `${show(content)} is normalized`);
    if (/^\s/.test(content) && tokens.some(({ rstrip }) => rstrip)) throw refused("added_tokens", `${show(content)} begins with white space`);
  }
  return tokens.map((token) => [token.content, token.id, ...FLAGS.map((flag) => token[flag] === true)]);
};

/** A token as a byte-level vocabulary writes it. */
const written = (text) => Array.from(utf8.encode(text), (byte) => BYTE_CHARACTERS[byte]).join("");

/**
 * The added tokens of the vocabulary that do not belong to the core's: those whose ids leave a hole, unless encoding uses them,
 * and those that the vocabulary has in another spelling. `formats/huggingface/tokens.py` of the Python package explains why.
 */
const outside = (added, vocab, merged, ignoresMerges) => {
  const isUsed = ([content, , special]) =>
    merged.has(content) || BYTES.has(content) || /^<0x[0-9A-F]{2}>$/.test(content) || (ignoresMerges && !special);
  const find = (inside) => {
    let size = vocab.size - inside.length;
    return inside.filter(([, id]) => (id <= size ? ((size += 1), false) : true)).map(([content]) => content);
  };
  const inside = added.filter(([content]) => vocab.has(content)).sort((one, other) => one[1] - other[1]);
  const others = inside.map(([content]) => content).filter((content) => written(content) !== content && vocab.has(written(content)));
  return new Set([...others, ...(find(inside).length ? find(inside.filter((token) => !isUsed(token))) : [])]);
};

const mergesOf = (model, vocab) =>
  needArray("model.merges", model.merges).map((merge, rank) => {
    const pair = typeof merge === "string" ? merge.split(" ") : merge;
    const [left, right] = Array.isArray(pair) && pair.length === 2 ? pair : [];
    if (![left, right, left + right].every((token) => vocab.has(token))) throw refused(`model.merges[${rank}]`, `${show(merge)} is not two tokens that make one`);
    return [left, right];
  });

/** Numbers in LEB128: seven bits a byte, the lowest first. */
const numbers = (values) => {
  const bytes = [];
  for (let value of values) {
    for (; value > 0x7f; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
    bytes.push(value);
  }
  return Uint8Array.from(bytes);
};

const differences = (values, first) => values.map((value, index) => value - (index ? values[index - 1] : first));

/**
 * Returns the packed model of a tokenizer.json.
 * @param {string} text
 * @param {{oniguruma: Record<string, string>, gpt2: string}} published the published patterns: as these files spell them, with
 *   ours, and that of a byte-level step
 * @returns {Uint8Array}
 */
export function packTokenizerJson(text, published) {
  let document;
  try {
    document = needObject("the file", JSON.parse(text));
  } catch (error) {
    throw error instanceof CoreError ? error : new CoreError(`tokenizer.json is not JSON: ${error.message}`);
  }
  const model = needObject("model", document.model);
  need("model.type", model.type, "BPE", null);
  for (const name of ["dropout", "unk_token"]) need(`model.${name}`, model[name], null);
  for (const name of ["continuing_subword_prefix", "end_of_word_suffix"]) need(`model.${name}`, model[name], null, "");
  for (const name of ["fuse_unk", "byte_fallback"]) need(`model.${name}`, model[name], null, false);
  need("decoder.type", document.decoder?.type, "ByteLevel");
  const normalizers = steps("normalizer", document.normalizer, "normalizers").map(({ type }) => (need("normalizer.type", type, ...FORMS), [type]));
  const vocab = new Map(Object.entries(needObject("model.vocab", model.vocab)));
  const added = addedTokens(needArray("added_tokens", document.added_tokens ?? []), vocab, normalizers);
  const merges = mergesOf(model, vocab);
  const merged = new Set(merges.flatMap(([left, right]) => [left, right, left + right]));
  const dropped = outside(added, vocab, merged, model.ignore_merges === true);
  const contents = new Set(added.map(([content]) => content));
  const bytesOf = (token) => (contents.has(token) ? utf8.encode(token) : spelled(token));
  const tokens = [...vocab].filter(([token]) => !dropped.has(token)).sort((one, other) => one[1] - other[1]);
  for (const [token, id] of tokens) {
    if (!isId(id)) throw refused("model.vocab", `the id of ${show(token)} is not an id`);
    if (!bytesOf(token)) throw refused("model.vocab", `${show(token)} spells no bytes`);
  }
  const ids = tokens.map(([, id]) => id);
  const same = ids.findIndex((id, index) => id === ids[index - 1]);
  if (same > 0) throw refused("model.vocab", `two tokens have the id ${ids[same]}`);
  const settings = {
    added_tokens: added,
    normalizers,
    pre_tokenizers: preTokenizers(document.pre_tokenizer, published),
    requires_all_bytes: false,
    ignore_merges: model.ignore_merges === true,
  };
  const header = utf8.encode(JSON.stringify([settings, {}]));
  const bytes = tokens.map(([token]) => bytesOf(token));
  const products = differences(merges.map(([left, right]) => vocab.get(left + right)), 0);
  const parts = [
    ...[SIGNATURE, numbers([header.length]), header],
    ...[numbers([tokens.length]), numbers(differences(ids, -1).map((step) => step - 1)), numbers(bytes.map(({ length }) => length)), ...bytes],
    ...[numbers([1, merges.length]), numbers(products.map((step) => (step < 0 ? -2 * step - 1 : 2 * step)))],
    numbers(merges.map(([left]) => bytesOf(left).length)),
  ];
  const packed = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => (packed.set(part, at), at + part.length), 0);
  return packed;
}

// Writes a trained tokenizer as tokenizer.json, the file format of Hugging Face `tokenizers`.

import { WHOLE_TEXT } from "./training_patterns.js";

/**
 * Returns the text of tokenizer.json for a vocabulary of the 256 bytes and the products of merges.
 * @param {{left: number, right: number, id: number}[]} merges in the order of their ranks
 * @param {(id: number) => Uint8Array} tokenBytes
 * @param {import("./training_patterns.js").TrainingPattern} pattern
 * @param {string | null} normalization "NFC" and so on
 * @returns {string}
 */
export function trainedTokenizerJson(merges, tokenBytes, pattern, normalization) {
  const written = (id) => printableBytes(tokenBytes(id));
  const vocab = {};
  for (let byte = 0; byte < 256; byte += 1) vocab[written(byte)] = byte;
  for (const { id } of merges) vocab[written(id)] = id;
  const document = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: [],
    normalizer: normalization === null ? null : { type: normalization },
    pre_tokenizer: preTokenizer(pattern),
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab,
      merges: merges.map(({ left, right }) => [written(left), written(right)]),
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function preTokenizer({ name, oniguruma }) {
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false };
  if (name === WHOLE_TEXT) return byteLevel;
  const split = { type: "Split", pattern: { Regex: oniguruma }, behavior: "Isolated", invert: false };
  return { type: "Sequence", pretokenizers: [split, byteLevel] };
}

// GPT-2's printable characters for bytes: visible Latin-1 characters are themselves, and the others are the
// characters from U+0100 on, in their order.
function printableBytes(bytes) {
  return Array.from(bytes, (byte) => BYTE_CHARACTERS[byte]).join("");
}

export const BYTE_CHARACTERS = byteCharacters();

function byteCharacters() {
  const isVisible = (byte) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
  const characters = [];
  let others = 0;
  for (let byte = 0; byte < 256; byte += 1) {
    characters.push(String.fromCodePoint(isVisible(byte) ? byte : 0x100 + others));
    if (!isVisible(byte)) others += 1;
  }
  return characters;
}

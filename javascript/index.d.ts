/** Which special tokens a call recognises: none, all, or those with these texts. All other ones are ordinary text. */
export type SpecialChoice = "none" | "all" | string[];

/** An error with a message for people. `code` is "pattern" if a split pattern is missing or wrong. */
export class TokenizerError extends Error {
  readonly code?: string;
}

export interface EncodeOptions {
  /** The default is "none". */
  special?: SpecialChoice;
}

/** What a rank file does not hold. */
export interface RankOptions {
  /** The split patterns, in the order in which they apply. */
  patterns: string[];
  specialTokens?: Record<string, number>;
}

/** The tokens of a text, in columns. */
export interface Encoded {
  ids: Uint32Array;
  /** Where each token begins and ends, in UTF-16 code units: a part of a character has the span of the character. */
  starts: Uint32Array;
  ends: Uint32Array;
  /** The same in bytes of the text in UTF-8, exactly. */
  byteStarts: Uint32Array;
  byteEnds: Uint32Array;
  /** The sum of: 1 added token, 2 special, 4 first of its piece, 8 begins inside a character, 16 ends inside one. */
  flags: Uint8Array;
  /** The index of the first token of each piece, and where each piece begins, in bytes. */
  pieces: Uint32Array;
  pieceBytes: Uint32Array;
}

export interface TokenizerInfo {
  /** The number of ids, added tokens included. */
  vocabSize: number;
  /** The largest id + 1. */
  nextId: number;
  /** The split patterns, in the order in which they apply. */
  patterns: string[];
  /** The steps of normalisation, for people. */
  normalizers: string[];
  /** By ascending id. */
  addedTokens: { id: number; content: string; special: boolean }[];
  alphabet: "bytes" | "characters";
  /** The number of merges. */
  merges: number;
  /** The special tokens by role (bos, eos, pad, unk), as far as their names tell; empty for a tokenizer.json. */
  roles: Record<string, string>;
}

/** Each holds about three times the size of its file, in memory that `free` returns. */
export class Tokenizer {
  private constructor();
  readonly info: TokenizerInfo;
  /** The ids of a text. A lone surrogate counts as U+FFFD. Nothing is added, such as BOS. */
  encode(text: string, options?: EncodeOptions): Uint32Array;
  /** The ids with their places in the text. */
  encodeWithPlaces(text: string, options?: EncodeOptions): Encoded;
  /** The number of ids; takes less time than `encode`. */
  count(text: string, options?: EncodeOptions): number;
  /** The text of ids; bytes that are not UTF-8 become U+FFFD. */
  decode(ids: Iterable<number>): string;
  decodeBytes(ids: Iterable<number>): Uint8Array;
  /** Frees the memory. Every later call fails. */
  free(): void;
}

/** The names of the published encodings that `loadRanks` knows, such as "o200k_base". */
export const encodingNames: readonly string[];

/** The names of the split patterns that `train` knows, such as "cl100k". */
export const patternNames: readonly string[];

/**
 * Loads a rank file of tiktoken (`*.tiktoken`).
 *
 * @param encoding The name of a published encoding, or what the file does not hold.
 */
export function loadRanks(bytes: Uint8Array, encoding: string | RankOptions): Tokenizer;

/**
 * Loads a byte-level tokenizer.json of Hugging Face `tokenizers` whose split patterns are published ones. Everything else is
 * refused with an error that names the field.
 *
 * @param file The text of the file, or its bytes.
 */
export function loadTokenizerJson(file: string | Uint8Array): Tokenizer;

export interface TrainOptions {
  /** The number of ids, from 257 to 200,000: 256 bytes, the special tokens below it, and learned tokens. */
  vocabSize: number;
  /** A name of `patternNames`, or a regular expression of Rust's fancy-regex. The default is "cl100k". */
  pattern?: string;
  /** Their ids are 256 or more. */
  specialTokens?: Record<string, number>;
  /** The least count of a pair that is merged; 2 by default. */
  minFrequency?: number;
}

/** Trains on a text of at most 20 MB. */
export function train(
  text: string,
  options: TrainOptions,
): {
  tokenizer: Tokenizer;
  /** The distinct pieces of the text, the most frequent first. */
  pieces: { bytes: Uint8Array; count: number }[];
  /** For each merge the ids of both parts and of the new token, and the count of the pair. */
  merges: { left: number; right: number; id: number; count: number }[];
};

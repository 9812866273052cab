// Tests of the JavaScript package: node --test tests.mjs, with the folder that build.py made in BPE_TOKENIZER_PACKAGE.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";

const folder = process.env.BPE_TOKENIZER_PACKAGE;
const module = await import(pathToFileURL(join(folder, "index.js")));
const { encodingNames, loadRanks, loadTokenizerJson, patternNames, train, Tokenizer, TokenizerError } = module;
const { BYTE_CHARACTERS } = await import(pathToFileURL(join(folder, "tokenizer_json.js")));

/** A small tokenizer.json, with changes. */
const file = (changes = {}, model = {}) => {
  const vocab = Object.fromEntries(BYTE_CHARACTERS.map((character, byte) => [character, byte]));
  return JSON.stringify({
    added_tokens: [{ id: 258, content: "<|end|>", special: true }],
    normalizer: { type: "NFC" },
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false },
    decoder: { type: "ByteLevel" },
    model: { type: "BPE", vocab: { ...vocab, he: 256, hello: 259, "Ġhe": 257 }, merges: ["h e", ["Ġ", "he"]], ...model },
    ...changes,
  });
};
const refuses = (work, message) =>
  assert.throws(work, (error) => {
    assert.ok(error instanceof TokenizerError, String(error));
    assert.match(error.message, message);
    return true;
  });

test("ranks give ids, places, counts and texts", () => {
  const lines = Array.from({ length: 256 }, (_, byte) => `${Buffer.from([byte]).toString("base64")} ${byte}\n`);
  const bytes = new TextEncoder().encode(`${lines.join("")}aGU= 256\n`);
  const tokenizer = loadRanks(bytes, { patterns: ["\\p{L}+|\\P{L}+"], specialTokens: { "<|end|>": 257 } });
  const ids = tokenizer.encode("he é<|end|>", { special: "all" });
  assert.deepEqual([...ids], [256, 32, 195, 169, 257]);
  assert.equal(tokenizer.decode(ids), "he é<|end|>");
  assert.equal(tokenizer.decode([195]), "\ufffd");
  assert.equal(tokenizer.decode(ids.values()), "he é<|end|>");
  refuses(() => tokenizer.decode(5), /ids are an array/);
  refuses(() => tokenizer.decode(["256"]), /"256" is not an id/);
  refuses(() => tokenizer.encode("he", "all"), /options are an object/);
  refuses(() => tokenizer.encode("he", { allowedSpecial: "all" }), /no option allowedSpecial; the options are special/);
  refuses(() => tokenizer.count("he", { special: ["<|nope|>"] }), /"<\|nope\|>" is no special token/);
  refuses(() => loadRanks(bytes, { patterns: ["o200k"] }), /"o200k" is a name/);
  refuses(() => loadRanks(bytes), /pass the name of its encoding/);
  refuses(() => loadRanks(bytes, { patterns: ["."], special_tokens: {} }), /no option special_tokens/);
  refuses(() => train("low", { vocabSize: 258, pattern: "cl100" }), /unknown pattern "cl100"; use one of /);
  refuses(() => train("low"), /options are an object/);
  assert.deepEqual([...tokenizer.decodeBytes([195])], [195]);
  assert.equal(tokenizer.count("he he"), 3);
  assert.deepEqual([...tokenizer.encodeWithPlaces("he é").starts], [0, 2, 3, 3]);
  assert.equal(tokenizer.info.nextId, 258);
  refuses(() => tokenizer.decode([999]), /id 999 .* is not in the vocabulary/);
  refuses(() => tokenizer.decode([0.5]), /0.5 is not an id/);
  refuses(() => loadRanks(bytes, "o300k"), /unknown encoding "o300k"; use one of .*o200k_base/);
  tokenizer.free();
  refuses(() => tokenizer.count("a"), /was freed/);
});

test("a tokenizer.json is read as text and as bytes", () => {
  for (const tokenizer of [loadTokenizerJson(file()), loadTokenizerJson(new TextEncoder().encode(file()))]) {
    assert.deepEqual([...tokenizer.encode("he he<|end|>", { special: "all" })], [256, 257, 258]);
    assert.deepEqual([...tokenizer.encode("hello")], [256, 108, 108, 111]);
    assert.deepEqual(tokenizer.info.normalizers, ["NFC"]);
    assert.equal(tokenizer.count("e\u0301"), 2);
  }
  assert.deepEqual([...loadTokenizerJson(file({}, { ignore_merges: true })).encode("hello")], [259]);
});

test("what is not read exactly is refused by its field", () => {
  const split = (step) => ({ pre_tokenizer: { type: "Sequence", pretokenizers: [step, { type: "ByteLevel", use_regex: false }] } });
  const token = (changes) => ({ added_tokens: [{ id: 258, content: "<|end|>", special: true, ...changes }] });
  for (const [text, message] of [
    ["{", /^tokenizer.json is not JSON/],
    ["[]", /the file: must be an object/],
    [file({}, { type: "Unigram" }), /model\.type: "Unigram" is not supported, only "BPE"/],
    [file({}, { unk_token: "<unk>" }), /model\.unk_token/],
    [file({}, { merges: ["h x"] }), /model\.merges\[0\]: "h x" is not two tokens that make one/],
    [file({}, { vocab: { "語": 0 }, merges: [] }), /model\.vocab: "語" spells no bytes/],
    [file({}, { vocab: { a: 0, b: 0 }, merges: [] }), /model\.vocab: two tokens have the id 0/],
    [file({}, { vocab: { a: 0.5 }, merges: [] }), /model\.vocab: the id of "a" is not an id/],
    [file({ normalizer: { type: "Lowercase" } }), /normalizer\.type: "Lowercase" is not supported, only "NFC" or/],
    [file({ decoder: null }), /decoder\.type/],
    [file({ pre_tokenizer: { type: "Metaspace" } }), /the last pre_tokenizer: "Metaspace"/],
    [file(split({ type: "Split", pattern: { Regex: "x+" }, behavior: "Isolated" })), /pre_tokenizer\.pattern: .* is not a published pattern/],
    [file(split({ type: "Split", pattern: { String: " " }, behavior: "Removed" })), /pre_tokenizer\.behavior: "Removed"/],
    [file(split({ type: "Whitespace" })), /pre_tokenizer\.type: "Whitespace"/],
    [file(token({ id: -1 })), /added_tokens: .* needs a content and an id/],
    [file(token({ content: "he" })), /added_tokens: "he" has another id in model\.vocab/],
    [file(token({ content: "é", id: 233 })), /added_tokens: "é" (spells bytes|has another id)/],
    [file(token({ normalized: true })), /added_tokens: .* is normalized/],
    [file(token({ content: " x", rstrip: true })), /begins with white space/],
  ]) {
    refuses(() => loadTokenizerJson(text), message);
  }
  refuses(() => loadTokenizerJson(Uint8Array.of(0xff)), /is not UTF-8/);
});

test("training takes a name or a pattern", () => {
  const { tokenizer, merges } = train("low low lower", { vocabSize: 258 });
  assert.deepEqual([...tokenizer.encode("slow")], [115, 257]);
  assert.equal(merges.length, 2);
  assert.deepEqual(train("a b", { vocabSize: 258, pattern: "\\S+" }).tokenizer.info.patterns, ["\\S+"]);
  refuses(() => train("a", { vocabSize: 258, pattern: "(" }), /split pattern/);
  refuses(() => train("a", { vocabSize: 258, pattern: "deepseek-v3" }), /several patterns/);
  refuses(() => new Tokenizer(), /use loadRanks/);
  assert.ok(encodingNames.includes("o200k_base") && patternNames.includes("cl100k"));
});

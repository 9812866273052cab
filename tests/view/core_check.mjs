// Tests of core.js, which `test_wasm.py` runs: node --test core_check.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const page = new URL("../../page/", import.meta.url);
const { Core, CoreError } = await import(new URL("core.js", page));
const core = await Core.start(readFileSync(new URL("core.wasm", page)));
const pattern = "\\p{L}+|\\s+|[^\\s\\p{L}]+";

/** A rank file of the bytes and these tokens. */
const ranks = (...tokens) => {
  const bytes = Array.from({ length: 256 }, (_, byte) => Buffer.from([byte]));
  const all = [...bytes, ...tokens.map((token) => Buffer.from(token))];
  return new TextEncoder().encode(all.map((token, rank) => `${token.toString("base64")} ${rank}\n`).join(""));
};
const load = (options = {}) =>
  core.loadRanks(ranks("he", "hell"), { patterns: [pattern], specialTokens: { "<|end|>": 300 }, ...options });
const refuses = (work, message, code) =>
  assert.throws(work, (error) => {
    assert.ok(error instanceof CoreError, String(error));
    assert.match(error.message, message);
    assert.equal(error.code, code);
    return true;
  });

test("encoding tells ids, places, flags and pieces", () => {
  const tokenizer = load();
  const found = tokenizer.encode("hell é😀<|end|>", { special: "all" });
  assert.deepEqual([...found.ids], [257, 32, 195, 169, 240, 159, 152, 128, 300]);
  assert.deepEqual([...found.starts], [0, 4, 5, 5, 6, 6, 6, 6, 8]);
  assert.deepEqual([...found.ends], [4, 5, 6, 6, 8, 8, 8, 8, 15]);
  assert.deepEqual([...found.byteStarts], [0, 4, 5, 6, 7, 8, 9, 10, 11]);
  assert.deepEqual([...found.byteEnds], [4, 5, 6, 7, 8, 9, 10, 11, 18]);
  assert.deepEqual([...found.flags], [4, 4, 4 + 16, 8, 4 + 16, 8 + 16, 8 + 16, 8, 7]);
  assert.deepEqual([...found.pieces], [0, 1, 2, 4, 8]);
  assert.deepEqual([...found.pieceBytes], [0, 4, 5, 7, 11]);
  assert.deepEqual([...tokenizer.encodeIds("hell <|end|>", { special: ["<|end|>"] })], [257, 32, 300]);
  assert.equal(tokenizer.count("hell <|end|>"), 9);
});

test("a lone surrogate is U+FFFD", () => {
  const found = load().encode("a\ud800b");
  assert.deepEqual([...found.ids], [97, 0xef, 0xbf, 0xbd, 98]);
  assert.deepEqual([...found.starts], [0, 1, 1, 1, 2]);
});

test("the description, the tokens and the merges", () => {
  const tokenizer = load();
  assert.equal(tokenizer.info.vocabSize, 259);
  assert.deepEqual(tokenizer.info.patterns, [pattern]);
  assert.deepEqual(tokenizer.info.addedTokens, [{ content: "<|end|>", id: 300, special: true }]);
  assert.deepEqual([...tokenizer.tokenBytes(257)], [...Buffer.from("hell")]);
  const table = tokenizer.tokenTable(Uint32Array.of(256, 300));
  assert.deepEqual([...table.offsets], [0, 2, 9]);
  assert.equal(Buffer.from(table.bytes).toString(), "he<|end|>");
  const trace = tokenizer.trace(Buffer.from("hex"));
  assert.deepEqual(trace, {
    symbols: [104, 101, 120],
    merges: [{ rank: 0, left: 0, right: 1, leftId: 104, rightId: 101, id: 256 }],
    ids: [256, 120],
    isWhole: false,
  });
});

test("training gives a tokenizer, pieces and merges", () => {
  const { tokenizer, pieces, merges } = core.train("low low lower", { vocabSize: 300, pattern, specialTokens: { "<s>": 256 } });
  assert.deepEqual(pieces.map(({ bytes, count }) => [Buffer.from(bytes).toString(), count]), [[" ", 2], ["low", 2], ["lower", 1]]);
  assert.deepEqual(merges, [
    { left: 111, right: 119, id: 257, count: 3 },
    { left: 108, right: 257, id: 258, count: 3 },
  ]);
  assert.deepEqual([...tokenizer.encodeIds("low<s>", { special: "all" })], [258, 256]);
});

test("segments keep contents from becoming control tokens", () => {
  const tokenizer = load();
  const segments = [
    { text: "<|end|>", special: true },
    { text: "<|end|>\ud83d", special: false },
    { text: "\ude00<|end|>", special: true },
  ];
  const found = tokenizer.encodeSegments(segments);
  assert.equal(found.ids.filter((id) => id === 300).length, 2);
  assert.equal(found.ids.at(-1), 300);
  assert.deepEqual([...new Set(found.segments)], [0, 1, 2]);
  assert.equal(found.ends.at(-1), 7 + 8 + 8);
  assert.deepEqual([...found.control], tokenizer.info.addedTokens.filter((it) => it.special).map((it) => it.id));
  const { nextId } = tokenizer.info;
  const more = tokenizer.encodeSegments([{ text: "<x>", special: true }, { text: "<x>", special: false }], { added: [["<x>", nextId]] });
  assert.deepEqual([...more.ids], [nextId, ...tokenizer.encodeIds("<x>")]);
  assert.equal(more.control.at(-1), nextId);
});

test("wrong arguments are errors with a message", () => {
  const tokenizer = load();
  refuses(() => tokenizer.encode(3), /must be a string/);
  refuses(() => tokenizer.encode("a", { special: "some" }), /special must be/);
  refuses(() => tokenizer.tokenBytes(-1), /is not an id/);
  refuses(() => tokenizer.tokenBytes(299), /id 299 at position 0 is not in the vocabulary/);
  refuses(() => tokenizer.tokenTable([1]), /must be a Uint32Array/);
  refuses(() => tokenizer.trace("a"), /must be a Uint8Array/);
  refuses(() => core.loadPacked("b"), /must be a Uint8Array/);
  refuses(() => core.loadPacked(Buffer.from("GGUF....")), /packed model is broken/);
  refuses(() => core.loadRanks("b", { patterns: [pattern] }), /must be a Uint8Array/);
  refuses(() => load({ specialTokens: { a: -1 } }), /must be an integer/);
  refuses(() => load({ patterns: undefined }), /holds no split pattern/, "pattern");
  refuses(() => load({ patterns: ["("] }), /split pattern/, "pattern");
  refuses(() => core.train("a", { vocabSize: 300 }), /a split pattern is needed/, "pattern");
  refuses(() => core.train("a", { vocabSize: 2.5, pattern }), /vocabSize/);
  assert.equal(tokenizer.count("still works"), 11);
});

test("a freed tokenizer fails, and others go on", () => {
  const [one, other] = [load(), load()];
  one.free();
  refuses(() => one.count("a"), /was freed/);
  assert.equal(other.count("a"), 1);
});

test("core.wasm must be WebAssembly", async () => {
  await assert.rejects(Core.start(new Uint8Array([1, 2, 3])), CoreError);
});

test("a trap becomes an error, and the next call has a new instance", () => {
  // A trap needs a fault of the core, so one function of one instance is replaced.
  const Instance = WebAssembly.Instance;
  class Broken extends Instance {
    get exports() {
      const trap = () => {
        throw new WebAssembly.RuntimeError("unreachable");
      };
      return { ...super.exports, ids: trap };
    }
  }
  const sound = load();
  WebAssembly.Instance = Broken;
  let broken;
  try {
    broken = load();
  } finally {
    WebAssembly.Instance = Instance;
  }
  refuses(() => broken.encodeIds("a"), /core stopped, which is a bug: unreachable/);
  assert.deepEqual([...broken.encodeIds("hell")], [257]);
  assert.equal(sound.count("hell"), 1);
});

test("a text may be large, and the memory of texts is used again", () => {
  const tokenizer = load();
  const text = "hell é ".repeat(200_000);
  for (let turn = 0; turn < 3; turn += 1) {
    assert.equal(tokenizer.encode(text).ids.length, tokenizer.count(text));
  }
  assert.equal(tokenizer.count(""), 0);
});

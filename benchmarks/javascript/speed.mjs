// Encodes real text with the page's core and with tokenizers of npm, compares the ids, and prints MB/s.
//
//   node speed.mjs TEXTS VOCABULARIES [MODULES]
//
// TEXTS has the files of texts.py, VOCABULARIES cl100k_base.tiktoken and o200k_base.tiktoken, and MODULES the packages
// that npm installed. A package that is not there is left out. Each round times every side once, in turn.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Core } from "../../page/core.js";

const ROUNDS = 5;
const [texts, vocabularies, modules] = process.argv.slice(2);
if (!texts || !vocabularies) {
  console.error("usage: node speed.mjs TEXTS VOCABULARIES [MODULES]");
  process.exit(2);
}

const wasm = readFileSync(new URL("../../page/core.wasm", import.meta.url));
const core = await Core.start(wasm);
const published = JSON.parse(readFileSync(join(texts, "published.json"), "utf8"));
const require = modules && createRequire(pathToFileURL(join(resolve(modules), "package.json")));

/** The entry of an installed package; undefined if it is not installed. */
const load = async (name) => {
  if (!require) return undefined;
  try {
    return await import(pathToFileURL(require.resolve(name)));
  } catch {
    return undefined;
  }
};

/** The encoders of a vocabulary by name: functions of a text. */
const encoders = async (encoding) => {
  const bytes = new Uint8Array(readFileSync(join(vocabularies, `${encoding}.tiktoken`)));
  const ours = core.loadRanks(bytes, published.find(({ name }) => name === encoding));
  const found = {
    "Piecewise, ids": (text) => ours.encodeIds(text),
    "Piecewise, ids and places": (text) => ours.encode(text).ids,
    "Piecewise, count": (text) => ours.count(text),
  };
  const gptTokenizer = await load(`gpt-tokenizer/encoding/${encoding}`);
  if (gptTokenizer) found["gpt-tokenizer"] = (text) => gptTokenizer.encode(text, { disallowedSpecial: new Set() });
  const jsTiktoken = await load("js-tiktoken");
  if (jsTiktoken) {
    const encoder = jsTiktoken.getEncoding(encoding);
    found["js-tiktoken"] = (text) => encoder.encode(text, [], []);
  }
  const tiktoken = await load("tiktoken");
  if (tiktoken) {
    const encoder = tiktoken.get_encoding(encoding);
    found["tiktoken (WebAssembly)"] = (text) => encoder.encode(text, [], []);
  }
  const [ai, aiEncoding] = [await load("ai-tokenizer"), await load(`ai-tokenizer/encoding/${encoding}`)];
  if (ai && aiEncoding) {
    const encoder = new ai.Tokenizer(aiEncoding);
    found["ai-tokenizer"] = (text) => encoder.encode(text);
  }
  return found;
};

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Throws unless another encoder gives the same ids. */
const compare = (name, expected, ids) => {
  if (typeof ids === "number") {
    if (ids !== expected.length) throw new Error(`${name} counts ${ids} ids, not ${expected.length}`);
    return;
  }
  const at = expected.findIndex((id, index) => id !== ids[index]);
  if (ids.length !== expected.length || at >= 0) console.log(`  ${name} has other ids, from index ${at} on`);
};

const files = readdirSync(texts).filter((name) => name.endsWith(".txt"));
for (const encoding of ["cl100k_base", "o200k_base"]) {
  if (!existsSync(join(vocabularies, `${encoding}.tiktoken`))) continue;
  const sides = Object.entries(await encoders(encoding));
  for (const file of files) {
    const text = readFileSync(join(texts, file), "utf8");
    const megabytes = Buffer.byteLength(text) / 1e6;
    console.log(`${encoding}, ${basename(file, ".txt")}: ${megabytes.toFixed(1)} MB`);
    const expected = sides[0][1](text);
    for (const [name, encode] of sides) compare(name, expected, encode(text));
    const rates = new Map(sides.map(([name]) => [name, []]));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [name, encode] of sides) {
        const begin = performance.now();
        encode(text);
        rates.get(name).push((megabytes * 1000) / (performance.now() - begin));
      }
    }
    const ours = median(rates.get(sides[0][0]));
    for (const [name, values] of rates) {
      const rate = median(values);
      const ratio = name.startsWith("Piecewise") ? "" : `   Piecewise is ${(ours / rate).toFixed(1)} times as fast`;
      console.log(`  ${name.padEnd(28)}${rate.toFixed(1).padStart(8)} MB/s${ratio}`);
    }
  }
}

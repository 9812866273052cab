// Steps through the merges of pieces. Reads JSON from the standard input: {directory, model, pieces: [hex]}, where
// `model` is a packed model in base64. Prints
// for each piece its states: the symbols as hex, and the possible merges [left, right, rank], the lowest rank first.

import { readFileSync } from "node:fs";

const { directory, model, pieces } = JSON.parse(readFileSync(0, "utf8"));
const { Core } = await import(`${directory}/core.js`);
const { MergeSteps, PairRanks } = await import(`${directory}/merge_steps.js`);

const core = await Core.start(readFileSync(`${directory}/core.wasm`));
const loaded = core.loadPacked(new Uint8Array(Buffer.from(model, "base64")));
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const ranks = new PairRanks(async (bytes) => loaded.trace(bytes));

const answers = [];
for (const each of pieces) {
  const piece = Uint8Array.from(Buffer.from(each, "hex"));
  const steps = new MergeSteps(loaded.trace(piece), piece, (id) => loaded.tokenBytes(id));
  const states = [];
  for (let step = 0; step <= steps.length; step += 1) {
    const pairs = steps.pairs(step);
    for (const pair of pairs) await ranks.find(pair);
    const possible = pairs.filter((pair) => ranks.get(pair) !== null);
    const candidates = possible.map((pair) => [hex(pair.left.bytes), hex(pair.right.bytes), ranks.get(pair)]);
    candidates.sort((a, b) => a[2] - b[2]);
    states.push({ symbols: steps.symbols(step).map(({ bytes }) => hex(bytes)), candidates });
    for (const node of steps.symbols(step)) {
      const root = steps.roots[steps.rootIndex(node)];
      if (root.start > node.start || root.end < node.end) throw new Error("a node is not a part of its root");
    }
  }
  answers.push({ isExact: steps.isExact, states });
}
console.log(JSON.stringify(answers));

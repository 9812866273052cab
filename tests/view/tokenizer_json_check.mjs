// Writes trained tokenizers as tokenizer.json. Reads JSON from the standard input: {module, published, trainings:
// [{pattern, normalization, merges: [[left, right, id]]}]}. Prints {patterns, files} as JSON.

import { readFileSync } from "node:fs";
import { dirname } from "node:path";

const { module, published, trainings } = JSON.parse(readFileSync(0, "utf8"));
const { trainedTokenizerJson } = await import(module);
const { TrainingReplay } = await import(`${dirname(module)}/training_replay.js`);
const { trainingPatterns } = await import(`${dirname(module)}/training_patterns.js`);

const patterns = trainingPatterns(published);
const files = trainings.map(({ pattern, normalization, merges }) => {
  const learned = merges.map(([left, right, id]) => ({ left, right, id, count: 0 }));
  const chosen = patterns.find(({ name }) => name === pattern);
  const replay = new TrainingReplay([], learned);
  return trainedTokenizerJson(learned, (id) => replay.tokenBytes(id), chosen, normalization);
});
console.log(JSON.stringify({ patterns, files }));

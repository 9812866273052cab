// The split patterns of the training mode.

/**
 * @typedef {{name: string, label: string, description: string, pattern: string, oniguruma: string}} TrainingPattern
 *   `pattern` is in the core's dialect, `oniguruma` the same for a tokenizer.json file.
 */

/** The name of the pattern that leaves a text whole. */
export const WHOLE_TEXT = "none";

const PUBLISHED = [
  ["gpt2", "GPT-2", "Words, numbers and punctuation are pieces, each with the space in front of it."],
  ["cl100k", "GPT-4 (cl100k)", "As GPT-2, with at most three digits in a piece and line ends apart."],
  ["o200k", "GPT-4o (o200k)", "As GPT-4, and a capital letter inside a word begins a new piece."],
];

/**
 * The patterns to choose from.
 * @param {{name: string, patterns: string[]}[]} published the package's patterns, which the page's data holds
 * @returns {TrainingPattern[]}
 */
export function trainingPatterns(published) {
  const known = new Map(published.map(({ name, patterns }) => [name, patterns[0]]));
  const named = PUBLISHED.filter(([name]) => known.has(name)).map(([name, label, description]) => {
    const pattern = known.get(name);
    return { name, label, description, pattern, oniguruma: toOniguruma(pattern) };
  });
  const words = String.raw` ?\S+|\s+(?!\S)|\s+`;
  const whole = String.raw`[\s\S]+`;
  return [
    ...named,
    { name: "words", label: "Words only", description: "White space separates pieces. Punctuation stays with its word.", pattern: words, oniguruma: words },
    { name: WHOLE_TEXT, label: "None", description: "The whole text is one piece, so tokens may cross words and lines.", pattern: whole, oniguruma: whole },
  ];
}

// In Oniguruma `{1,3}+` repeats a repetition, and `$` is the end of a line. tests/view/test_training_replay.py
// compares the results with the package.
function toOniguruma(pattern) {
  return pattern.replace(String.raw`\p{N}{1,3}+`, String.raw`(?>\p{N}{1,3})`).replace(/\$(?=\||$)/, String.raw`\z`);
}

// The training mode: a text, its split into pieces, and the merges that byte-pair encoding learns from it.

import { createCompressionCurve } from "./compression_curve.js";
import { isAbort } from "./core_client.js";
import { countNoun, downloadFile, formatNumber, make, makeSelect } from "./dom.js";
import { textButton } from "./icons.js";
import { createPairTable } from "./pair_table.js";
import { spokenToken } from "./printable.js";
import { createStepControls } from "./step_controls.js";
import { trainedTokenizerJson } from "./tokenizer_json.js";
import { trainingPatterns } from "./training_patterns.js";
import { createTrainingPieces } from "./training_pieces.js";
import { TrainingReplay } from "./training_replay.js";
import { TRAINING_SAMPLES } from "./training_samples.js";
import { createTrainingVocabulary } from "./training_vocabulary.js";

const [BYTES, DEFAULT_SIZE, MAX_SIZE] = [256, 512, 20_256];
const SIZES = [300, 512, 1_256, 4_352];
// The replay keeps every piece in memory, and its drawing must follow a slider.
const MAX_TEXT = 1_000_000;
// A longer text is not a part of a shared link.
const MAX_LINK_TEXT = 20_000;
const SAVE_DELAY = 300;

/**
 * Makes the training mode.
 * @param {object} context what app.js gives to modes and panels
 * @returns {{element: HTMLElement, enter: () => void, leave: () => void}}
 */
export function createTrainingMode(context) {
  const { announce, chip, client, store, tokenizers } = context;
  const patterns = trainingPatterns(context.data?.patterns ?? []);
  /** The latest training: its key, replay, pattern, and its name if the page uses it. */
  let trained = null;
  let [isEntered, saveTimer, savedState, calls] = [false, 0, null, 0];
  /** The chip of each token: most are drawn many times. */
  let chips = new Map();

  // The settings.
  const text = make("textarea", {
    class: "field training-text", id: "training-text", rows: 5, spellcheck: "false", dir: "auto", oninput: () => settingsChanged(),
  });
  const samples = [["", "Samples…"], ...TRAINING_SAMPLES.map(({ name }, index) => [index, name])];
  const sample = makeSelect({ class: "select small", "aria-label": "Sample text", onchange: () => chooseSample() }, samples);
  const pattern = makeSelect({
    class: "select", id: "training-pattern", "aria-describedby": "training-pattern-note", onchange: () => settingsChanged(),
  }, patterns.map(({ name, label }) => [name, label]));
  const patternNote = make("p", { class: "merges-note", id: "training-pattern-note" });
  const size = make("input", {
    class: "field number training-size", id: "training-size", inputmode: "numeric", autocomplete: "off", "aria-describedby": "training-size-note",
    oninput: () => settingsChanged(),
  });
  const sizes = make("div", { class: "training-sizes" }, ...SIZES.map((each) => make("button", {
    type: "button", class: "button small", "aria-label": `Vocabulary size ${each}`, onclick: () => chooseSize(each),
  }, formatNumber(each))));
  const sizeNote = make("p", { class: "merges-note number", id: "training-size-note" });
  const trainButton = make("button", { class: "button primary training-start", type: "submit" }, "Train");
  const problem = make("p", { class: "problem", role: "alert" });
  const settings = make("form", { class: "panel training-settings", "aria-label": "Training", onsubmit: (event) => {
    event.preventDefault();
    void train(0, true);
  } },
  make("div", { class: "panel-heading" }, make("h2", { class: "panel-title" }, "Learn a vocabulary"), sample),
  make("div", { class: "panel-body training-fields" },
    make("div", {}, make("label", { class: "training-label", for: "training-text" }, "Text to learn from"), text),
    make("div", {}, make("label", { class: "training-label", for: "training-pattern" }, "Split pattern"), pattern, patternNote),
    make("div", {}, make("label", { class: "training-label", for: "training-size" }, "Vocabulary size"),
      make("div", { class: "training-size-row" }, size, sizes), sizeNote),
    problem, trainButton));

  // The steps.
  const controls = createStepControls({ label: "Merges of the training", announce, show: (step, before) => draw(step, before) });
  const sentence = make("p", { class: "training-sentence" });
  const use = textButton("check", "Use tokenizer", () => void useTokenizer(), { title: "Use the tokenizer with all merges in the other modes" });
  const download = textButton("download", "Download", () => downloadTokenizer(), { title: "Download the tokenizer with all merges as tokenizer.json" });
  const stage = make("section", { class: "panel training-stage", "aria-label": "Steps of the training" }, controls.element,
    sentence);
  const table = createPairTable(tokenChip);
  const curve = createCompressionCurve((step) => controls.go(step));
  const vocabulary = createTrainingVocabulary(tokenChip, (step) => controls.go(step), make("div", { class: "panel-actions" }, use, download));
  const pieces = createTrainingPieces(tokenChip);
  const views = make("div", { class: "training-views" }, ...[table, curve, vocabulary, pieces].map((view) => {
    view.element.classList.add("panel");
    return view.element;
  }));
  const result = make("div", { class: "training-result", hidden: true }, stage, views);
  const layout = make("div", { class: "training-layout" }, settings, result);
  const element = make("div", { class: "training" }, layout);
  result.addEventListener("keydown", (event) => {
    if (!event.target.closest(".training-scroller, .segments")) controls.press(event);
  });

  readState(store.get().training);
  store.subscribe((state, before) => {
    if (state.training !== before.training && state.training !== savedState) {
      readState(state.training);
      if (isEntered) void train(stepOf(state.training), false);
      else discard();
    }
    if (state.showsInvisible !== before.showsInvisible && trained) {
      for (const view of [table, vocabulary, pieces]) view.reset();
      chips = new Map();
      drawViews(0);
    }
  });

  function enter() {
    isEntered = true;
    if (trained === null) void train(stepOf(store.get().training), false);
  }

  function leave() {
    isEntered = false;
    controls.pause();
  }

  // A state may come from a stranger's link.
  function readState(state) {
    const isKnown = (name) => patterns.some((each) => each.name === name);
    text.value = typeof state?.text === "string" ? state.text.slice(0, MAX_TEXT) : TRAINING_SAMPLES[0].text;
    pattern.value = isKnown(state?.pattern) ? state.pattern : patterns[0].name;
    size.value = String(Number.isInteger(state?.size) ? Math.min(Math.max(state.size, BYTES + 1), MAX_SIZE) : DEFAULT_SIZE);
    writeNotes();
  }

  function saveState() {
    clearTimeout(saveTimer);
    saveTimer = setTimeout(() => {
      const state = { pattern: trained.pattern.name, size: trained.size, step: controls.step() };
      if (trained.text !== TRAINING_SAMPLES[0].text && trained.text.length <= MAX_LINK_TEXT) state.text = trained.text;
      savedState = state;
      store.set({ training: state });
    }, SAVE_DELAY);
  }

  function chooseSample() {
    if (sample.value === "") return;
    text.value = TRAINING_SAMPLES[Number(sample.value)].text;
    sample.value = "";
    void train(0, true);
  }

  function chooseSize(wanted) {
    size.value = String(wanted);
    void train(0, true);
  }

  function settingsChanged() {
    problem.textContent = "";
    writeNotes();
  }

  function writeNotes() {
    patternNote.textContent = chosenPattern().description;
    const wanted = vocabularySize();
    sizeNote.textContent = wanted === null
      ? `A whole number from ${formatNumber(BYTES + 1)} to ${formatNumber(MAX_SIZE)}.`
      : `The 256 bytes and up to ${countNoun(wanted - BYTES, "merge")}.`;
    for (const button of sizes.children) button.setAttribute("aria-pressed", String(button.textContent === formatNumber(wanted ?? 0)));
  }

  function chosenPattern() {
    return patterns.find(({ name }) => name === pattern.value);
  }

  /** The number in the field; null if it is not one of the possible sizes. */
  function vocabularySize() {
    const written = size.value.replaceAll(/[\s,]/g, "");
    const wanted = Number(written);
    return /^\d+$/.test(written) && wanted > BYTES && wanted <= MAX_SIZE ? wanted : null;
  }

  function refusal() {
    if (text.value === "") return "Write or paste a text to learn from.";
    if (text.value.length > MAX_TEXT) {
      return `The text has ${countNoun(text.value.length, "character")}. This page trains on up to ${formatNumber(MAX_TEXT)}; the Python package takes any number.`;
    }
    return vocabularySize() === null ? `The vocabulary size must be a whole number from ${BYTES + 1} to ${MAX_SIZE}.` : "";
  }

  async function train(step, isAsked) {
    writeNotes();
    problem.textContent = refusal();
    if (problem.textContent) return;
    calls += 1;
    const call = calls;
    const settingsOf = { text: text.value, pattern: chosenPattern(), size: vocabularySize() };
    controls.pause();
    trainButton.setAttribute("aria-busy", "true");
    trainButton.textContent = "Training…";
    try {
      const options = { vocabSize: settingsOf.size, pattern: settingsOf.pattern.pattern };
      const { key, info, pieces: counted, merges } = await client.train(settingsOf.text, { ...options, latest: "training" });
      const replay = await TrainingReplay.create(counted, merges);
      if (call !== calls) {
        void client.unload(key);
        return;
      }
      discard();
      trained = { ...settingsOf, options, key, info, name: null, replay };
      showTraining(step);
      if (isAsked) announce(`Learned ${countNoun(merges.length, "merge")}.`);
    } catch (error) {
      if (call === calls && !isAbort(error)) problem.textContent = `The training failed: ${error.message}`;
    } finally {
      if (call === calls) {
        trainButton.removeAttribute("aria-busy");
        trainButton.textContent = "Train";
      }
    }
  }

  /** Forgets a training. The page may go on to use its tokenizer. */
  function discard() {
    clearTimeout(saveTimer);
    if (trained && trained.name === null) void client.unload(trained.key);
    trained = null;
  }

  function showTraining(step) {
    const { replay } = trained;
    result.hidden = false;
    for (const view of [table, vocabulary, pieces]) view.reset();
    chips = new Map();
    const first = Math.min(Math.max(step, 0), replay.length);
    controls.reset(replay.length, first);
    replay.go(first);
    curve.reset(replay);
    drawViews(0);
  }

  function draw(step, before) {
    const { replay } = trained;
    replay.go(step);
    drawViews(step === before + 1 ? controls.motion() : 0);
    return spokenMerge(replay);
  }

  function drawViews(motion) {
    const { replay } = trained;
    const moving = motion > 0 ? [table, vocabulary, pieces] : [];
    // All places are read at once, so the browser lays out the page twice and not six times.
    const places = moving.map((view) => view.places());
    writeSentence();
    for (const view of [table, vocabulary, pieces]) view.draw(replay);
    curve.draw(replay.step);
    const moves = moving.map((view, index) => view.moves(places[index]));
    for (const move of moves) move(motion);
    saveState();
  }

  function writeSentence() {
    const { replay, size: wanted } = trained;
    const end = () => (replay.length < wanted - BYTES
      ? "Training ends: no pair occurs twice."
      : `Training ends: the vocabulary has ${countNoun(wanted, "id")}.`);
    sentence.replaceChildren();
    if (replay.step === 0) {
      sentence.append(replay.length ? "Every piece begins as its bytes. The first merge joins the most frequent pair of neighbours." : end());
      return;
    }
    const { left, right, id, count } = replay.merges[replay.step - 1];
    sentence.append(make("b", {}, `Merge ${formatNumber(replay.step)}`), " joins ", tokenChip(left), " and ", tokenChip(right), " to ", tokenChip(id),
      make("span", { class: "number" }, `, ${countNoun(count, "occurrence")}, id ${id}.`));
    if (replay.step === replay.length) sentence.append(` ${end()}`);
  }

  function tokenChip(id) {
    if (!chips.has(id)) chips.set(id, makeChip(id));
    return chips.get(id).cloneNode(true);
  }

  function makeChip(id) {
    const made = chip({ bytes: trained.replay.tokenBytes(id), colour: id < BYTES ? 0 : id - BYTES });
    if (id < BYTES) made.classList.add("is-byte");
    return made;
  }

  async function useTokenizer() {
    const { key, info, text: learned, options, pattern: { label } } = trained;
    trained.name ??= tokenizers.freeName(`trained, ${label}, ${formatNumber(info.vocabSize)} ids`);
    const { name } = trained;
    tokenizers.add({ key, name, info }, { training: [learned, options] });
    await tokenizers.choose(0, name);
    store.set({ mode: "text" });
    announce(`${name} is the tokenizer of the page.`);
  }

  function downloadTokenizer() {
    const { replay, pattern: chosen } = trained;
    const json = trainedTokenizerJson(replay.merges, (id) => replay.tokenBytes(id), chosen, null);
    downloadFile("tokenizer.json", json, "application/json");
  }

  return { element, enter, leave };
}

function stepOf(state) {
  return Number.isInteger(state?.step) ? state.step : 0;
}

function spokenMerge(replay) {
  if (replay.step === 0) return "No merge yet: every piece is its bytes.";
  const { left, right, id, count } = replay.merges[replay.step - 1];
  const spoken = (token) => spokenToken(replay.tokenBytes(token));
  return `Merge ${replay.step}: ${spoken(left)} and ${spoken(right)} join to ${spoken(id)}, ${countNoun(count, "occurrence")}. `
    + `The text has ${countNoun(replay.tokens, "token")}.`;
}

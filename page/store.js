/** The state of the page, which a shared link restores. */

import { isObject } from "./link.js";

/**
 * `tokenizers` are names: the first is shown, the second is compared with it. `training` and `chat` belong to
 * their modes; `sentences` are those whose languages are compared. `sources` tell the hash of each tokenizer of a link, and how it was trained. `price` is in dollars for a million tokens.
 */
export const INITIAL_STATE = {
  mode: "text",
  text: "",
  tokenizers: [],
  showsInvisible: true,
  showsIds: false,
  readsSpecial: false,
  price: 1,
  scheme: "auto",
  training: null,
  chat: null,
  sentences: null,
  sources: null,
};

// The reader's own preferences are kept from visit to visit; texts never are.
const KEPT = ["showsInvisible", "showsIds", "price", "scheme"];
// The largest vocabulary that a link may ask the page to train.
const MAX_TRAINED = 100_000;
const STORAGE_KEY = "piecewise";

export class Store {
  #state;
  #subscribers = new Set();

  /** @param {object} state */
  constructor(state) {
    this.#state = Object.freeze({ ...state });
  }

  get() {
    return this.#state;
  }

  /** Changes the fields that a patch holds, and tells the subscribers the new and the old state. */
  set(patch) {
    const before = this.#state;
    if (Object.keys(patch).every((name) => Object.is(before[name], patch[name]))) return;
    this.#state = Object.freeze({ ...before, ...patch });
    if (KEPT.some((name) => name in patch)) keepPreferences(this.#state);
    for (const subscriber of this.#subscribers) subscriber(this.#state, before);
  }

  /** @param {(state: object, before: object) => void} subscriber */
  subscribe(subscriber) {
    this.#subscribers.add(subscriber);
  }

  /** Calls a function now and after each change, with the new and the old state. */
  follow(subscriber) {
    this.subscribe(subscriber);
    subscriber(this.#state, this.#state);
  }
}

/**
 * Takes the fields of a state from a value that a stranger may have written: only known ones of the right type.
 * @param {unknown} value
 * @returns {object} a patch
 */
export function checkedState(value) {
  if (!isObject(value)) return {};
  const patch = {};
  const take = (name, isRight) => {
    if (Object.hasOwn(value, name) && isRight(value[name])) patch[name] = value[name];
  };
  const isBoolean = (each) => typeof each === "boolean";
  take("mode", (each) => ["text", "all", "training", "chat"].includes(each));
  for (const name of ["text", "sentences"]) take(name, (each) => typeof each === "string");
  take(
    "tokenizers",
    (each) => Array.isArray(each) && each.length <= 2 && each.every((name) => typeof name === "string"),
  );
  for (const name of ["showsInvisible", "showsIds", "readsSpecial"]) take(name, isBoolean);
  take("price", (each) => typeof each === "number" && each >= 0 && each <= 1e6);
  take("scheme", (each) => ["auto", "light", "dark"].includes(each));
  for (const name of ["training", "chat"]) take(name, (each) => each === null || isObject(each));
  if (isObject(value.sources)) {
    patch.sources = Object.fromEntries(Object.entries(value.sources).map(([name, source]) => [name, checkedSource(source)]));
  }
  return patch;
}

/** The hash of a tokenizer and its training, as far as they have the right types. */
function checkedSource(source) {
  const [text, options] = Array.isArray(source?.training) ? source.training : [];
  const { vocabSize, pattern } = isObject(options) ? options : {};
  const isTraining = typeof text === "string" && typeof pattern === "string" && Number.isInteger(vocabSize) && vocabSize <= MAX_TRAINED;
  return {
    hash: typeof source?.hash === "string" ? source.hash : null,
    training: isTraining ? [text, { vocabSize, pattern }] : null,
  };
}

/** Returns the preferences of an earlier visit. A browser may refuse storage to files and in private windows. */
export function keptPreferences() {
  try {
    const kept = checkedState(JSON.parse(localStorage.getItem(STORAGE_KEY) || "{}"));
    return Object.fromEntries(KEPT.filter((name) => name in kept).map((name) => [name, kept[name]]));
  } catch {
    return {};
  }
}

function keepPreferences(state) {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(Object.fromEntries(KEPT.map((name) => [name, state[name]]))));
  } catch {
    // Without storage the page forgets them, which is all that happens.
  }
}

/** The tokenizers that the page has or can get: embedded, from files, trained, or from its local server. */

import { toBase64 } from "./base64.js";
import { EXAMPLES } from "./examples.js";
import { LANGUAGES } from "./languages.js";

// The text whose ids tell tokenizers of one name apart.
const PROBE = [...EXAMPLES, ...LANGUAGES].map(({ text }) => text).join("\n");

/** What stops a tokenizer from loading; the message is for people. `name` is a published name to get a file for. */
export class TokenizerError extends Error {
  constructor(message, { name = null, needsPattern = false } = {}) {
    super(message);
    this.published = name;
    this.needsPattern = needsPattern;
  }
}

// Files that belong to a tokenizer, and are none.
const SIDE_FILE =
  /(^|[-_.])(merges\.txt|vocab\.bpe|(tokenizer|generation)_config\.json|special_tokens_map\.json|added_tokens\.json|chat_template\.\w+)$/i;
const TOKENIZER_FILE = /\.(json|tiktoken|model|gguf|tekken)$/i;
// The first line of a rank file: base64, in groups of four characters, and a number.
const RANK_FILE = /^(?=(\S{4})+ )[A-Za-z0-9+/]+=* \d+\s/;
// As in server.py.
const MAX_BYTES = 200_000_000;
const OTHER_FILES = "Other files need the local server: bpe-tokenizer view.";

/** The tokenizer.json of a vocabulary and merges in two files, with GPT-2's byte-level steps. */
function withMerges(vocab, merges) {
  const lines = merges.split(/\r?\n/).filter((line, at) => line !== "" && !(at === 0 && line.startsWith("#version")));
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, use_regex: true };
  return JSON.stringify({ model: { type: "BPE", vocab: JSON.parse(vocab), merges: lines }, pre_tokenizer: byteLevel, decoder: { type: "ByteLevel" } });
}

/** Whether a file is one of a tokenizer by its name; other files are texts. */
export function isTokenizerFile(name) {
  return TOKENIZER_FILE.test(name) || SIDE_FILE.test(name);
}

/**
 * Groups files into tokenizers. The first of a group is the tokenizer, and the files beside it follow.
 * @param {File[]} files
 * @returns {File[][]}
 */
export function groupFiles(files) {
  const beside = files.filter((file) => SIDE_FILE.test(file.name));
  const groups = files.filter((file) => !beside.includes(file)).map((file) => [file, ...beside]);
  return groups.length === 0 && beside.length > 0 ? [beside] : groups;
}

/**
 * What a tokenizer is made of; one of these.
 *
 * @typedef {object} Origin
 * @property {string | Uint8Array} [packed] a packed model of the package, as gzip
 * @property {[string, object]} [ranks] a rank file, and what it does not hold
 * @property {string} [json] a byte-level tokenizer.json
 * @property {[string, object]} [training] a text, and the options of the training
 */

export class Tokenizers {
  #client;
  #store;
  #entries = new Map();
  #subscribers = new Set();
  #data;

  /**
   * @param {import("./core_client.js").CoreClient} client
   * @param {import("./store.js").Store} store
   * @param {object} data the page's data
   * @param {(Origin & {name: string})[]} embedded
   */
  constructor(client, store, data, embedded) {
    this.#client = client;
    this.#store = store;
    this.#data = data;
    for (const { name, ...origin } of embedded) {
      const chat = Object.hasOwn(data.ownChats, name) ? name : null;
      this.#entries.set(name, { name, source: "embedded", loading: null, loaded: null, origin, chat });
    }
    store.subscribe((state, before) => {
      if (state.tokenizers !== before.tokenizers) this.#tell();
    });
  }

  /** Every name that the page has or can ask its server for, with `source` and `loaded`. */
  choices() {
    const own = [...this.#entries.values()].map(({ name, source, loaded }) => ({ name, source, loaded }));
    const published = this.#data.names
      .filter(({ name }) => !this.#entries.has(name))
      .map((each) => ({ ...each, source: "published", loaded: null }));
    return [...own, ...published];
  }

  /** The tokenizer in a place, 0 or 1; null if there is none, or it is still loading. */
  at(place) {
    return this.#entries.get(this.#store.get().tokenizers[place])?.loaded ?? null;
  }

  selected() {
    return this.at(0);
  }

  /** @param {() => void} subscriber called when the list or the choice changes */
  subscribe(subscriber) {
    this.#subscribers.add(subscriber);
  }

  /** Adds a loaded tokenizer; one of the same name takes its place. */
  add({ key, name, info }, origin, source = "trained", chat = null) {
    this.#entries.set(name, { name, source, loading: null, loaded: { key, name, info }, origin, chat });
    this.#tell();
  }

  /** Adds a tokenizer that a link describes, unless the page has one of its name. */
  addTraining(name, training) {
    if (!this.#entries.has(name)) this.#entries.set(name, { name, source: "trained", loading: null, loaded: null, origin: { training } });
  }

  /** A hash of the tokenizer of a name. */
  async fingerprint(name) {
    return this.#client.fingerprint((await this.load(name)).key, PROBE);
  }

  /** What the tokenizer of a name is made of, if the page trained it. */
  training(name) {
    return this.#entries.get(name)?.origin.training;
  }

  /** What all tokenizers of the page are made of, as a page embeds them. */
  origins() {
    return [...this.#entries.values()].map(({ name, origin }) =>
      origin.packed instanceof Uint8Array ? { name, packed: toBase64(origin.packed) } : { name, ...origin }
    );
  }

  /**
   * Loads the tokenizer of a name and puts it in a place; null empties the second place.
   * @param {0 | 1} place
   * @param {string | null} name
   * @throws {TokenizerError}
   */
  async choose(place, name) {
    if (name !== null) await this.load(name);
    const names = [...this.#store.get().tokenizers];
    if (name === null) names.splice(place, 1);
    else names[place] = name;
    this.#store.set({ tokenizers: names });
  }

  /**
   * Loads files as a tokenizer: ranks here, others on the local server.
   * @param {File[]} files of one tokenizer
   * @param {{patterns?: string[], published?: string}} [options] `published` is the published name that a rank file is
   *     for, as several share one
   * @returns {Promise<string>} its name
   * @throws {TokenizerError}
   */
  async addFiles(files, options = {}) {
    const [file] = files;
    if (files.reduce((sum, { size }) => sum + size, 0) > MAX_BYTES) {
      throw new TokenizerError(`${file.name}: this page reads at most ${MAX_BYTES / 1e6} MB. ${OTHER_FILES}`);
    }
    const isRanks = /\.tiktoken$/i.test(file.name) || RANK_FILE.test(await file.slice(0, 1000).text());
    const read = () => (this.#data.server ? this.#readOnServer(files) : this.#readJson(files));
    const { origin, chat, ...loaded } = isRanks ? await this.#readRanks(file, options) : await read();
    const stem = options.published ?? (file.name.replace(/([-_.]?vocab)?\.(json|tiktoken|model|gguf)$/i, "") || file.name);
    const name = this.freeName(stem);
    this.add({ ...loaded, name }, origin, "file", chat);
    return name;
  }

  async #readRanks(file, { published = file.name.split(".")[0], patterns }) {
    const known = this.#data.names.find(({ name }) => name === published);
    const options = { patterns: patterns ?? known?.patterns, specialTokens: known?.specialTokens };
    try {
      const origin = { ranks: [await file.text(), options] };
      return { ...await this.#load(origin), origin };
    } catch (error) {
      const needsPattern = error.code === "pattern";
      const message = needsPattern ? `${file.name} has no split pattern.` : `${file.name}: ${error.message}`;
      throw new TokenizerError(message, { needsPattern });
    }
  }

  /** Without the local server: a byte-level tokenizer.json, or vocab.json with merges.txt as GPT-2's. */
  async #readJson(files) {
    const [file] = files;
    const merges = files.find(({ name }) => /merges\.txt$|vocab\.bpe$/i.test(name));
    try {
      if (!/\.json$/i.test(file.name)) throw new Error("this page reads rank files of tiktoken and tokenizer.json");
      const text = await file.text();
      const whole = merges === undefined ? text : withMerges(text, await merges.text());
      const origin = { json: whole };
      return { ...await this.#load(origin), origin };
    } catch (error) {
      throw new TokenizerError(`${file.name}: ${error.message.replace("; the Python package reads more files", "")}. ${OTHER_FILES}`);
    }
  }

  async #readOnServer(files) {
    const [{ name }] = files;
    const query = new URLSearchParams(files.flatMap((file) => [["name", file.name], ["size", file.size]]));
    const { packed, chat } = await this.#requestPacked(name, `files?${query}`, { method: "POST", body: new Blob(files) });
    try {
      return { ...await this.#load({ packed }), origin: { packed }, chat };
    } catch (error) {
      throw new TokenizerError(`${name}: ${error.message}`);
    }
  }

  async #requestPacked(name, path, options) {
    const answer = await this.#request(name, path, options);
    const chat = answer.headers.get("X-Chat");
    return { packed: new Uint8Array(await answer.arrayBuffer()), chat: chat && decodeURIComponent(chat) };
  }

  /** Whether the model of a name has a chat template of its own, which only the local server can run. */
  hasChat(name) {
    return Boolean(this.#entries.get(name)?.chat);
  }

  /** The conversation in the model's own template. */
  async renderChat(name, conversation) {
    const query = new URLSearchParams({ name: this.#entries.get(name).chat });
    const answer = await this.#request(name, `chat?${query}`, { method: "POST", body: JSON.stringify(conversation) });
    return answer.json();
  }

  /** The answer of the local server. `name` begins the message of an error. */
  async #request(name, path, options) {
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new TokenizerError(`${name}: the local server does not answer. Is bpe-tokenizer view still running?`, { name });
    }
    if (!answer.ok) {
      const message = await answer.text();
      throw new TokenizerError(message.startsWith(name) ? message : `${name}: ${message}`, { name });
    }
    return answer;
  }

  /** The name, with a number if another tokenizer has it. */
  freeName(name) {
    if (!this.#entries.has(name)) return name;
    let number = 2;
    while (this.#entries.has(`${name} ${number}`)) number += 1;
    return `${name} ${number}`;
  }

  /**
   * Loads the tokenizer of a name, unless it is loaded.
   * @throws {TokenizerError}
   */
  async load(name) {
    const entry = this.#entries.get(name) ?? await this.#fetched(name);
    if (entry.loaded) return entry.loaded;
    entry.loading ??= this.#load(entry.origin).then(
      ({ key, info }) => {
        entry.loaded = { key, info, name };
        this.#tell();
      },
      (error) => {
        entry.loading = null;
        throw new TokenizerError(`${name}: ${error.message}`);
      },
    );
    await entry.loading;
    return entry.loaded;
  }

  /** @param {Origin} origin */
  #load({ packed, ranks, json, training }) {
    if (ranks) return this.#client.loadRanks(new TextEncoder().encode(ranks[0]), ranks[1]);
    if (json) return this.#client.loadTokenizerJson(json, this.#data.filePatterns);
    return training ? this.#client.train(...training) : this.#client.loadPacked(packed);
  }

  /** The special tokens that a tokenizer recognises in texts, as the switch and the page's data say. */
  special({ info }) {
    const { special } = this.#data;
    if (!this.#store.get().readsSpecial) return "none";
    if (!Array.isArray(special)) return "all";
    return info.addedTokens.map((token) => token.content).filter((content) => special.includes(content));
  }

  /** Gets a published tokenizer from the local server. A page without one asks for its file. */
  async #fetched(name) {
    const published = this.#data.names.find((each) => each.name === name);
    if (!this.#data.server) {
      const repository = name.startsWith("hf:") ? `the tokenizer.json of huggingface.co/${name.slice(3)}` : "its file";
      const what = `Drop ${published?.file ?? repository} here to use it.`;
      throw new TokenizerError(`This page does not contain ${name}, and it requests nothing. ${what}`, { name });
    }
    const { packed, chat } = await this.#requestPacked(name, `tokenizers/${encodeURIComponent(name)}`);
    const entry = { name, source: "published", loading: null, loaded: null, origin: { packed }, chat };
    this.#entries.set(name, entry);
    return entry;
  }

  #tell() {
    for (const subscriber of this.#subscribers) subscriber();
  }
}

/** The tokenizers that the page has or can get: embedded, from files, trained, or from its local server. */

/** What stops a tokenizer from loading; the message is for people. `name` is a published name to get a file for. */
export class TokenizerError extends Error {
  constructor(message, { name = null, needsPattern = false } = {}) {
    super(message);
    this.published = name;
    this.needsPattern = needsPattern;
  }
}

const TOKENIZER_FILE = /(\.json|\.tiktoken|\.model|\.bpe|\.tekken|(^|[-_.])merges\.txt)$/i;
const MAX_FILE = 200_000_000;

/** Whether a file is a tokenizer by its name; other files are texts. */
export function isTokenizerFile(name) {
  return TOKENIZER_FILE.test(name);
}

/**
 * Groups files into tokenizers: a vocab.json goes with its merges.txt.
 * @param {File[]} files
 * @returns {File[][]}
 */
export function groupFiles(files) {
  const merges = files.filter((file) => /merges\.txt$/i.test(file.name));
  const groups = [];
  for (const file of files) {
    if (merges.includes(file)) continue;
    const stem = file.name.replace(/vocab\.json$/i, "");
    const own = /vocab\.json$/i.test(file.name)
      ? merges.find((each) => each.name.replace(/merges\.txt$/i, "") === stem) || merges[0]
      : undefined;
    if (own) merges.splice(merges.indexOf(own), 1);
    groups.push(own ? [file, own] : [file]);
  }
  return [...groups, ...merges.map((file) => [file])];
}

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
   * @param {{name: string, packed: string}[]} embedded
   */
  constructor(client, store, data, embedded) {
    this.#client = client;
    this.#store = store;
    this.#data = data;
    for (const { name, packed } of embedded) {
      this.#entries.set(name, { name, source: "embedded", loading: null, loaded: null, packed });
    }
    store.subscribe((state, before) => {
      if (state.tokenizers !== before.tokenizers) this.#tell();
    });
  }

  /** The loaded tokenizers: `{key, name, info}`. */
  list() {
    return [...this.#entries.values()].flatMap((entry) => (entry.loaded ? [entry.loaded] : []));
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
    return () => this.#subscribers.delete(subscriber);
  }

  /** Adds a loaded tokenizer; one of the same name takes its place. */
  add({ key, name, info }, source = "trained") {
    this.#entries.set(name, { name, source, loading: null, loaded: { key, name, info }, packed: null });
    this.#tell();
  }

  /**
   * Loads the tokenizer of a name and puts it in a place; null empties the second place.
   * @param {0 | 1} place
   * @param {string | null} name
   * @throws {TokenizerError}
   */
  async choose(place, name) {
    if (name !== null) await this.#load(name);
    const names = [...this.#store.get().tokenizers];
    if (name === null) names.splice(place, 1);
    else names[place] = name;
    this.#store.set({ tokenizers: names });
  }

  /**
   * Loads files as tokenizers.
   * @param {File[]} files of one tokenizer
   * @param {{pattern?: string, published?: string}} [options] `published` is the published name that the file is for,
   *     as several share one
   * @returns {Promise<string>} its name
   * @throws {TokenizerError}
   */
  async addFiles(files, { published, ...options } = {}) {
    const shown = files.map((file) => file.name).join(" and ");
    if (files.some((file) => file.size > MAX_FILE)) {
      throw new TokenizerError(`${shown} has more than ${MAX_FILE / 1e6} MB, which the page does not read.`);
    }
    const contents = await Promise.all(
      files.map(async (file) => ({ name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) })),
    );
    if (published) contents[0].name = `${published}.tiktoken`;
    let loaded;
    try {
      loaded = await this.#client.load(contents, options);
    } catch (error) {
      const needsPattern = error.code === "pattern";
      // Some messages begin with the name of the file.
      const message = error.message.startsWith(contents[0].name) ? error.message : `${shown}: ${error.message}`;
      throw new TokenizerError(needsPattern ? `${shown} has no split pattern.` : message, { needsPattern });
    }
    const name = this.#freeName(
      contents[0].name.replace(/([-_.]?vocab)?\.(json|tiktoken|model|bpe)$/i, "") || contents[0].name,
    );
    this.add({ ...loaded, name }, "file");
    return name;
  }

  #freeName(name) {
    if (!this.#entries.has(name)) return name;
    let number = 2;
    while (this.#entries.has(`${name} ${number}`)) number += 1;
    return `${name} ${number}`;
  }

  async #load(name) {
    const entry = this.#entries.get(name) ?? await this.#fetched(name);
    if (entry.loaded) return;
    entry.loading ??= this.#client.loadPacked(name, entry.packed).then(
      (loaded) => {
        entry.loaded = { ...loaded, name };
        entry.packed = null;
        this.#tell();
      },
      (error) => {
        entry.loading = null;
        throw new TokenizerError(`${name}: ${error.message}`);
      },
    );
    await entry.loading;
  }

  /** Gets a published tokenizer from the local server. A page without one asks for its file. */
  async #fetched(name) {
    const published = this.#data.names.find((each) => each.name === name);
    if (!this.#data.server) {
      const what = published ? `Drop ${published.file} here to use it.` : "Drop its file here to use it.";
      throw new TokenizerError(`This page does not contain ${name}, and it requests nothing. ${what}`, { name });
    }
    let answer;
    try {
      answer = await fetch(`tokenizers/${encodeURIComponent(name)}`);
    } catch {
      throw new TokenizerError(`${name}: the local server does not answer. Is bpe-tokenizer view still running?`, {
        name,
      });
    }
    if (!answer.ok) {
      const message = await answer.text();
      throw new TokenizerError(message.startsWith(`${name}: `) ? message : `${name}: ${message}`, { name });
    }
    const entry = {
      name,
      source: "published",
      loading: null,
      loaded: null,
      packed: new Uint8Array(await answer.arrayBuffer()),
    };
    this.#entries.set(name, entry);
    return entry;
  }

  #tell() {
    for (const subscriber of [...this.#subscribers]) subscriber();
  }
}

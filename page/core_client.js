/** The core as promises: each call is a message to the worker, which works on one at a time. */

/** An error of the core, with its message for people. `code` names the errors that the page can solve. */
export class ClientError extends Error {
  /** @param {{name: string, message: string, code?: string}} error */
  constructor({ name, message, code }) {
    super(message);
    this.name = name;
    this.code = code;
  }
}

export class CoreClient {
  #worker;
  #calls = new Map();
  #queue = [];
  #running = null;
  #last = 0;

  /** @param {Worker} worker */
  constructor(worker) {
    this.#worker = worker;
    worker.onmessage = ({ data }) => this.#finish(data);
    worker.onerror = (event) => {
      const message = event.message || "the worker does not start";
      for (const call of [...this.#calls.values()]) call.reject(new ClientError({ name: "Error", message }));
      this.#calls.clear();
    };
  }

  start(wasm) {
    return this.#call("start", { wasm });
  }

  /** Loads a packed tokenizer: the gzip of what `pack` of the Python package makes, as bytes or base64. */
  loadPacked(packed) {
    return this.#call("loadPacked", { packed });
  }

  /**
   * @param {Uint8Array} bytes of a rank file
   * @param {{patterns?: string[], specialTokens?: Record<string, number>}} options
   * @returns {Promise<{key: number, info: object}>}
   */
  loadRanks(bytes, options) {
    return this.#call("loadRanks", { bytes, options });
  }

  /** Loads a byte-level tokenizer.json; `published` are the patterns that it may spell. */
  loadTokenizerJson(text, published) {
    return this.#call("loadTokenizerJson", { text, published });
  }

  unload(key) {
    return this.#call("unload", { key });
  }

  /**
   * The tokens of a text, with `table`: the bytes of the ids that earlier calls for this tokenizer did not have.
   *
   * @param {number} key
   * @param {string} text
   * @param {{special?: "none" | "all" | string[], latest?: string}} [options]
   */
  encodeView(key, text, { latest, ...options } = {}) {
    return this.#call("encodeView", { key, text, options }, latest);
  }

  fingerprint(key, text) {
    return this.#call("fingerprint", { key, text });
  }

  /** The number of tokens of each text. */
  counts(key, texts, options = {}) {
    return this.#call("counts", { key, texts, options });
  }

  /**
   * The bytes of tokens, by id.
   * @param {number} key
   * @param {Iterable<number>} ids
   * @returns {Promise<Map<number, Uint8Array>>}
   */
  async tokenBytes(key, ids) {
    const distinct = Uint32Array.from(new Set(ids));
    const { offsets, bytes } = await this.#call("tokenTable", { key, ids: distinct });
    return new Map(Array.from(distinct, (id, at) => [id, bytes.subarray(offsets[at], offsets[at + 1])]));
  }

  trace(key, bytes, { latest } = {}) {
    return this.#call("trace", { key, bytes }, latest);
  }

  train(text, { latest, ...options } = {}) {
    return this.#call("train", { text, options }, latest);
  }

  encodeSegments(key, segments, options) {
    return this.#call("encodeSegments", { key, segments, options });
  }

  /** A newer call with the same `latest` cancels the older ones that still wait; the running one finishes. */
  #call(method, args, latest) {
    if (latest !== undefined) {
      for (const waiting of this.#queue.filter((call) => call.latest === latest)) {
        this.#queue.splice(this.#queue.indexOf(waiting), 1);
        this.#calls.delete(waiting.number);
        waiting.reject(new DOMException("a newer call takes the place of this one", "AbortError"));
      }
    }
    return new Promise((resolve, reject) => {
      this.#last += 1;
      const call = { number: this.#last, method, args, latest, resolve, reject };
      this.#calls.set(call.number, call);
      this.#queue.push(call);
      this.#next();
    });
  }

  #next() {
    if (this.#running !== null || this.#queue.length === 0) return;
    const { number, method, args } = this.#queue.shift();
    this.#running = number;
    this.#worker.postMessage({ number, method, args });
  }

  #finish({ number, result, error }) {
    const call = this.#calls.get(number);
    this.#calls.delete(number);
    this.#running = null;
    this.#next();
    if (call === undefined) return;
    if (error) call.reject(new ClientError(error));
    else call.resolve(result);
  }
}

/**
 * Starts the worker and its core.
 * @param {string} source the worker's script
 * @param {string} wasm the gzip of the WebAssembly, in base64
 * @returns {Promise<CoreClient>}
 */
export async function startClient(source, wasm) {
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const client = new CoreClient(new Worker(address));
  await client.start(wasm);
  URL.revokeObjectURL(address);
  return client;
}

/** Whether a promise was rejected because a newer call took its place. */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

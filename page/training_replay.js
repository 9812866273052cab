// Replays a training: the pieces, the pair counts and the vocabulary after any number of merges.
//
// Each piece is a run of slots, one slot a byte. A symbol is at the slot of its first byte, and its neighbours
// follow from its length. A merge visits the occurrences of one pair only, so a step costs no more than what it
// changes. Two facts of byte-pair encoding make the replay simple (the trainer's source, train/merges.rs, has
// the proofs):
//
// - A product is always a new token. So a step is undone by splitting every occurrence of its product.
// - A pair forms only in the step that makes its younger symbol. So its list of positions is written once.

/**
 * @typedef {{bytes: Uint8Array, count: number}} CountedPiece
 * @typedef {{left: number, right: number, id: number, count: number}} LearnedMerge
 * @typedef {{left: number, right: number, count: number}} CountedPair
 */

const NO_SLOT = -1;
// Milliseconds of work at a time.
const SLICE = 24;
// Ids are below 2^26, so that a pair of them is an exact number.
const PAIR_BASE = 2 ** 26;

/**
 * Compares byte strings in lexicographic order.
 * @param {Uint8Array} a
 * @param {Uint8Array} b
 * @returns {number} negative if `a` is less, positive if it is greater
 */
export function compareBytes(a, b) {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    if (a[index] !== b[index]) return a[index] - b[index];
  }
  return a.length - b.length;
}

/** The state of a training after any number of its merges. `create` makes one. */
export class TrainingReplay {
  /**
   * Applies all merges once, in slices between which the page answers, and goes back to the beginning.
   * @param {CountedPiece[]} pieces the distinct pieces of the text
   * @param {LearnedMerge[]} merges the merges, in the order of the training; ids below 256 are bytes
   * @returns {Promise<TrainingReplay>}
   */
  static async create(pieces, merges) {
    const replay = new TrainingReplay(pieces, merges);
    let start = performance.now();
    for (const tokens of replay._measure()) {
      replay.curve.push(tokens);
      if (performance.now() - start < SLICE) continue;
      await new Promise((resolve) => setTimeout(resolve));
      start = performance.now();
    }
    return replay;
  }

  constructor(pieces, merges) {
    this.pieces = pieces;
    this.merges = merges;
    /** The number of merges that are applied. */
    this.step = 0;
    /** Tokens of the text after the applied merges. */
    this.tokens = 0;
    /** The number of different pairs. */
    this.pairs = 0;
    this._bytes = new Map();
    for (let byte = 0; byte < 256; byte += 1) this._bytes.set(byte, Uint8Array.of(byte));
    for (const { left, right, id } of merges) {
      const [first, second] = [this._bytes.get(left), this._bytes.get(right)];
      const product = new Uint8Array(first.length + second.length);
      product.set(first);
      product.set(second, first.length);
      this._bytes.set(id, product);
    }
    this._layOut();
    this._countPairs();
    // Positions of each applied merge, to undo it.
    this._applied = [];
    // Merges whose pairs have their lists of positions.
    this._indexed = 0;
    /** The tokens of the text after each merge. */
    this.curve = [this.tokens];
  }

  /** @returns {number} the number of merges */
  get length() {
    return this.merges.length;
  }

  /**
   * The bytes of a token.
   * @param {number} id
   * @returns {Uint8Array}
   */
  tokenBytes(id) {
    return this._bytes.get(id);
  }

  /**
   * Applies or undoes merges until `step` of them are applied.
   * @param {number} step
   */
  go(step) {
    const wanted = Math.min(Math.max(Math.round(step), 0), this.merges.length);
    while (this.step < wanted) this._apply();
    while (this.step > wanted) this._undo();
  }

  /**
   * The pairs that the trainer prefers, the best first: the highest counts, and of equal counts the greatest
   * bytes of the left part, then of the right part.
   * @param {number} limit
   * @returns {CountedPair[]}
   */
  top(limit) {
    const best = [];
    for (let pair = 0; pair < this._counts.length; pair += 1) {
      if (this._counts[pair] === 0) continue;
      if (best.length === limit && !this._precedes(pair, best[limit - 1])) continue;
      let [low, high] = [0, best.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this._precedes(pair, best[middle])) high = middle;
        else low = middle + 1;
      }
      best.splice(low, 0, pair);
      if (best.length > limit) best.pop();
    }
    return best.map((pair) => this._pair(pair));
  }

  /**
   * The count of a pair.
   * @param {number} left
   * @param {number} right
   * @returns {number}
   */
  count(left, right) {
    const pair = this._pairIndex.get(left * PAIR_BASE + right);
    return pair === undefined ? 0 : this._counts[pair];
  }

  /**
   * The symbols of a piece: ids and the offsets of their first bytes.
   * @param {number} piece index of the piece
   * @returns {{id: number, start: number}[]}
   */
  symbols(piece) {
    const [first, end] = [this._starts[piece], this._starts[piece + 1]];
    const symbols = [];
    for (let slot = first; slot < end; slot += this._lengthAt(slot)) {
      symbols.push({ id: this._symbols[slot], start: slot - first });
    }
    return symbols;
  }

  /**
   * The pieces that the latest merge changed, in the order of the pieces, each with the offsets of the new symbols.
   * @returns {Map<number, number[]>}
   */
  changes() {
    const changed = new Map();
    if (this.step === 0) return changed;
    for (const slot of this._applied[this.step - 1]) {
      const piece = this._pieceOf[slot];
      if (!changed.has(piece)) changed.set(piece, []);
      changed.get(piece).push(slot - this._starts[piece]);
    }
    return new Map([...changed].sort((a, b) => a[0] - b[0]));
  }

  _layOut() {
    const total = this.pieces.reduce((sum, { bytes }) => sum + bytes.length, 0);
    // The symbol that begins at each slot. A slot inside a symbol holds NO_SLOT.
    this._symbols = new Int32Array(total);
    // The slot of the previous symbol of the piece.
    this._previous = new Int32Array(total);
    this._pieceOf = new Int32Array(total);
    this._starts = new Int32Array(this.pieces.length + 1);
    let slot = 0;
    for (const [piece, { bytes, count }] of this.pieces.entries()) {
      this._starts[piece] = slot;
      for (let offset = 0; offset < bytes.length; offset += 1, slot += 1) {
        this._symbols[slot] = bytes[offset];
        this._previous[slot] = offset ? slot - 1 : NO_SLOT;
        this._pieceOf[slot] = piece;
      }
      this.tokens += bytes.length * count;
    }
    this._starts[this.pieces.length] = slot;
  }

  _countPairs() {
    this._pairIndex = new Map();
    [this._lefts, this._rights, this._counts, this._positions] = [[], [], [], []];
    for (let slot = 0; slot < this._symbols.length; slot += 1) {
      if (this._previous[slot] === NO_SLOT) continue;
      this._form(slot - 1, slot, true);
    }
  }

  // The tokens of the text after each merge. This first pass over the merges also writes the lists of positions.
  * _measure() {
    while (this.step < this.merges.length) {
      this._apply();
      yield this.tokens;
    }
    this.go(0);
  }

  _lengthAt(slot) {
    const id = this._symbols[slot];
    return id < 256 ? 1 : this._bytes.get(id).length;
  }

  // The next symbol of the piece.
  _next(slot) {
    const next = slot + this._lengthAt(slot);
    return next < this._starts[this._pieceOf[slot] + 1] ? next : NO_SLOT;
  }

  // Counts a pair that now exists; `isNew` also lists its position.
  _form(slot, next, isNew) {
    const [left, right] = [this._symbols[slot], this._symbols[next]];
    const key = left * PAIR_BASE + right;
    let pair = this._pairIndex.get(key);
    if (pair === undefined) {
      pair = this._counts.length;
      this._pairIndex.set(key, pair);
      this._lefts.push(left);
      this._rights.push(right);
      this._counts.push(0);
      this._positions.push([]);
    }
    if (this._counts[pair] === 0) this.pairs += 1;
    this._counts[pair] += this.pieces[this._pieceOf[slot]].count;
    if (isNew) this._positions[pair].push(slot);
  }

  _lose(slot, next) {
    const pair = this._pairIndex.get(this._symbols[slot] * PAIR_BASE + this._symbols[next]);
    this._counts[pair] -= this.pieces[this._pieceOf[slot]].count;
    if (this._counts[pair] === 0) this.pairs -= 1;
  }

  // Counts or discounts the pairs that the symbols from `first` to `last` are in.
  _around(first, last, change) {
    let slot = this._previous[first] === NO_SLOT ? first : this._previous[first];
    for (let next = this._next(slot); next !== NO_SLOT; next = this._next(slot)) {
      change(slot, next);
      if (slot === last) break;
      slot = next;
    }
  }

  _apply() {
    const { left, right, id } = this.merges[this.step];
    const isNew = this.step === this._indexed;
    const positions = this._positions[this._pairIndex.get(left * PAIR_BASE + right)] ?? [];
    const merged = [];
    const lose = (slot, next) => this._lose(slot, next);
    const form = (slot, next) => this._form(slot, next, false);
    // Positions ascend, so overlapping occurrences pair from the left.
    for (const slot of positions) {
      if (this._symbols[slot] !== left) continue;
      const next = this._next(slot);
      if (next === NO_SLOT || this._symbols[next] !== right) continue;
      this._around(slot, next, lose);
      const after = this._next(next);
      this._symbols[slot] = id;
      this._symbols[next] = NO_SLOT;
      if (after !== NO_SLOT) this._previous[after] = slot;
      this._around(slot, slot, form);
      this.tokens -= this.pieces[this._pieceOf[slot]].count;
      merged.push(slot);
    }
    this._applied.push(merged);
    this.step += 1;
    if (isNew) {
      this._list(merged);
      this._indexed = this.step;
    }
  }

  // Lists the positions of the pairs around new symbols, in ascending order.
  _list(merged) {
    const list = (slot, next) => {
      const key = this._symbols[slot] * PAIR_BASE + this._symbols[next];
      this._positions[this._pairIndex.get(key)].push(slot);
    };
    for (const slot of merged) {
      const [previous, next] = [this._previous[slot], this._next(slot)];
      // The pair of two new neighbours is listed once: as the right pair of the first.
      if (previous !== NO_SLOT && this._symbols[previous] !== this._symbols[slot]) list(previous, slot);
      if (next !== NO_SLOT) list(slot, next);
    }
  }

  _undo() {
    this.step -= 1;
    const { left, right } = this.merges[this.step];
    const length = this._bytes.get(left).length;
    const lose = (slot, next) => this._lose(slot, next);
    const form = (slot, next) => this._form(slot, next, false);
    for (const slot of this._applied.pop()) {
      this._around(slot, slot, lose);
      const [after, next] = [this._next(slot), slot + length];
      this._symbols[slot] = left;
      this._symbols[next] = right;
      this._previous[next] = slot;
      if (after !== NO_SLOT) this._previous[after] = next;
      this._around(slot, next, form);
      this.tokens += this.pieces[this._pieceOf[slot]].count;
    }
  }

  _pair(pair) {
    return { left: this._lefts[pair], right: this._rights[pair], count: this._counts[pair] };
  }

  // Whether the trainer merges pair `a` rather than pair `b`.
  _precedes(a, b) {
    if (this._counts[a] !== this._counts[b]) return this._counts[a] > this._counts[b];
    const left = compareBytes(this._bytes.get(this._lefts[a]), this._bytes.get(this._lefts[b]));
    if (left) return left > 0;
    return compareBytes(this._bytes.get(this._rights[a]), this._bytes.get(this._rights[b])) > 0;
  }
}

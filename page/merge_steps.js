// The merges of a piece as a sequence of states, and the possible merges of each state.

import { lastAtMost } from "./ascending.js";

/**
 * @typedef {object} MergeNode A symbol, from the step that makes it to the step that joins it to another.
 * @property {number} index
 * @property {number | null} id null for a gap: a character without a token, which keeps its neighbours apart
 * @property {Uint8Array} bytes
 * @property {number} start position of its first initial symbol
 * @property {number} end position after its last initial symbol
 * @property {number} step the number of the merge that makes it, from 1; 0 for an initial symbol
 * @property {number} until the number of the merge that joins it; Infinity for a token of the result
 * @property {number | null} rank rank of the merge that makes it
 * @property {MergeNode | null} left
 * @property {MergeNode | null} right
 * @property {MergeNode | null} parent
 * @property {number} level 0 for an initial symbol, otherwise one more than the higher of its parts
 */

/** @typedef {{left: MergeNode, right: MergeNode, count: number}} NeighbourPair `count` occurrences; the first one */

/** The states of a piece between its initial symbols and its tokens. */
export class MergeSteps {
  /**
   * @param {{symbols: (number | null)[], merges: {rank: number, left: number, right: number, id: number}[],
   *   ids: number[], isWhole: boolean}} trace
   * @param {Uint8Array} piece
   * @param {(id: number) => Uint8Array} tokenBytes
   */
  constructor(trace, piece, tokenBytes) {
    this.trace = trace;
    this.length = trace.merges.length;
    /** @type {MergeNode[]} */
    this.nodes = [];
    /** Nodes by the position of their first symbol, the oldest first. */
    this._at = trace.symbols.map((id, start) => [this._add(id, id === null ? new Uint8Array() : tokenBytes(id), start)]);
    for (const [number, merge] of trace.merges.entries()) {
      const [left, right] = [this._at[merge.left].at(-1), this._at[merge.right].at(-1)];
      const node = this._add(merge.id, tokenBytes(merge.id), merge.left);
      Object.assign(node, { end: right.end, step: number + 1, rank: merge.rank, left, right });
      node.level = Math.max(left.level, right.level) + 1;
      for (const part of [left, right]) Object.assign(part, { parent: node, until: node.step });
      this._at[merge.left].push(node);
    }
    /** The symbols of the result. */
    this.roots = this.symbols(this.length);
    /** Whether the initial symbols have the bytes of the piece. Unknown characters have a token of other bytes. */
    this.isExact = sameBytes(trace.symbols.map((_, start) => this._at[start][0].bytes), piece);
    this.isOfBytes = this.isExact && trace.symbols.length === piece.length;
    this.height = this.roots.reduce((highest, { level }) => Math.max(highest, level), 0);
  }

  /**
   * The symbols after a number of merges.
   * @param {number} step
   * @returns {MergeNode[]}
   */
  symbols(step) {
    const symbols = [];
    for (let start = 0; start < this._at.length; start = symbols.at(-1).end) {
      symbols.push(this._at[start].findLast((node) => node.step <= step));
    }
    return symbols;
  }

  /**
   * The distinct pairs of neighbours after a number of merges, in their order in the piece.
   * @param {number} step
   * @returns {NeighbourPair[]}
   */
  pairs(step) {
    const pairs = new Map();
    const symbols = this.symbols(step);
    for (let index = 1; index < symbols.length; index += 1) {
      const [left, right] = [symbols[index - 1], symbols[index]];
      if (left.id === null || right.id === null) continue;
      const key = `${left.id} ${right.id}`;
      if (pairs.has(key)) pairs.get(key).count += 1;
      else pairs.set(key, { left, right, count: 1 });
    }
    return [...pairs.values()];
  }

  /**
   * The node that a merge makes.
   * @param {number} step number of the merge, from 1
   * @returns {MergeNode}
   */
  made(step) {
    return this.nodes[this._at.length + step - 1];
  }

  /**
   * The token of the result that a node becomes a part of.
   * @param {MergeNode} node
   * @returns {number} its index in `roots`
   */
  rootIndex(node) {
    return lastAtMost(this.roots, node.start, this.roots.length, ({ start }) => start);
  }

  _add(id, bytes, start) {
    const node = {
      index: this.nodes.length, id, bytes, start, end: start + 1, step: 0, until: Infinity,
      rank: null, left: null, right: null, parent: null, level: 0,
    };
    this.nodes.push(node);
    return node;
  }
}

/**
 * The ranks of pairs of neighbours, from traces of their bytes alone.
 *
 * This is exact. No merge crossed the ends of the two neighbours, or they would be one symbol. So their bytes alone
 * go through the same merges until they are these two symbols, and the next merge, if any, joins them.
 */
export class PairRanks {
  /** @param {(bytes: Uint8Array) => Promise<object>} trace */
  constructor(trace) {
    this._trace = trace;
    this._ranks = new Map();
  }

  /**
   * @param {NeighbourPair} pair
   * @returns {number | null | undefined} null if the pair is not a merge, undefined if `find` was not called for it
   */
  get({ left, right }) {
    return this._ranks.get(`${left.id} ${right.id}`);
  }

  /**
   * Finds the rank of a pair.
   * @param {NeighbourPair} pair
   */
  async find({ left, right }) {
    const key = `${left.id} ${right.id}`;
    if (this._ranks.has(key)) return;
    const bytes = new Uint8Array(left.bytes.length + right.bytes.length);
    bytes.set(left.bytes);
    bytes.set(right.bytes, left.bytes.length);
    const last = (await this._trace(bytes)).merges.at(-1);
    const joins = last !== undefined && last.left === 0 && last.right === left.end - left.start;
    this._ranks.set(key, joins ? last.rank : null);
  }
}

function sameBytes(parts, whole) {
  let at = 0;
  for (const part of parts) {
    for (const byte of part) {
      if (whole[at] !== byte) return false;
      at += 1;
    }
  }
  return at === whole.length;
}

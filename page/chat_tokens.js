// Assigns the tokens of a rendered conversation to its messages: counts, control tokens, the assistant's tokens.
import { lastAtMost } from "./ascending.js";

/**
 * @typedef {{start: number, end: number, message: number | null, turn: number}} ChatPiece
 *   A part of a segment within one turn. `message` is null for markup.
 * @typedef {{ids: Uint32Array, starts: Uint32Array, ends: Uint32Array, flags: Uint8Array, control: Uint32Array}} ChatEncoded
 *   `control` are the control tokens of the conversation: the special tokens, and the added tokens that are markup.
 */

/**
 * Splits the segments of a conversation at the borders of its turns.
 * @param {import("./chat_templates.js").RenderedChat} rendered
 * @returns {ChatPiece[]}
 */
export function chatPieces(rendered) {
  const pieces = [];
  let position = 0;
  let turn = 0;
  for (const segment of rendered.segments) {
    const end = position + segment.text.length;
    while (position < end) {
      while (rendered.turns[turn].end <= position) turn += 1;
      const stop = Math.min(end, rendered.turns[turn].end);
      pieces.push({ start: position, end: stop, message: segment.message, turn });
      position = stop;
    }
  }
  return pieces;
}

/**
 * Returns the tokens that begin in each piece, as [first, end) of their indices.
 * @param {ChatPiece[]} pieces
 * @param {ChatEncoded} encoded
 * @returns {[number, number][]}
 */
export function tokensOfPieces(pieces, encoded) {
  const ranges = [];
  let token = 0;
  pieces.forEach((piece, index) => {
    const first = token;
    const isLast = index === pieces.length - 1;
    while (token < encoded.ids.length && (isLast || encoded.starts[token] < piece.end)) token += 1;
    ranges.push([first, token]);
  });
  return ranges;
}

/**
 * Counts the tokens that begin in each message's content and in the markup of its turn.
 * @param {number} count the number of messages
 * @param {import("./chat_templates.js").RenderedChat} rendered
 * @param {ChatPiece[]} pieces
 * @param {[number, number][]} ranges
 * @returns {{content: number, markup: number}[]}
 */
export function countMessageTokens(count, rendered, pieces, ranges) {
  const counts = Array.from({ length: count }, () => ({ content: 0, markup: 0 }));
  pieces.forEach((piece, index) => {
    const tokens = ranges[index][1] - ranges[index][0];
    const author = rendered.turns[piece.turn].message;
    if (piece.message !== null) counts[piece.message].content += tokens;
    else if (author !== null) counts[author].markup += tokens;
  });
  return counts;
}

/**
 * Marks the tokens with any part of some spans of characters.
 * @param {ChatEncoded} encoded
 * @param {[number, number][]} spans in order
 * @returns {Uint8Array} 1 or 0 for each token
 */
export function maskTokens(encoded, spans) {
  const mask = new Uint8Array(encoded.ids.length);
  let at = 0;
  for (let token = 0; token < mask.length; token += 1) {
    while (at < spans.length && spans[at][1] <= encoded.starts[token]) at += 1;
    if (at < spans.length && spans[at][0] < encoded.ends[token]) mask[token] = 1;
  }
  return mask;
}

/**
 * Returns the texts of the control tokens of a conversation by id.
 * @param {ChatEncoded} encoded
 * @param {{id: number, content: string}[]} addedTokens
 * @returns {Map<number, string>}
 */
export function controlTokensById({ control }, addedTokens) {
  const ids = new Set(control);
  return new Map(addedTokens.filter(({ id }) => ids.has(id)).map(({ id, content }) => [id, content]));
}

/**
 * Returns a function that tells whether a span of characters has any content, or any markup.
 * @param {ChatPiece[]} pieces
 * @returns {(start: number, end: number) => {content: boolean, markup: boolean}}
 */
export function provenanceOf(pieces) {
  return (start, end) => {
    const found = { content: false, markup: false };
    const first = pieceAt(pieces, start);
    for (let at = first; at < pieces.length && (at === first || pieces[at].start < end); at += 1) {
      found[pieces[at].message === null ? "markup" : "content"] = true;
    }
    return found;
  };
}

/**
 * Finds the tokens that hold both content and markup.
 * @param {ChatEncoded} encoded
 * @param {ChatPiece[]} pieces
 * @returns {Uint8Array} 1 or 0 for each token
 */
export function mixedTokens(encoded, pieces) {
  const { starts, ends } = encoded;
  const isMixed = new Uint8Array(starts.length);
  let at = 0;
  for (let token = 0; token < isMixed.length; token += 1) {
    while (at < pieces.length - 1 && pieces[at].end <= starts[token]) at += 1;
    for (let next = at + 1; next < pieces.length && pieces[next].start < ends[token]; next += 1) {
      if ((pieces[next].message === null) !== (pieces[at].message === null)) isMixed[token] = 1;
    }
  }
  return isMixed;
}

/**
 * Returns the index of the piece with a character.
 * @param {ChatPiece[]} pieces
 * @param {number} position
 * @returns {number}
 */
export function pieceAt(pieces, position) {
  return lastAtMost(pieces, position, pieces.length, ({ start }) => start);
}

// Reads a conversation as a model reads it: turns open at control tokens, wherever these come from.
import { pieceAt, provenanceOf } from "./chat_tokens.js";

/**
 * @typedef {{start: number, end: number, text: string, isToken: boolean, isContent: boolean}} ChatMarker
 *   A mark that a turn can open or end with. `isToken`: a control token; else markup that is plain text.
 *   `isContent`: at least a part of it comes from a message, so a message can forge it.
 * @typedef {{text: string, marker: ChatMarker | null}} ChatRun
 * @typedef {{role: string, isKnown: boolean, isForged: boolean, start: number, end: number, runs: ChatRun[]}} ReadTurn
 *   `role` is "" for text outside of all turns.
 */

const LONGEST_NAME = 40;

/**
 * Returns the control tokens among some tokens, and the template's markup that the vocabulary has no tokens for.
 * @param {object} template
 * @param {string} text
 * @param {import("./chat_tokens.js").ChatEncoded} encoded
 * @param {Map<number, string>} control the texts of the control tokens by id
 * @param {import("./chat_tokens.js").ChatPiece[]} pieces
 * @returns {ChatMarker[]} in order
 */
export function chatMarkers(template, text, encoded, control, pieces) {
  const provenance = provenanceOf(pieces);
  const markers = [];
  encoded.ids.forEach((id, token) => {
    if (!control.has(id)) return;
    const [start, end] = [encoded.starts[token], encoded.ends[token]];
    markers.push({ start, end, text: control.get(id), isToken: true, isContent: provenance(start, end).content });
  });
  const known = new Set(control.values());
  for (const plain of turnMarks(template).filter((each) => !known.has(each))) {
    for (let start = text.indexOf(plain); start >= 0; start = text.indexOf(plain, start + plain.length)) {
      const end = start + plain.length;
      markers.push({ start, end, text: plain, isToken: false, isContent: provenance(start, end).content });
    }
  }
  return markers.sort((a, b) => a.start - b.start || b.end - a.end);
}

/**
 * Returns the texts of a template that a turn can open or end with.
 * @param {object} template
 * @returns {string[]}
 */
export function turnMarks(template) {
  if (template.kind === "turns") return template.control_tokens;
  return [template.instruction.trimEnd(), template.response.trimEnd()];
}

/**
 * Reads turns. A turn opens at a header of the template that begins with a marker.
 * @param {object} template
 * @param {string} text
 * @param {ChatMarker[]} markers
 * @returns {ReadTurn[]}
 */
export function readTurns(template, text, markers) {
  const headers = turnHeaders(template);
  const shape = headerShape(headers);
  const turns = [{ role: "", isKnown: true, isForged: false, start: 0, from: 0, runs: [] }];
  let position = 0;
  for (const marker of markers) {
    if (marker.start < position) continue; // A part of a header.
    const header = headerAt(headers, shape, text, marker);
    const turn = turns.at(-1);
    addText(turn, text.slice(position, marker.start));
    position = header === null ? marker.end : marker.start + header.length;
    if (header === null) {
      turn.runs.push({ text: marker.text, marker });
    } else {
      const { role, isKnown } = header;
      turns.push({ role, isKnown, isForged: marker.isContent, start: marker.start, runs: [] });
    }
  }
  addText(turns.at(-1), text.slice(position));
  return turns
    .map((turn, index) => ({ ...turn, end: index + 1 < turns.length ? turns[index + 1].start : text.length }))
    .filter((turn) => turn.end > turn.start);
}

function addText(turn, text) {
  if (text !== "") turn.runs.push({ text, marker: null });
}

/** The headers of a template's turns, longest first. A role without one follows the end of the user's turn. */
function turnHeaders(template) {
  if (template.kind === "instruction") {
    return [
      { text: template.instruction.trimEnd(), role: "user" },
      { text: template.response.trimEnd(), role: "assistant" },
    ];
  }
  const { user } = template.roles;
  return Object.entries(template.roles)
    .map(([role, { before, lead }]) => ({ role, text: ((before + lead) || user.end + user.after).trim() }))
    .sort((a, b) => b.text.length - a.text.length);
}

/** What the headers have in common around the name of the role, to read the names of other roles. */
function headerShape(headers) {
  if (headers.length < 2) return null;
  const texts = headers.map((header) => header.text);
  const opening = commonPrefix(texts).match(/^<.*>/s)?.[0] ?? "";
  const closing = reversedText(commonPrefix(texts.map(reversedText)));
  return opening === "" ? null : { opening, closing: closing.match(/<.*>$/s)?.[0] ?? "\n" };
}

function headerAt(headers, shape, text, marker) {
  const known = headers.find((header) => text.startsWith(header.text, marker.start));
  if (known !== undefined && known.text.startsWith(marker.text)) {
    return { role: known.role, isKnown: true, length: known.text.length };
  }
  if (shape === null || marker.text !== shape.opening) return null;
  const rest = text.slice(marker.end, marker.end + LONGEST_NAME);
  const name = rest.split(shape.closing)[0].split("\n")[0];
  const closing = rest.startsWith(shape.closing, name.length) ? shape.closing.length : 0;
  return { role: name.trim(), isKnown: false, length: marker.text.length + name.length + closing };
}

function commonPrefix(texts) {
  const [first] = texts;
  let length = 0;
  while (length < first.length && texts.every((text) => text[length] === first[length])) length += 1;
  return first.slice(0, length);
}

function reversedText(text) {
  return Array.from(text).reverse().join("");
}

/**
 * @typedef {{message: number, asString: ReadTurn[], asSegments: ReadTurn[], forged: string[], imitated: string[],
 *   leaked: number}} Forgery What a message writes: `forged` are control tokens that it becomes in one string,
 *   `imitated` is markup that the vocabulary has no tokens for, `leaked` counts its control tokens in the encoding
 *   of segments.
 */

/**
 * Returns the messages that hold control tokens or markup of the template, and how a model reads them.
 * @param {object} template
 * @param {import("./chat_templates.js").RenderedChat} rendered
 * @param {import("./chat_tokens.js").ChatPiece[]} pieces
 * @param {ChatMarker[]} asString the markers in the encoding of the whole text
 * @param {ChatMarker[]} asSegments the markers in the encoding of the segments
 * @returns {Forgery[]} in the order of the messages
 */
export function findForgeries(template, rendered, pieces, asString, asSegments) {
  const found = new Map();
  const entry = (message) => {
    if (!found.has(message)) found.set(message, { message, forged: new Set(), imitated: new Set(), leaked: 0 });
    return found.get(message);
  };
  for (const marker of asString.filter((each) => each.isContent)) {
    const kind = marker.isToken ? "forged" : "imitated";
    for (const message of messagesAt(pieces, marker)) entry(message)[kind].add(marker.text);
  }
  for (const marker of asSegments.filter((each) => each.isContent && each.isToken)) {
    for (const message of messagesAt(pieces, marker)) entry(message).leaked += 1;
  }
  const [stringTurns, segmentTurns] = [asString, asSegments].map((each) => readTurns(template, rendered.text, each));
  return [...found.values()]
    .sort((a, b) => a.message - b.message)
    .map(({ message, forged, imitated, leaked }) => {
      const { turn } = pieces.find((piece) => piece.message === message);
      const { start, end } = rendered.turns[turn];
      const within = (turns) => turns.filter((each) => each.start < end && each.end > start && !isBlank(each));
      return {
        message, leaked, forged: [...forged], imitated: [...imitated],
        asString: within(stringTurns), asSegments: within(segmentTurns),
      };
    });
}

function messagesAt(pieces, { start, end }) {
  const messages = new Set();
  for (let at = pieceAt(pieces, start); at < pieces.length && pieces[at].start < end; at += 1) {
    if (pieces[at].message !== null) messages.add(pieces[at].message);
  }
  return messages;
}

/** Text outside of all turns that is markup only, such as the token at the start. */
function isBlank(turn) {
  const isEmpty = ({ text, marker }) => text.trim() === "" || marker?.isContent === false;
  return turn.role === "" && turn.isKnown && turn.runs.every(isEmpty);
}

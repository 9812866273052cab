// The rendered conversation: a lane for each turn, with its markup and its content as tokens.
import { FLAG_BEGINS_INSIDE, FLAG_ENDS_INSIDE } from "./chips.js";
import { countNoun, formatNumber, make } from "./dom.js";
import { paragraphDirection, splitCharacter } from "./token_rows.js";

// So many chips at most are drawn of one piece, and of all pieces together, until the reader asks for more.
const PIECE_CHIPS = 400;
const ALL_CHIPS = 4_000;
const MORE_CHIPS = 2_000;
const NEWLINE = 10;

/**
 * @typedef {object} ChatAnalysis
 * @property {import("./chat_templates.js").ChatMessage[]} messages
 * @property {import("./chat_templates.js").RenderedChat} rendered
 * @property {import("./chat_tokens.js").ChatPiece[]} pieces
 * @property {[number, number][]} ranges the tokens of each piece
 * @property {import("./chat_tokens.js").ChatEncoded} encoded
 * @property {(id: number) => Uint8Array} bytesOf
 * @property {Uint8Array} isMixed 1 for the tokens that hold both content and markup
 * @property {Uint8Array | null} mask 1 for the assistant's tokens; null if they are not marked
 */

/**
 * Draws the lanes of a conversation.
 * @param {ChatAnalysis} analysis
 * @param {(token: {bytes: Uint8Array, id: number, flags: number}) => HTMLElement} chip
 * @returns {HTMLElement[]} the items of a list
 */
export function chatLanes(analysis, chip) {
  const { pieces, rendered } = analysis;
  const budget = { left: ALL_CHIPS };
  return rendered.turns.map((turn, number) => {
    const own = [...pieces.keys()].filter((each) => pieces[each].turn === number);
    return laneItem(analysis, turn, own, chip, budget);
  });
}

function laneItem(analysis, turn, own, chip, budget) {
  const counts = { markup: 0, content: 0 };
  for (const each of own) counts[pieceKind(analysis.pieces[each])] += analysis.ranges[each][1] - analysis.ranges[each][0];
  const title = make("span", { class: "chat-lane-title" }, laneTitle(turn));
  const count = make("span", { class: "chat-lane-count number" }, laneCount(counts));
  const place = turn.message === null ? null : make("span", { class: "chat-lane-place" }, `message ${turn.message + 1}`);
  return make(
    "li",
    { class: "chat-lane", "data-kind": turn.kind, "data-role": turn.role },
    make("div", { class: "chat-lane-head" }, title, place, count),
    make("div", { class: "chat-lane-body" }, ...own.map((each) => pieceElement(analysis, turn, each, chip, budget))),
  );
}

function laneTitle(turn) {
  return { start: "Start", end: "End", prompt: "Generation prompt", message: turn.role }[turn.kind];
}

function laneCount({ markup, content }) {
  const parts = [[content, "content"], [markup, "markup"]].filter(([count]) => count > 0);
  return parts.map(([count, kind]) => `${formatNumber(count)} ${kind}`).join(" + ");
}

function pieceKind(piece) {
  return piece.message === null ? "markup" : "content";
}

function pieceElement(analysis, turn, index, chip, budget) {
  const piece = analysis.pieces[index];
  const kind = pieceKind(piece);
  const tokens = make("div", { class: "chat-tokens" });
  drawTokens(analysis, index, tokens, chip, budget);
  const isFolded = piece.message !== null && piece.message !== turn.message;
  const label = isFolded
    ? make("p", { class: "chat-folded" }, `${analysis.messages[piece.message].role}, message ${piece.message + 1}`)
    : null;
  const role = piece.message === null ? null : analysis.messages[piece.message].role;
  const spoken = make("span", { class: "visually-hidden" }, `${kind}: `);
  return make("div", { class: `chat-piece chat-${kind}`, "data-role": role }, spoken, label, tokens);
}

/** Draws a part of the tokens, and a button for the others. */
function drawTokens(analysis, index, target, chip, budget) {
  const { encoded, bytesOf } = analysis;
  const [first, end] = analysis.ranges[index];
  const { start, end: pieceEnd, message } = analysis.pieces[index];
  const isContent = message !== null;
  const content = isContent ? analysis.rendered.text.slice(start, pieceEnd) : "";
  const newRow = () => {
    // The first token may begin in the markup.
    const position = Math.max(0, encoded.starts[drawn] - start);
    return make("div", { class: "chat-row", dir: isContent ? paragraphDirection(content, position) : "ltr" });
  };
  let drawn = first;
  let row = null;
  const draw = (count) => {
    const stop = Math.min(end, drawn + count);
    for (; drawn < stop; drawn += 1) {
      if (row === null) target.append((row = newRow()));
      row.append(tokenChip(analysis, drawn, chip));
      // A newline of a content ends its row, as in the text.
      if (isContent && bytesOf(encoded.ids[drawn]).includes(NEWLINE)) row = null;
    }
    if (drawn < end) target.append(moreButton());
  };
  const moreButton = () => {
    const count = Math.min(MORE_CHIPS, end - drawn);
    const button = make("button", {
      type: "button", class: "button small chat-more",
      onclick: () => {
        button.remove();
        draw(count);
        const next = target.querySelector(".chat-more") ?? target;
        if (next === target) target.tabIndex = -1;
        next.focus({ preventScroll: true });
      },
    }, `Show ${formatNumber(count)} more of ${countNoun(end - first, "token")}`);
    return button;
  };
  const allowed = Math.max(0, Math.min(PIECE_CHIPS, budget.left));
  budget.left -= Math.min(allowed, end - first);
  draw(allowed);
}

function tokenChip({ encoded, bytesOf, mask, isMixed, rendered }, token, chip) {
  const [id, flags] = [encoded.ids[token], encoded.flags[token]];
  const made = chip({ bytes: bytesOf(id), id, flags });
  if (isMixed[token] === 1) {
    made.classList.add("chat-mixed");
    made.title = "content and markup in one token";
  }
  if (mask !== null && mask[token] === 1) made.classList.add("chat-learned");
  if (flags & FLAG_ENDS_INSIDE && !(flags & FLAG_BEGINS_INSIDE)) {
    const whole = splitCharacter(rendered.text, encoded.starts[token], encoded.ends[token]);
    made.querySelector(".chip-text").prepend(make("span", { class: "chip-character" }, whole));
  }
  return made;
}

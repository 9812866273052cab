// The distinct pieces of the text with their counts, as the symbols that the merges have made so far.

import { symbolsLeftOut } from "./chips.js";
import { countNoun, formatNumber, make, setChildren } from "./dom.js";
import { prepareMoves, recordPlaces } from "./join_motion.js";
import { directionOf } from "./token_rows.js";

const [MAX_PIECES, MAX_SYMBOLS_OF_PIECE] = [80, 160];

/**
 * @param {(id: number) => HTMLElement} tokenChip
 * @returns {{element: HTMLElement, reset: () => void,
 *   draw: (replay: import("./training_replay.js").TrainingReplay) => void, places: () => import("./join_motion.js").Places,
 *   moves: (before: import("./join_motion.js").Places) => (duration: number) => void}}
 */
export function createTrainingPieces(tokenChip) {
  let [drawn, onlyChanged] = [null, false];
  /** Rows that need not be made again, by piece. */
  let rows = new Map();
  /** The places of the two chips that each new chip replaces. */
  let joins = new Map();

  const list = make("ol", { class: "piece-list" });
  const more = make("p", { class: "merges-note" });
  const note = make("p", { class: "merges-note number" });
  const choice = make("div", { class: "segments", role: "radiogroup", "aria-label": "Pieces that are shown" });
  for (const [label, value] of [["Most frequent", false], ["Changed", true]]) {
    const input = make("input", { type: "radio", name: "training-pieces", class: "visually-hidden", onchange: () => choose(value) });
    input.checked = value === onlyChanged;
    choice.append(make("label", { class: "segment" }, input, make("span", {}, label)));
  }
  const heading = make("div", { class: "panel-heading" }, make("h3", { class: "panel-title" }, "Pieces"), note, choice);
  const scroller = make("div", { class: "training-scroller piece-scroller", tabindex: 0, role: "region", "aria-label": "Pieces" }, list, more);
  const element = make("section", { class: "training-part training-pieces" }, heading, scroller);

  function reset() {
    rows = new Map();
    scroller.scrollTop = 0;
  }

  function choose(value) {
    onlyChanged = value;
    draw(drawn);
  }

  function draw(replay) {
    drawn = replay;
    const changes = replay.changes();
    const shown = onlyChanged ? [...changes.keys()] : replay.pieces.map((_, piece) => piece);
    const kept = new Map();
    const made = shown.slice(0, MAX_PIECES).map((piece) => {
      const row = pieceRow(replay, piece, changes.get(piece) ?? []);
      kept.set(piece, row);
      return row.element;
    });
    rows = kept;
    setChildren(list, made);
    joins = joinsOf(replay, changes);
    const hidden = shown.length - made.length;
    more.hidden = hidden === 0 && made.length > 0;
    more.textContent = made.length === 0 ? "This step has not changed any piece." : `and ${countNoun(hidden, "more piece")}`;
    note.textContent = replay.step === 0
      ? countNoun(replay.pieces.length, "distinct piece")
      : `${formatNumber(changes.size)} of ${countNoun(replay.pieces.length, "distinct piece")} changed`;
  }

  function pieceRow(replay, piece, changed) {
    const symbols = replay.symbols(piece);
    const from = firstShown(symbols, changed);
    const part = symbols.slice(from, from + MAX_SYMBOLS_OF_PIECE);
    const next = nextPairs(part, replay.merges[replay.step]);
    const key = `${from} ${part.map(({ id }) => id).join(" ")} ${changed.length ? replay.step : ""} ${next.join(" ")}`;
    const old = rows.get(piece);
    if (old?.key === key) return old;
    const [isNew, isNext] = [new Set(changed), new Set(next)];
    const chips = part.map(({ id, start }, index) => {
      const states = [isNew.has(start) && "is-new", isNext.has(index) && "is-next-left", isNext.has(index - 1) && "is-next-right"];
      const state = states.filter(Boolean).join(" ");
      return make("span", { class: `merges-symbol ${id < 256 ? "is-initial" : ""} ${state}`, "data-place": `${piece}:${start}` }, tokenChip(id));
    });
    if (from > 0) chips.unshift(symbolsLeftOut(from, "earlier"));
    if (from + part.length < symbols.length) chips.push(symbolsLeftOut(symbols.length - from - part.length, "later"));
    const count = make("span", { class: "piece-count number" }, `${formatNumber(replay.pieces[piece].count)}×`);
    const direction = directionOf(replay.pieces[piece].bytes);
    const row = make("li", { class: changed.length ? "is-changed" : "", "data-place": `piece ${piece}` }, count, make("span", { class: "piece-symbols", dir: direction }, ...chips));
    return { key, element: row };
  }

  return { element, reset, draw, places: () => recordPlaces(list), moves: (before) => prepareMoves(list, before, joins) };
}

/** The places of the two chips that each new chip of the latest merge replaces. */
function joinsOf(replay, changes) {
  const joins = new Map();
  if (replay.step === 0) return joins;
  const length = replay.tokenBytes(replay.merges[replay.step - 1].left).length;
  for (const [piece, starts] of changes) {
    for (const start of starts) joins.set(`${piece}:${start}`, [`${piece}:${start}`, `${piece}:${start + length}`]);
  }
  return joins;
}

/** The indices of the left symbols that the next merge joins to their right neighbours. */
function nextPairs(symbols, merge) {
  const found = [];
  for (let index = 0; merge && index + 1 < symbols.length; index += 1) {
    if (symbols[index].id !== merge.left || symbols[index + 1].id !== merge.right) continue;
    found.push(index);
    index += 1;
  }
  return found;
}

/** The first symbol that is drawn: the beginning, unless the first change is far away from it. */
function firstShown(symbols, changed) {
  if (symbols.length <= MAX_SYMBOLS_OF_PIECE || changed.length === 0) return 0;
  const at = symbols.findIndex(({ start }) => start === changed[0]);
  return at < MAX_SYMBOLS_OF_PIECE ? 0 : at - 20;
}

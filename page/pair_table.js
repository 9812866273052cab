// The table of pairs with their counts, in the order in which the trainer prefers them.

import { countNoun, formatNumber, make, setChildren } from "./dom.js";
import { prepareMoves, recordPlaces } from "./join_motion.js";

const [FIRST_ROWS, MORE_ROWS] = [50, 200];

/**
 * @param {(id: number) => HTMLElement} tokenChip
 * @returns {{element: HTMLElement, reset: () => void,
 *   draw: (replay: import("./training_replay.js").TrainingReplay) => void, places: () => import("./join_motion.js").Places,
 *   moves: (before: import("./join_motion.js").Places) => (duration: number) => void}} `places` records the rows before
 *   `draw`, and `moves` prepares their motion after it
 */
export function createPairTable(tokenChip) {
  let [limit, drawn] = [FIRST_ROWS, null];
  /** Rows that need not be made again, by pair. */
  let made = new Map();

  const rows = make("tbody", {});
  const header = ["Pair", "Count"].map((name, index) => make("th", { scope: "col", class: index ? "pair-count" : "" }, name));
  const table = make(
    "table", { class: "pair-table" },
    make("caption", { class: "visually-hidden" }, "Pairs of neighbours by count; the first is merged next"),
    make("thead", {}, make("tr", {}, ...header)), rows,
  );
  const more = make("button", { class: "button small plain", type: "button", onclick: showMore });
  const scroller = make("div", { class: "training-scroller pair-scroller", tabindex: 0, role: "region", "aria-label": "Pairs" }, table, more);
  const note = make("p", { class: "merges-note" });
  const heading = make("div", { class: "panel-heading" }, make("h3", { class: "panel-title" }, "Pairs"), note);
  const element = make("section", { class: "training-part training-pairs" }, heading, scroller);

  function reset() {
    limit = FIRST_ROWS;
    made = new Map();
    scroller.scrollTop = 0;
  }

  function showMore() {
    limit += MORE_ROWS;
    draw(drawn);
  }

  function draw(replay) {
    drawn = replay;
    const pairs = replay.top(limit);
    const [next, highest] = [replay.merges[replay.step], pairs[0]?.count ?? 1];
    const kept = new Map();
    table.style.setProperty("--count-width", `${Math.max(4, formatNumber(highest).length)}ch`);
    for (const [index, { left, right, count }] of pairs.entries()) {
      const key = `${left} ${right}`;
      const row = made.get(key) ?? pairRow(left, right, key);
      row.bar.style.setProperty("--share", String(count / highest));
      row.count.textContent = formatNumber(count);
      row.element.classList.toggle("is-next", index === 0 && next !== undefined);
      kept.set(key, row);
    }
    made = kept;
    setChildren(rows, [...kept.values()].map(({ element: row }) => row));
    note.textContent = noteOf(replay, pairs);
    const hidden = replay.pairs - pairs.length;
    more.hidden = hidden <= 0;
    more.textContent = `Show more of ${countNoun(hidden, "other pair")}`;
  }

  function pairRow(left, right, key) {
    const chips = make("span", { class: "pair-chips" }, tokenChip(left), tokenChip(right));
    const bar = make("span", { class: "pair-bar", "aria-hidden": "true" });
    const count = make("span", {});
    const cells = [make("td", {}, chips, make("span", { class: "merges-badge" }, "next")), make("td", { class: "pair-count number" }, bar, count)];
    return { element: make("tr", { "data-place": key }, ...cells), bar, count };
  }

  return { element, reset, draw, places: () => recordPlaces(rows), moves: (before) => prepareMoves(rows, before) };
}

function noteOf(replay, pairs) {
  if (pairs.length === 0) return "No pair is left.";
  if (pairs[0].count < 2) return "No pair occurs twice, so training ends.";
  const ties = pairs.findIndex(({ count }) => count < pairs[0].count);
  const total = `${formatNumber(replay.pairs)} different`;
  return ties === 1 ? total : `${total}. Ties: greatest bytes first.`;
}

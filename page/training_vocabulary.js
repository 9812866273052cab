// The learned tokens, the newest first. Each leads to the merge that made it.

import { countNoun, formatNumber, make, roveFocus, setChildren } from "./dom.js";
import { prepareMoves, recordPlaces } from "./join_motion.js";
import { spokenToken } from "./printable.js";

const MAX_TOKENS = 300;

/**
 * @param {(id: number) => HTMLElement} tokenChip
 * @param {(step: number) => void} onStep called with the number of a merge
 * @param {HTMLElement} actions buttons for the whole vocabulary
 * @returns {{element: HTMLElement, reset: () => void, draw: (replay: import("./training_replay.js").TrainingReplay) => void,
 *   places: () => import("./join_motion.js").Places, moves: (before: import("./join_motion.js").Places) => (duration: number) => void}}
 */
export function createTrainingVocabulary(tokenChip, onStep, actions) {
  /** Buttons that need not be made again, by the index of the merge. */
  let made = new Map();

  const list = make("div", { class: "vocabulary-list", role: "group", "aria-label": "Learned tokens, the newest first" });
  const more = make("p", { class: "merges-note" });
  const note = make("p", { class: "merges-note number" });
  const heading = make("div", { class: "panel-heading" }, make("h3", { class: "panel-title" }, "Vocabulary"), note, actions);
  const element = make("section", { class: "training-part training-vocabulary" }, heading, make("div", { class: "training-scroller" }, list, more));
  roveFocus(list, () => [...list.children]);

  function reset() {
    made = new Map();
  }

  function draw(replay) {
    const from = Math.max(replay.step - MAX_TOKENS, 0);
    const kept = new Map();
    for (let index = replay.step - 1; index >= from; index -= 1) {
      const button = made.get(index) ?? tokenButton(replay, index);
      const isNewest = index === replay.step - 1;
      button.classList.toggle("is-new", isNewest);
      button.tabIndex = isNewest ? 0 : -1;
      kept.set(index, button);
    }
    made = kept;
    setChildren(list, [...kept.values()]);
    note.textContent = `${formatNumber(256 + replay.step)} ids, ${formatNumber(replay.step)} learned`;
    more.hidden = replay.step > 0 && from === 0;
    more.textContent = replay.step === 0 ? "Each merge adds a token." : `${countNoun(from, "older token")}.`;
  }

  function tokenButton(replay, index) {
    const { left, right, id, count } = replay.merges[index];
    const parts = [left, right].map((part) => spokenToken(replay.tokenBytes(part))).join(" and ");
    const label = `${spokenToken(replay.tokenBytes(id))}: id ${id}, merge ${index + 1} of ${parts}, ${countNoun(count, "time")}`;
    const attributes = {
      class: "vocabulary-token", type: "button", "aria-label": label, title: label, "data-place": id, onclick: () => onStep(index + 1),
    };
    return make("button", attributes, tokenChip(id));
  }

  return { element, reset, draw, places: () => recordPlaces(list), moves: (before) => prepareMoves(list, before) };
}

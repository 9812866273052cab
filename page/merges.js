// The panel of a piece: its symbols after each merge, the possible merges, and the merge tree.

import { symbolsLeftOut } from "./chips.js";
import { countNoun, formatNumber, make } from "./dom.js";
import { iconButton } from "./icons.js";
import { prepareMoves, recordPlaces } from "./join_motion.js";
import { MergeSteps, PairRanks } from "./merge_steps.js";
import { createMergeTree } from "./merge_tree.js";
import { spokenToken } from "./printable.js";
import { createStepControls } from "./step_controls.js";
import { directionOf } from "./token_rows.js";

// A longer piece is cut: its tree has more nodes than anybody can look at.
const MAX_PIECE_BYTES = 4096;
const MAX_SYMBOLS = 300;
// Room for the mark below the next pair.
const SYMBOL_MARGIN = 12;
const MAX_CANDIDATES = 12;
// The worker answers other calls between two groups of traces.
const TRACES_AT_ONCE = 64;

/**
 * Makes the panel that steps through the merges of a piece.
 * @param {object} context what app.js gives to modes and panels
 * @returns {{element: HTMLElement, show: (piece: {key: number, bytes: Uint8Array, title?: string}) => Promise<void>,
 *   clear: () => void}}
 */
export function createMergesPanel(context) {
  const { announce, chip, client, store } = context;
  /** The piece that is shown: its steps and ranks. */
  let [shown, calls] = [null, 0];

  const title = make("h2", { class: "merges-heading" }, "Merges of a piece");
  const summary = make("p", { class: "merges-summary" });
  const notice = make("p", { class: "merges-notice", hidden: true });
  const controls = createStepControls({ label: "Merges of the piece", announce, show: (step, before) => draw(step, before) });
  const symbols = make("div", { class: "merges-symbols" });
  const sentence = make("p", { class: "merges-sentence" });
  const stage = make(
    "div", { class: "merges-stage", tabindex: 0, role: "group", "aria-label": "Symbols of the piece. Arrow keys step, space plays." },
    symbols, sentence,
  );
  const candidates = make("ol", { class: "merges-candidates" });
  const others = make("p", { class: "merges-note" });
  const possible = make(
    "section", { class: "merges-possible" },
    make("div", { class: "merges-part-heading" }, make("h3", { class: "merges-title" }, "Possible merges"),
      make("p", { class: "merges-note" }, "The lowest rank applies.")),
    candidates, others,
  );
  const tree = createMergeTree((step) => controls.go(step));
  const list = make("ol", { class: "merges-list" });
  const listing = make("details", { class: "merges-listing" }, make("summary", {}, "The merges in words"), list);
  const body = make(
    "div", { class: "merges-body" }, controls.element,
    make("div", { class: "merges-columns" }, make("div", { class: "merges-main" }, stage, tree.element), possible), listing,
  );
  const enlarge = make("button", { class: "button small merges-enlarge", type: "button", onclick: () => openDialog() }, "Enlarge");
  const close = iconButton("close", "Close", () => dialog.close(), { class: "small", hidden: true });
  const heading = make(
    "div", { class: "merges-top" }, make("div", { class: "merges-part-heading" }, title, summary), make("div", { class: "merges-tools" }, enlarge, close),
  );
  const content = make("div", { class: "merges-content" }, heading, notice, body);
  const dialog = make("dialog", { class: "dialog merges-dialog", "aria-label": "Merges of a piece", onclose: () => closeDialog() });
  const element = make("section", { class: "merges", "aria-label": "Merges of a piece", hidden: true }, content, dialog);
  element.addEventListener("keydown", (event) => {
    // The arrow keys scroll the tree when it has the focus.
    if (!event.target.closest(".tree-scroller, summary, .merges-list")) controls.press(event);
  });
  listing.addEventListener("toggle", drawList);
  store.subscribe((state, before) => {
    if (shown && state.showsInvisible !== before.showsInvisible) draw(controls.step(), controls.step());
  });

  // The same elements in a dialog as large as the window.
  function openDialog() {
    dialog.showModal();
    dialog.append(content);
    [enlarge.hidden, close.hidden] = [true, false];
    stage.focus({ preventScroll: true });
  }

  function closeDialog() {
    element.prepend(content);
    [enlarge.hidden, close.hidden] = [false, true];
    enlarge.focus({ preventScroll: true });
  }

  async function show({ key, bytes, title: name }) {
    calls += 1;
    const call = calls;
    controls.pause();
    try {
      const piece = bytes.subarray(0, cutLength(bytes));
      const trace = await client.trace(key, piece.slice());
      const ids = [...trace.symbols, ...trace.merges.map(({ id }) => id), ...trace.ids];
      const bytesOf = await client.tokenBytes(key, ids.filter((id) => id !== null));
      if (call !== calls) return;
      const steps = new MergeSteps(trace, piece, (id) => bytesOf.get(id));
      const ranks = new PairRanks((pair) => client.trace(key, pair));
      shown = { steps, ranks, bytes, piece };
      title.replaceChildren(name || "Merges of a piece");
      const isRightToLeft = directionOf(piece) === "rtl";
      for (const each of [symbols, candidates]) each.classList.toggle("is-right-to-left", isRightToLeft);
      writeNotice();
      element.hidden = false;
      body.hidden = steps.nodes.length === 0;
      body.classList.toggle("is-single", steps.nodes.length === 1);
      enlarge.hidden = steps.nodes.length <= 1 || dialog.open;
      controls.reset(steps.length, 0);
      tree.reset(steps, isRightToLeft);
      listing.open = false;
      draw(0, 0);
    } catch (error) {
      if (call === calls) fail(error);
    }
  }

  function fail(error) {
    shown = null;
    element.hidden = false;
    body.hidden = true;
    summary.textContent = "";
    notice.hidden = false;
    notice.textContent = `The merges cannot be shown: ${error.message}`;
  }

  function clear() {
    calls += 1;
    shown = null;
    controls.pause();
    if (dialog.open) dialog.close();
    element.hidden = true;
  }

  function writeNotice() {
    const { steps, bytes, piece } = shown;
    const { trace } = steps;
    const tokens = countNoun(steps.roots.filter(({ id }) => id !== null).length, "token");
    summary.textContent = steps.nodes.length === 0
      ? "The piece is empty."
      : `${countNoun(piece.length, "byte")}, ${countNoun(steps.length, "merge")}, ${tokens}`;
    const notes = [];
    if (piece.length < bytes.length) {
      notes.push(`The piece has ${countNoun(bytes.length, "byte")}. The steps show its first ${formatNumber(piece.length)}, as a piece of their own.`);
    }
    if (trace.isWhole && piece.length === bytes.length && steps.nodes.length > 1) {
      const same = steps.roots.length === 1 && steps.roots[0].id === trace.ids[0];
      notes.push(`The whole piece is token ${trace.ids[0]}, which this tokenizer takes without merging. `
        + (same ? "Merging makes the same token." : "Merging would give other tokens."));
    }
    if (!steps.isExact) notes.push("Some characters have no token. The possible merges list only the ones that apply.");
    notice.hidden = notes.length === 0;
    notice.textContent = notes.join(" ");
  }

  function draw(step, before) {
    const { steps } = shown;
    const isForward = step === before + 1;
    drawSymbols(step, isForward);
    writeSentence(step);
    tree.draw(step, isForward);
    drawCandidates(step, isForward);
    markList(step);
    return spokenStep(steps, step);
  }

  function drawSymbols(step, isForward) {
    const { steps } = shown;
    const current = steps.symbols(step);
    const made = step > 0 ? steps.made(step) : null;
    const next = step < steps.length ? steps.made(step + 1) : null;
    const places = isForward && controls.motion() > 0 ? recordPlaces(symbols) : new Map();
    const [from, to] = windowAround(current, made ?? next);
    const drawn = [];
    if (from > 0) drawn.push(symbolsLeftOut(from, "earlier"));
    for (let index = from; index < to; index += 1) {
      const node = current[index];
      const state = [node === made && "is-new", node === next?.left && "is-next-left", node === next?.right && "is-next-right"];
      drawn.push(symbolChip(node, state.filter(Boolean).join(" ")));
    }
    if (to < current.length) drawn.push(symbolsLeftOut(current.length - to, "later"));
    symbols.replaceChildren(...drawn);
    reveal(symbols.querySelector(".is-new") ?? symbols.querySelector(".is-next-left"));
    const joins = made ? new Map([[String(made.index), [String(made.left.index), String(made.right.index)]]]) : new Map();
    prepareMoves(symbols, places, joins)(controls.motion());
  }

  // Scrolls only the symbols: `scrollIntoView` would move the page.
  function reveal(symbol) {
    if (symbol === null || symbols.scrollHeight <= symbols.clientHeight) return;
    const end = symbol.offsetTop + symbol.offsetHeight + SYMBOL_MARGIN;
    if (symbol.offsetTop < symbols.scrollTop) symbols.scrollTop = symbol.offsetTop - SYMBOL_MARGIN;
    else if (end > symbols.scrollTop + symbols.clientHeight) symbols.scrollTop = end - symbols.clientHeight;
  }

  function symbolChip(node, state) {
    const { steps } = shown;
    const chipElement = node.id === null
      ? make("span", { class: "chip chip-gap" }, "gap")
      : chip({ bytes: node.bytes, colour: steps.rootIndex(node) });
    const isInitial = node.step === 0 && node.until !== Infinity;
    const made = make("span", { class: `merges-symbol ${isInitial ? "is-initial" : ""} ${state}`, "data-place": node.index }, chipElement);
    if (node.id !== null) made.title = `id ${node.id}`;
    return made;
  }

  function writeSentence(step) {
    const { steps } = shown;
    sentence.replaceChildren();
    if (steps.nodes.length === 1) {
      sentence.append("The piece is one symbol, so there is nothing to merge. ", resultIds());
      return;
    }
    if (step === 0) {
      const count = countNoun(steps.symbols(0).length, "symbol");
      sentence.append(`The piece begins as ${count}${steps.isOfBytes ? ", one for each byte" : ""}.`);
      if (steps.length === 0) sentence.append(" No two neighbours are a merge.");
      if (steps.length === 0) sentence.append(" ", resultIds());
      return;
    }
    const node = steps.made(step);
    sentence.append(
      make("b", {}, `Merge ${formatNumber(step)}`), " joins ", plainChip(node.left), " and ", plainChip(node.right), " to ", plainChip(node),
      make("span", { class: "number" }, `, rank ${formatNumber(node.rank)}, id ${node.id}.`),
    );
    if (step === steps.length) sentence.append(" No pair is left to merge. ", resultIds());
  }

  function resultIds() {
    const ids = shown.steps.roots.filter(({ id }) => id !== null).map(({ id }) => id);
    const some = ids.slice(0, 24).join(", ") + (ids.length > 24 ? ` and ${formatNumber(ids.length - 24)} more` : "");
    return make("span", { class: "number" }, `${ids.length === 1 ? "Id" : "Ids"} ${some}.`);
  }

  function plainChip(node) {
    return chip({ bytes: node.bytes, colour: shown.steps.rootIndex(node) });
  }

  /** Lists what is known at once, and again when the other ranks are found. */
  async function drawCandidates(step, isForward) {
    const { steps, ranks } = shown;
    const call = calls;
    const pairs = steps.isExact ? steps.pairs(step) : [];
    listCandidates(step, pairs, isForward);
    const unknown = pairs.filter((pair) => ranks.get(pair) === undefined);
    try {
      for (let at = 0; at < unknown.length; at += TRACES_AT_ONCE) {
        await Promise.all(unknown.slice(at, at + TRACES_AT_ONCE).map((pair) => ranks.find(pair)));
        if (call !== calls || controls.step() !== step) return;
      }
    } catch (error) {
      others.textContent = `The other ranks are not known: ${error.message}`;
      return;
    }
    if (unknown.length > 0) listCandidates(step, pairs, isForward);
  }

  function listCandidates(step, pairs, isMoving) {
    const { steps, ranks } = shown;
    const places = isMoving && controls.motion() > 0 ? recordPlaces(candidates) : new Map();
    const next = step < steps.length ? steps.made(step + 1) : null;
    const isNext = ({ left, right }) => next !== null && left.id === next.left.id && right.id === next.right.id;
    const found = pairs.filter((pair) => !isNext(pair) && typeof ranks.get(pair) === "number");
    found.sort((a, b) => ranks.get(a) - ranks.get(b));
    const rows = found.slice(0, MAX_CANDIDATES - 1).map((pair) => candidateRow(pair, ranks.get(pair), false));
    if (next) {
      const pair = pairs.find(isNext) ?? { left: next.left, right: next.right, count: 1 };
      rows.unshift(candidateRow({ ...pair, left: next.left, right: next.right }, next.rank, true));
    }
    candidates.replaceChildren(...rows);
    prepareMoves(candidates, places)(controls.motion());
    const isKnown = pairs.every((pair) => ranks.get(pair) !== undefined || isNext(pair));
    const hidden = found.length - rows.length + (next ? 1 : 0);
    const refused = pairs.filter((pair) => ranks.get(pair) === null).length;
    const notes = [];
    if (!isKnown) notes.push("Looking up the other pairs…");
    else {
      if (hidden > 0) notes.push(`${countNoun(hidden, "more possible merge")}.`);
      if (!next && refused === 0) notes.push(steps.roots.length === 1 ? "None: one symbol is left." : "None.");
      const kind = rows.length > 0 ? "other pair" : "pair";
      if (refused > 0) notes.push(`${next ? "" : "None: "}${countNoun(refused, kind)} of neighbours ${refused === 1 ? "is not a merge" : "are not merges"}.`);
    }
    others.textContent = notes.join(" ");
  }

  function candidateRow({ left, right, count }, rank, isNext) {
    const pair = make("span", { class: "merges-pair" }, plainChip(left), plainChip(right));
    const row = make("li", { class: isNext ? "is-next" : "", "data-place": `${left.id} ${right.id}` }, make("span", { class: "merges-rank number" }, formatNumber(rank)), pair);
    if (count > 1) row.append(make("span", { class: "merges-count number" }, `×${formatNumber(count)}`));
    if (isNext) row.append(make("span", { class: "merges-badge" }, "next"));
    return row;
  }

  function drawList() {
    if (!listing.open || shown === null) {
      list.replaceChildren();
      return;
    }
    const { steps } = shown;
    const rows = steps.trace.merges.map((merge, index) => {
      const node = steps.made(index + 1);
      const words = `${spokenToken(node.left.bytes)} and ${spokenToken(node.right.bytes)} join to ${spokenToken(node.bytes)}`;
      const go = () => controls.go(index + 1);
      const jump = make("button", { type: "button", class: "merges-jump", onclick: go }, `${words}: rank ${formatNumber(merge.rank)}, id ${merge.id}`);
      return make("li", {}, jump);
    });
    if (rows.length === 0) rows.push(make("li", {}, "This piece has no merges."));
    list.replaceChildren(...rows);
    markList(controls.step());
  }

  function markList(step) {
    list.querySelector("[aria-current]")?.removeAttribute("aria-current");
    list.children[step - 1]?.firstElementChild?.setAttribute("aria-current", "step");
  }

  return { element, show, clear };
}

/** The length of a piece, or of its longest beginning within the limit that ends with a whole character. */
function cutLength(bytes) {
  if (bytes.length <= MAX_PIECE_BYTES) return bytes.length;
  let length = MAX_PIECE_BYTES;
  while (length > MAX_PIECE_BYTES - 4 && (bytes[length] & 0xc0) === 0x80) length -= 1;
  return length;
}

/** The part of the symbols that is drawn: those around a node. */
function windowAround(current, node) {
  if (current.length <= MAX_SYMBOLS) return [0, current.length];
  const at = node ? current.findIndex((each) => each.end > node.start) : 0;
  const from = Math.min(Math.max(at - MAX_SYMBOLS / 2, 0), current.length - MAX_SYMBOLS);
  return [from, from + MAX_SYMBOLS];
}

function spokenStep(steps, step) {
  if (step === 0) return `No merge yet: ${countNoun(steps.symbols(0).length, "symbol")}.`;
  const { left, right, bytes, rank } = steps.made(step);
  const end = step === steps.length ? ` The piece has ${countNoun(steps.roots.length, "token")}.` : "";
  return `Merge ${step}: ${spokenToken(left.bytes)} and ${spokenToken(right.bytes)} join to ${spokenToken(bytes)}, rank ${rank}.${end}`;
}

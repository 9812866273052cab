// The merge tree of a piece as SVG: the initial symbols in the first row, and below them the tokens that they join to.

import { make, makeSvg } from "./dom.js";
import { iconButton } from "./icons.js";
import { prefersStillness } from "./join_motion.js";
import { pictureButtons } from "./picture.js";
import { printable, spokenToken, visibleParts } from "./printable.js";

const [PADDING, GAP, MARGIN] = [8, 6, 12];
const [LEAF_HEIGHT, NODE_HEIGHT, ROW_HEIGHT] = [28, 40, 66];
const MIN_WIDTH = 24;
const TOKEN_FONT = '15px ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Noto Sans Mono", monospace';
// A figure of the ranks, which are smaller than the tokens.
const RANK_CELL = 6.6;
const ZOOMS = [0.25, 0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.5, 2];
const NATURAL_ZOOM = ZOOMS.indexOf(1);
// Nodes further from the visible part than this are not in the document.
const WINDOW_MARGIN = 600;

/**
 * A token as a line of text: signs for spaces, names of other invisible characters, hexadecimal bytes.
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function tokenLine(bytes) {
  const parts = printable(bytes).parts.flatMap((part) => (part.isHex ? [part] : visibleParts(part.text, true)));
  return parts.map((part) => part.text).join("");
}

/**
 * @param {(step: number) => void} onStep called with the number of the merge of a node that is clicked
 * @returns {{element: HTMLElement, reset: (steps: import("./merge_steps.js").MergeSteps, isRightToLeft: boolean) => void,
 *   draw: (step: number, isAnimated: boolean) => void}}
 */
export function createMergeTree(onStep) {
  let [steps, isMirrored, step, zoom, isWhole] = [null, false, 0, NATURAL_ZOOM, false];
  let layout = { boxes: [], width: 0, height: 0 };
  /** The drawn nodes by index. */
  const drawn = new Map();

  const edges = makeSvg("g", { class: "tree-edges" });
  const nodes = makeSvg("g", { class: "tree-nodes" });
  const svg = makeSvg("svg", { class: "tree-svg", role: "img" }, edges, nodes);
  const scroller = make("div", { class: "tree-scroller", tabindex: 0, role: "region", "aria-label": "Merge tree" });
  scroller.append(svg);
  const out = iconButton("minus", "Zoom out", () => setZoom(zoom - 1), { class: "small", title: "Zoom out" });
  const into = iconButton("plus", "Zoom in", () => setZoom(zoom + 1), { class: "small", title: "Zoom in" });
  const fit = make("button", { class: "button plain small", type: "button", onclick: () => fitWidth() }, "Fit");
  fit.title = "Fit the width";
  const tools = make(
    "div", { class: "tree-tools", role: "group", "aria-label": "Merge tree" }, out, fit, into, ...pictureButtons("merge tree", wholeTree),
  );
  const title = make("h3", { class: "merges-title" }, "Merge tree");
  const legend = make("p", { class: "merges-note" }, "The numbers are ranks.");
  const heading = make("div", { class: "merges-part-heading" }, title, legend, tools);
  const element = make("div", { class: "merges-tree" }, heading, scroller);

  /** The tree with all its nodes, as a picture shows it. */
  function wholeTree() {
    isWhole = true;
    update(false);
    isWhole = false;
    return svg;
  }

  let frame = 0;
  scroller.addEventListener("scroll", () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => update(false));
  });
  new ResizeObserver(() => update(false)).observe(scroller);

  function reset(newSteps, isRightToLeft) {
    [steps, isMirrored, step] = [newSteps, isRightToLeft, 0];
    layout = layOut(steps, isMirrored);
    drawn.clear();
    edges.replaceChildren();
    nodes.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
    setZoom(NATURAL_ZOOM);
    scroller.scrollTo(isMirrored ? scroller.scrollWidth : 0, 0);
  }

  function setZoom(wanted) {
    const middle = (scroller.scrollLeft + scroller.clientWidth / 2) / ZOOMS[zoom];
    zoom = Math.min(Math.max(wanted, 0), ZOOMS.length - 1);
    svg.setAttribute("width", String(layout.width * ZOOMS[zoom]));
    svg.setAttribute("height", String(layout.height * ZOOMS[zoom]));
    scroller.scrollLeft = middle * ZOOMS[zoom] - scroller.clientWidth / 2;
    out.setAttribute("aria-disabled", String(zoom === 0));
    into.setAttribute("aria-disabled", String(zoom === ZOOMS.length - 1));
    update(false);
  }

  function fitWidth() {
    const share = scroller.clientWidth / layout.width;
    setZoom(Math.max(ZOOMS.findLastIndex((each) => each <= Math.min(share, 1)), 0));
  }

  function draw(newStep, isAnimated) {
    step = newStep;
    update(isAnimated);
    const node = step > 0 ? steps.made(step) : null;
    if (node) reveal(layout.boxes[node.index], isAnimated && !prefersStillness());
    svg.setAttribute("aria-label", describe(steps, step));
  }

  // Scrolls only the tree: `scrollIntoView` would move the page.
  function reveal(box, isSmooth) {
    const scale = ZOOMS[zoom];
    const [left, right] = [box.x * scale - 40, (box.x + box.width) * scale + 40];
    const [top, bottom] = [box.y * scale - 20, (box.y + box.height) * scale + 20];
    let [x, y] = [scroller.scrollLeft, scroller.scrollTop];
    if (right > x + scroller.clientWidth || left < x) x = (left + right - scroller.clientWidth) / 2;
    if (bottom > y + scroller.clientHeight) y = bottom - scroller.clientHeight;
    else if (top < y) y = top;
    if (x !== scroller.scrollLeft || y !== scroller.scrollTop) scroller.scrollTo({ left: x, top: y, behavior: isSmooth ? "smooth" : "auto" });
  }

  function update(isAnimated) {
    if (steps === null) return;
    const scale = ZOOMS[zoom];
    const from = scroller.scrollLeft / scale - WINDOW_MARGIN;
    const to = (scroller.scrollLeft + scroller.clientWidth) / scale + WINDOW_MARGIN;
    for (const node of steps.nodes) {
      const box = layout.boxes[node.index];
      const isVisible = isWhole || box.x < to && box.x + box.width > from;
      const parts = drawn.get(node.index);
      if (!isVisible) {
        for (const part of parts ?? []) part.remove();
        drawn.delete(node.index);
        continue;
      }
      const kind = stateOf(node, step);
      const colour = node.step === 0 && kind === "is-current" ? "" : ` chip-colour-${steps.rootIndex(node) % 8}`;
      const grows = isAnimated && node.step === step && node.step > 0 ? " grows" : "";
      const [group, edge] = parts ?? drawNode(node, box);
      const isNew = node.step === step && step > 0 ? " is-new" : "";
      const isMade = node.step > 0 ? " is-made" : "";
      group.setAttribute("class", `tree-node ${kind}${colour}${grows}${isNew}${isMade}`);
      edge?.setAttribute("class", `tree-edge ${kind}${grows}`);
    }
  }

  function drawNode(node, box) {
    const middle = box.x + box.width / 2;
    const rect = makeSvg("rect", { x: box.x, y: box.y, width: box.width, height: box.height, rx: 6 });
    const token = makeSvg("text", { x: middle, y: box.y + 19, class: node.id === null ? "tree-gap" : "tree-token" }, box.label);
    const hint = makeSvg("title", {}, nodeHint(node));
    const group = makeSvg("g", {}, hint, rect, token);
    let edge = null;
    if (node.step > 0) {
      group.append(makeSvg("text", { x: middle, y: box.y + 33, class: "tree-rank" }, String(node.rank)));
      edge = makeSvg("path", { d: edgePath(box, [node.left, node.right].map((part) => layout.boxes[part.index])), pathLength: 1 });
      edges.append(edge);
      group.addEventListener("click", () => onStep(node.step));
    }
    nodes.append(group);
    const parts = edge ? [group, edge] : [group];
    drawn.set(node.index, parts);
    return parts;
  }

  return { element, reset, draw };
}

/** Where each node is: a node is in the middle of its initial symbols, so nodes never overlap. */
function layOut(steps, isMirrored) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = TOKEN_FONT;
  const boxes = [];
  let width = MARGIN;
  for (const node of steps.nodes) {
    const label = node.id === null ? "gap" : tokenLine(node.bytes);
    const rankWidth = node.rank === null ? 0 : String(node.rank).length * RANK_CELL;
    const own = Math.max(context.measureText(label).width, rankWidth, MIN_WIDTH - 2 * PADDING) + 2 * PADDING;
    const box = { label, x: width, y: MARGIN, width: own, height: LEAF_HEIGHT, from: width, to: width + own };
    if (node.step > 0) {
      const [left, right] = [boxes[node.left.index], boxes[node.right.index]];
      Object.assign(box, { from: left.from, to: right.to, height: NODE_HEIGHT });
      box.x = (box.from + box.to - own) / 2;
      box.y = MARGIN + LEAF_HEIGHT - NODE_HEIGHT + node.level * ROW_HEIGHT;
    } else {
      width += own + GAP;
    }
    boxes.push(box);
  }
  width += MARGIN - GAP;
  if (isMirrored) for (const box of boxes) box.x = width - box.x - box.width;
  const height = 2 * MARGIN + LEAF_HEIGHT + steps.height * ROW_HEIGHT;
  return { boxes, width, height };
}

/** Lines from the middles of the parts to the middle of their token. */
function edgePath(box, parts) {
  const [x, y] = [box.x + box.width / 2, box.y];
  return parts.map((part) => {
    const [startX, startY] = [part.x + part.width / 2, part.y + part.height];
    // The line drops straight to the row of the token, so it crosses no other token.
    return `M${startX} ${startY}V${y - 22}C${startX} ${y - 6} ${x} ${y - 18} ${x} ${y}`;
  }).join("");
}

/** Whether a node is a current symbol, part of one, made by the next merge, or made later. */
function stateOf(node, step) {
  if (node.step > step + 1) return "is-later";
  if (node.step > step) return "is-next";
  return node.until <= step ? "is-joined" : "is-current";
}

function nodeHint(node) {
  if (node.id === null) return "a character without a token";
  const token = `${tokenLine(node.bytes)} (id ${node.id})`;
  return node.step ? `merge ${node.step}, rank ${node.rank}: ${token}` : token;
}

function describe(steps, step) {
  const symbols = steps.symbols(step);
  const tokens = symbols.slice(0, 12).map(({ id, bytes }) => (id === null ? "gap" : spokenToken(bytes))).join(", ");
  const more = symbols.length > 12 ? ` and ${symbols.length - 12} more` : "";
  return `Merge tree after ${step} of ${steps.length} merges. Symbols: ${tokens}${more}. The list of merges has the same in words.`;
}

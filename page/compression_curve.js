// The number of tokens of the text after each merge, as a curve with a mark at the present step.

import { formatNumber, make, makeSvg } from "./dom.js";

const MIN_HEIGHT = 204;
const [TOP, RIGHT, BOTTOM] = [14, 14, 40];
// Twice the padding of the frame.
const FRAME = 16;
const CHARACTER = 6.8;
const MAX_POINTS = 1200;

/**
 * @param {(step: number) => void} onStep called with the step under the pointer
 * @returns {{element: HTMLElement, reset: (replay: import("./training_replay.js").TrainingReplay) => void,
 *   draw: (step: number) => void}}
 */
export function createCompressionCurve(onStep) {
  let [replay, step, scale] = [null, 0, null];

  const svg = makeSvg("svg", { class: "curve-svg", role: "img" });
  const note = make("p", { class: "merges-note number" });
  const heading = make("div", { class: "panel-heading" }, make("h3", { class: "panel-title" }, "Compression"), note);
  const frame = make("div", { class: "curve-frame" });
  frame.append(svg);
  const element = make("section", { class: "training-part training-curve" }, heading, frame);
  new ResizeObserver(() => replay && layOut()).observe(frame);

  svg.addEventListener("pointerdown", (event) => {
    svg.setPointerCapture(event.pointerId);
    seek(event);
  });
  svg.addEventListener("pointermove", (event) => {
    if (svg.hasPointerCapture(event.pointerId)) seek(event);
  });

  function seek(event) {
    if (scale === null) return;
    const x = event.clientX - svg.getBoundingClientRect().left;
    onStep(Math.round(((x - scale.left) / (scale.right - scale.left)) * replay.length));
  }

  function reset(newReplay) {
    replay = newReplay;
    layOut();
  }

  function layOut() {
    // The frame is as high as its panel, which does not depend on the drawing.
    const [width, height] = [frame.clientWidth - FRAME, Math.max(frame.clientHeight - FRAME, MIN_HEIGHT)];
    if (width <= 0) return;
    const ticks = roundTicks(replay.curve[0], Math.max(2, Math.floor(height / 50)));
    const top = ticks.at(-1);
    const left = 10 + CHARACTER * Math.max(...ticks.map((tick) => formatNumber(tick).length));
    const [right, bottom] = [width - RIGHT, height - BOTTOM];
    const across = (merges) => left + ((right - left) * merges) / Math.max(replay.length, 1);
    const up = (tokens) => bottom - ((bottom - TOP) * tokens) / top;
    scale = { left, right, across, up };
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", String(width));
    svg.setAttribute("height", String(height));
    const parts = [];
    for (const tick of ticks) {
      parts.push(makeSvg("line", { class: "curve-grid", x1: left, x2: right, y1: up(tick), y2: up(tick) }));
      parts.push(makeSvg("text", { class: "curve-label is-end", x: left - 6, y: up(tick) + 4 }, formatNumber(tick)));
    }
    let free = 0;
    for (const tick of roundTicks(replay.length, Math.max(2, Math.floor(width / 90))).filter((each) => each <= replay.length && Number.isInteger(each))) {
      const half = (formatNumber(tick).length * CHARACTER) / 2;
      const middle = Math.min(across(tick), width - half);
      if (middle - half < free) continue;
      free = middle + half + 8;
      parts.push(makeSvg("line", { class: "curve-tick", x1: across(tick), x2: across(tick), y1: bottom, y2: bottom + 4 }));
      parts.push(makeSvg("text", { class: "curve-label is-middle", x: middle, y: bottom + 17 }, formatNumber(tick)));
    }
    parts.push(makeSvg("text", { class: "curve-label is-middle", x: (left + right) / 2, y: height - 6 }, "merges"));
    const stride = Math.max(1, Math.ceil(replay.curve.length / MAX_POINTS));
    const points = replay.curve.map((tokens, merges) => [merges, tokens]).filter(([merges]) => merges % stride === 0 || merges === replay.length);
    const line = points.map(([merges, tokens]) => `${across(merges).toFixed(1)} ${up(tokens).toFixed(1)}`).join("L");
    const area = `M${line}L${right} ${bottom}L${left} ${bottom}Z`;
    const clip = makeSvg("clipPath", { id: "curve-done" }, makeSvg("rect", { x: left, y: 0, width: 0, height }));
    parts.push(clip, makeSvg("path", { class: "curve-area", d: area, "clip-path": "url(#curve-done)" }));
    parts.push(makeSvg("path", { class: "curve-line", d: `M${line}` }));
    parts.push(makeSvg("line", { class: "curve-baseline", x1: left, x2: right, y1: bottom, y2: bottom }));
    parts.push(makeSvg("line", { class: "curve-marker-line", y2: bottom }), makeSvg("circle", { class: "curve-marker", r: 5 }));
    svg.replaceChildren(...parts);
    draw(step);
  }

  function draw(newStep) {
    step = newStep;
    const [first, tokens] = [replay.curve[0], replay.curve[step]];
    const share = first ? tokens / first : 1;
    note.textContent = `${formatNumber(tokens)} tokens, ${formatNumber(share ? 1 / share : 1, 2)} bytes a token`;
    const last = replay.curve[replay.length];
    svg.setAttribute("aria-label", `Tokens of the text: ${formatNumber(first)} bytes at the start, ${formatNumber(tokens)} tokens after `
      + `${formatNumber(step)} merges, ${formatNumber(last)} after all ${formatNumber(replay.length)} merges.`);
    if (scale === null) return;
    const [x, y] = [scale.across(step), scale.up(tokens)];
    svg.querySelector("clipPath rect").setAttribute("width", String(Math.max(x - scale.left, 0)));
    const line = svg.querySelector(".curve-marker-line");
    for (const name of ["x1", "x2"]) line.setAttribute(name, String(x));
    line.setAttribute("y1", String(y));
    const marker = svg.querySelector(".curve-marker");
    marker.setAttribute("cx", String(x));
    marker.setAttribute("cy", String(y));
  }

  return { element, reset, draw };
}

/** Round numbers from 0 to at least `high`, about `count` of them. */
function roundTicks(high, count) {
  const rough = Math.max(high, 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((part) => part * power).find((each) => each >= rough * 0.999);
  const ticks = [];
  for (let tick = 0; tick < high + step * 0.999; tick += step) ticks.push(Math.round(tick * 1e6) / 1e6);
  return ticks;
}

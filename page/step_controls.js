// The controls of a sequence of steps: buttons, a slider, playing at a speed, and keys.

import { formatNumber, make, makeSelect } from "./dom.js";
import { icon, iconButton } from "./icons.js";

const SPEEDS = [0.5, 1, 2, 5, 20];
const DEFAULT_SPEED = 1;
// An animation is shorter than a step, and no longer than this.
const MAX_MOTION = 380;

// At a higher speed an animation is too short to see.
const MAX_MOVING_SPEED = 5;

/**
 * @typedef {object} StepControls
 * @property {HTMLElement} element
 * @property {(length: number, step: number) => void} reset sets the number of steps and the step; calls nothing
 * @property {(step: number) => void} go goes to a step, as a press of a button does
 * @property {() => number} step
 * @property {() => void} pause
 * @property {(event: KeyboardEvent) => void} press handles a key: arrows, Home, End and the space bar
 * @property {() => number} motion milliseconds for the animation of a step; 0 for none
 */

/**
 * @param {{label: string, announce: (text: string) => void, show: (step: number, previous: number) => string}} options `label` names the group. `show` draws a step and
 *   returns a sentence about it for screen readers.
 * @returns {StepControls}
 */
export function createStepControls({ label, announce, show }) {
  let [length, step, timer] = [0, 0, 0];

  const button = (name, sign, onclick) => iconButton(sign, name, onclick, { title: name });
  const first = button("First step", "first", () => move(0));
  const previous = button("Previous step", "left", () => move(step - 1));
  const play = button("Play", "play", () => (timer ? pause() : start()));
  const next = button("Next step", "right", () => move(step + 1));
  const last = button("Last step", "last", () => move(length));
  play.classList.add("step-play");
  const slider = make("input", {
    type: "range", class: "step-slider", min: 0, step: 1, "aria-label": `${label}: step`,
    oninput: () => move(Number(slider.value)),
  });
  const field = make("input", {
    class: "field small step-field number", inputmode: "numeric", autocomplete: "off", "aria-label": `${label}: go to step`,
    onchange: () => jump(), onfocus: () => field.select(),
  });
  const total = make("span", { class: "number" });
  const position = make("span", { class: "step-position" }, field, total);
  const speeds = SPEEDS.map((each) => [each, `${each} / s`]);
  const speed = makeSelect({ class: "select small step-speed", "aria-label": "Steps a second", title: "Steps a second" }, speeds);
  speed.value = String(DEFAULT_SPEED);
  const buttons = make("div", { class: "step-buttons" }, first, previous, play, next, last);
  const element = make(
    "div", { class: "step-controls", role: "group", "aria-label": label }, buttons, slider, position, speed,
  );

  function update() {
    slider.max = String(length);
    slider.value = String(step);
    slider.setAttribute("aria-valuetext", `${formatNumber(step)} of ${formatNumber(length)}`);
    slider.style.setProperty("--share", `${length ? (100 * step) / length : 0}%`);
    field.value = String(step);
    field.style.inlineSize = `${String(length).length + 0.5}ch`;
    total.textContent = `/ ${formatNumber(length)}`;
    // A disabled button loses the focus, so the buttons only say that they do nothing.
    for (const each of [first, previous]) each.setAttribute("aria-disabled", String(step === 0));
    for (const each of [next, last]) each.setAttribute("aria-disabled", String(step === length));
    play.setAttribute("aria-disabled", String(length === 0));
  }

  function showPlay() {
    const name = timer ? "Pause" : "Play";
    play.setAttribute("aria-label", name);
    play.title = name;
    play.replaceChildren(icon(timer ? "pause" : "play"));
  }

  function draw(wanted) {
    const [before, after] = [step, Math.min(Math.max(wanted, 0), length)];
    if (before === after) return "";
    step = after;
    const sentence = show(after, before);
    update();
    return sentence;
  }

  function move(wanted) {
    if (timer) pause();
    const sentence = draw(wanted);
    if (sentence) announce(sentence);
  }

  function jump() {
    const wanted = Number.parseInt(field.value, 10);
    if (!Number.isNaN(wanted)) move(wanted);
    update();
  }

  function start() {
    if (length === 0) return;
    if (step === length) draw(0);
    timer = setTimeout(tick, 0);
    showPlay();
  }

  function tick() {
    const sentence = draw(step + 1);
    if (step === length) {
      pause();
      announce(sentence);
      return;
    }
    // A screen reader cannot follow faster speeds.
    if (Number(speed.value) <= 1) announce(sentence);
    timer = setTimeout(tick, 1000 / Number(speed.value));
  }

  function pause() {
    clearTimeout(timer);
    timer = 0;
    showPlay();
  }

  function press(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const isButton = target.closest("button, a, summary") !== null;
    if (target.matches("select, textarea, input:not([type=range])")) return;
    const moves = {
      ArrowLeft: () => move(step - 1),
      ArrowRight: () => move(step + 1),
      Home: () => move(0),
      End: () => move(length),
    };
    if (event.key in moves) moves[event.key]();
    else if (event.key === " " && !isButton) play.click();
    else return;
    event.preventDefault();
  }

  update();
  return {
    element,
    reset(newLength, newStep) {
      pause();
      [length, step] = [newLength, Math.min(Math.max(newStep, 0), newLength)];
      update();
    },
    go: move,
    step: () => step,
    pause,
    press,
    motion: () => (timer ? motionAt(Number(speed.value)) : MAX_MOTION),
  };
}

function motionAt(speed) {
  return speed > MAX_MOVING_SPEED ? 0 : Math.min(MAX_MOTION, 600 / speed);
}

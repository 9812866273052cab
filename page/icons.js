/** The icons of the page: paths of 24 by 24 units, drawn with a line of the text's colour. */

import { make, makeSvg } from "./dom.js";

const PATHS = {
  share: "M12 15V4m0 0L8 8m4-4 4 4M5 13v5a2 2 0 0 0 2 2h10a2 2 0 0 0 2-2v-5",
  light:
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM12 2.5v2M12 19.5v2M4.2 4.2l1.4 1.4M18.4 18.4l1.4 1.4M2.5 12h2M19.5 12h2M4.2 19.8l1.4-1.4M18.4 5.6l1.4-1.4",
  dark: "M20 14.5A8 8 0 0 1 9.5 4a8 8 0 1 0 10.5 10.5Z",
  auto: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17Zm0 0v17M12 8l5.5-1.5M12 12h8M12 16l5.5 1.5",
  close: "m6 6 12 12M18 6 6 18",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  down: "m6 9.5 6 6 6-6",
  up: "m6 14.5 6-6 6 6",
  left: "m14.5 6-6 6 6 6",
  right: "m9.5 6 6 6-6 6",
  first: "M18.5 6l-6 6 6 6M11.5 6l-6 6 6 6",
  last: "m5.5 6 6 6-6 6M12.5 6l6 6-6 6",
  play: "M8 5.5v13l10.5-6.5L8 5.5Z",
  pause: "M9 6v12M15 6v12",
  check: "m5 12.5 4.5 4.5L19 7.5",
  copy: "M9 9h10v11H9zM5 15V4h10",
  link:
    "M10 14a4 4 0 0 0 6 .4l2.6-2.6a4 4 0 0 0-5.7-5.7L11.6 7.4M14 10a4 4 0 0 0-6-.4l-2.6 2.6a4 4 0 0 0 5.7 5.7l1.3-1.3",
  file: "M13.5 3.5H7a1.5 1.5 0 0 0-1.5 1.5v14A1.5 1.5 0 0 0 7 20.5h10a1.5 1.5 0 0 0 1.5-1.5V8.5l-5-5ZM13.5 3.5v5h5",
  compare: "M4.5 5h6v14h-6zM13.5 5h6v14h-6z",
  warning: "M12 4 2.8 19.5h18.4L12 4Zm0 6v4.5m0 2.5v.1",
  info: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17ZM12 11v5.5M12 7.5v.1",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  user: "M12 4.5a3.7 3.7 0 1 0 0 7.4 3.7 3.7 0 0 0 0-7.4ZM4.5 20c.8-3.7 3.8-5.5 7.5-5.5s6.7 1.8 7.5 5.5",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7",
  print: "M7 9V4h10v5M7 17H4.5V9h15v8H17M7 14h10v6H7z",
  braces:
    "M9 4.5H8A2 2 0 0 0 6 6.5v3.2L4.5 12 6 14.3v3.2a2 2 0 0 0 2 2h1M15 4.5h1a2 2 0 0 1 2 2v3.2l1.5 2.3-1.5 2.3v3.2a2 2 0 0 1-2 2h-1",
  hash: "M9.5 4 7.5 20M16.5 4l-2 16M4.5 9h16M3.5 15h16",
  download: "M12 4v11m0 0-4-4m4 4 4-4M5 19.5h14",
  drop: "M12 4v9m0 0-3.5-3.5M12 13l3.5-3.5M4.5 14.5V19h15v-4.5",
};

/**
 * Makes an icon. An unknown name is an empty icon.
 * @param {string} name
 * @returns {SVGElement}
 */
export function icon(name) {
  const svg = makeSvg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" });
  const path = { d: PATHS[name] || "", fill: name === "play" ? "currentColor" : "none" };
  svg.append(makeSvg("path", {
    ...path,
    stroke: "currentColor",
    "stroke-width": "1.6",
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  }));
  return svg;
}

/**
 * Makes a button that is an icon.
 * @param {string} name of the icon
 * @param {string} label
 * @param {() => void} onclick
 * @param {Record<string, any>} [attributes] others; `class` adds classes
 */
export function iconButton(name, label, onclick, { class: more = "", ...attributes } = {}) {
  return make("button", { type: "button", class: `button plain icon-only ${more}`, "aria-label": label, onclick, ...attributes }, icon(name));
}

/** Makes a small button with an icon and a text; `attributes` as those of `iconButton`. */
export function textButton(name, text, onclick, { class: more = "", ...attributes } = {}) {
  return make("button", { type: "button", class: `button small ${more}`, onclick, ...attributes }, icon(name), text);
}

/**
 * The mark of the page: two rounded squares that join into one wider one, as two tokens merge.
 * @returns {SVGElement}
 */
export function brandMark() {
  const svg = makeSvg("svg", { viewBox: "0 0 32 32", "aria-hidden": "true", focusable: "false" });
  const parts = [
    { x: 2, y: 3, width: 12, height: 11, rx: 3.5, class: "mark-left" },
    { x: 18, y: 3, width: 12, height: 11, rx: 3.5, class: "mark-right" },
    { x: 2, y: 18, width: 28, height: 11, rx: 3.5, class: "mark-whole" },
  ];
  for (const part of parts) svg.append(makeSvg("rect", part));
  return svg;
}

/** Pictures of what the page shows: parts of the document as SVG that stands alone, and as PNG. */

import { downloadFile, make, makeSvg } from "./dom.js";
import { textButton } from "./icons.js";

const PICTURE_MARGIN = 16;
const PNG_SCALE = 2;
// Browsers refuse larger canvases.
const MAX_PIXELS = 16_000;
const OMITTED = "button, input, select, textarea, .visually-hidden, .no-picture, [hidden]";
const DRAWN_STYLES = [
  "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "visibility", "text-anchor",
  "font-family", "font-size", "font-weight", "white-space",
];

/**
 * Makes two buttons that offer a picture of an element.
 * @param {string} name of the files
 * @param {() => Element} shown
 */
export function pictureButtons(name, shown) {
  const button = (kind, save) =>
    textButton("download", kind, () => void save(name, shown()), { class: "plain", "aria-label": `Download ${name} as ${kind}` });
  return [button("SVG", saveSvg), button("PNG", savePng)];
}

/** @param {string} name @param {Element} element */
export function saveSvg(name, element) {
  downloadFile(`${name}.svg`, pictureOf(element).text, "image/svg+xml");
}

export async function savePng(name, element) {
  const { text, width, height } = pictureOf(element);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const scale = Math.min(PNG_SCALE, MAX_PIXELS / Math.max(width, height));
  const canvas = make("canvas", { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.drawImage(image, 0, 0, width, height);
  canvas.toBlob((blob) => downloadFile(`${name}.png`, blob));
}

/**
 * Draws an element: backgrounds, borders, texts and graphics, where and as the browser shows them.
 * @param {Element} element
 * @returns {{text: string, width: number, height: number}}
 */
export function pictureOf(element) {
  const origin = element.getBoundingClientRect();
  const drawing = { parts: [], x: origin.left - PICTURE_MARGIN, y: origin.top - PICTURE_MARGIN, width: 0, height: 0 };
  drawElement(drawing, element);
  const [width, height] = [drawing.width + PICTURE_MARGIN, drawing.height + PICTURE_MARGIN].map(Math.ceil);
  const background = makeSvg("rect", { width, height, ...paint(surfaceColour()) });
  const svg = makeSvg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height }, background, ...drawing.parts);
  return { text: new XMLSerializer().serializeToString(svg), width, height };
}

function surfaceColour() {
  const probe = make("div", { class: "panel" });
  document.body.append(probe);
  const { backgroundColor } = getComputedStyle(probe);
  probe.remove();
  return backgroundColor;
}

function drawElement(drawing, element) {
  if (element.matches(OMITTED)) return;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  if (style.display === "none" || style.visibility === "hidden") return;
  if (element instanceof SVGElement) {
    drawGraphic(drawing, element, box);
    return;
  }
  if (box.width > 0 && box.height > 0) drawBox(drawing, style, box);
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) drawText(drawing, child, style);
    else if (child.nodeType === Node.ELEMENT_NODE) drawElement(drawing, child);
  }
}

function add(drawing, part, box) {
  drawing.parts.push(part);
  drawing.width = Math.max(drawing.width, box.right - drawing.x);
  drawing.height = Math.max(drawing.height, box.bottom - drawing.y);
}

function drawBox(drawing, style, box) {
  const place = { x: box.left - drawing.x, y: box.top - drawing.y, width: box.width, height: box.height };
  const hasBorder = parseFloat(style.borderTopWidth) > 0 && parseFloat(style.borderInlineStartWidth) > 0;
  const fill = paint(style.backgroundColor);
  if (fill || hasBorder) {
    const line = hasBorder ? { stroke: paint(style.borderTopColor).fill, "stroke-width": parseFloat(style.borderTopWidth) } : {};
    add(drawing, makeSvg("rect", { ...place, rx: parseFloat(style.borderStartStartRadius) || 0, fill: "none", ...fill, ...line }), box);
  }
  const bottom = parseFloat(style.borderBottomWidth);
  if (bottom > 0 && !hasBorder) {
    add(drawing, makeSvg("rect", { ...place, y: place.y + box.height - bottom, height: bottom, ...paint(style.borderBottomColor) }), box);
  }
  // The line under a token that differs.
  const under = /^(.+) 0px -2px 0px 0px inset$/.exec(style.boxShadow);
  if (under) add(drawing, makeSvg("rect", { ...place, y: place.y + box.height - 2, height: 2, ...paint(under[1]) }), box);
}

/** Draws a text in its lines: a run of characters with one top is a line. */
function drawText(drawing, node, style) {
  const range = document.createRange();
  let line = null;
  const end = () => {
    if (line === null || line.text.trim() === "") return;
    const { text, box } = line;
    const size = parseFloat(style.fontSize);
    add(drawing, makeSvg("text", {
      x: box.left - drawing.x, y: (box.top + box.bottom) / 2 - drawing.y, "dominant-baseline": "central", "xml:space": "preserve",
      "font-family": style.fontFamily, "font-size": size, "font-weight": style.fontWeight, textLength: box.right - box.left,
      lengthAdjust: "spacingAndGlyphs", ...paint(style.color),
    }, text), box);
  };
  let at = 0;
  for (const character of node.data) {
    range.setStart(node, at);
    at += character.length;
    range.setEnd(node, at);
    const box = range.getBoundingClientRect();
    if (box.width === 0) {
      if (line !== null) line.text += character;
      continue;
    }
    if (line !== null && Math.abs(line.box.top - box.top) < 2) {
      line.text += character;
      line.box = { top: line.box.top, bottom: line.box.bottom, left: Math.min(line.box.left, box.left), right: Math.max(line.box.right, box.right) };
    } else {
      end();
      line = { text: character, box };
    }
  }
  end();
}

function drawGraphic(drawing, element, box) {
  const copy = element.cloneNode(true);
  const [from, to] = [element, copy].map((each) => [each, ...each.querySelectorAll("*")]);
  from.forEach((each, index) => {
    const style = getComputedStyle(each);
    for (const name of DRAWN_STYLES) {
      const value = style.getPropertyValue(name);
      const colour = name === "fill" || name === "stroke" ? paint(value) : null;
      if (colour) to[index].setAttribute(name, colour.fill);
      else if (value) to[index].setAttribute(name, value);
    }
    for (const name of ["class", "style", "tabindex"]) to[index].removeAttribute(name);
  });
  for (const [name, value] of Object.entries({ x: box.left - drawing.x, y: box.top - drawing.y, width: box.width, height: box.height })) {
    copy.setAttribute(name, String(value));
  }
  add(drawing, copy, box);
}

const paints = new Map();

/** A colour as every program reads it: `fill` in hexadecimal, and its opacity; null for a transparent one. */
function paint(colour) {
  if (!paints.has(colour)) {
    const context = make("canvas", { width: 1, height: 1 }).getContext("2d");
    // What is no colour, such as `none`, leaves the canvas transparent.
    context.fillStyle = "transparent";
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
    const fill = `#${[red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("")}`;
    paints.set(colour, alpha === 0 ? null : alpha === 255 ? { fill } : { fill, "fill-opacity": (alpha / 255).toFixed(3) });
  }
  return paints.get(colour);
}

/** Makes elements. Data enters the document as text nodes and attributes only, never as HTML. */

/**
 * Makes an element. Attributes named `onclick` and so on are listeners; `true` sets an attribute without a value;
 * `false`, `null` and `undefined` leave it out.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

/** Makes an SVG element. */
export function makeSvg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** Offers a file. */
export function downloadFile(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  make("a", { href: address, download: name }).click();
  // The download reads the address after the click.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/**
 * Makes `wanted` the children of an element. What stays in its place keeps its layout, focus and animations, so a small
 * change of a long list costs little; `replaceChildren` lays out every child again.
 * @param {Element} parent
 * @param {Element[]} wanted
 */
export function setChildren(parent, wanted) {
  const kept = new Set(wanted);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  let at = parent.firstElementChild;
  for (const child of wanted) {
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
}

/**
 * Makes a checkbox that looks like a switch, with its label.
 * @param {string} label
 * @param {boolean} isOn
 * @param {(isOn: boolean) => void} changed
 * @returns {HTMLLabelElement}
 */
export function makeSwitch(label, isOn, changed) {
  const input = make("input", { type: "checkbox", role: "switch", onchange: () => changed(input.checked) });
  input.checked = isOn;
  return /** @type {HTMLLabelElement} */ (make("label", { class: "switch" }, input, make("span", {}, label)));
}

/**
 * Makes a list to choose from.
 * @param {Record<string, any>} attributes
 * @param {(string | [string | number, string])[]} options values with their texts, or values that are their texts
 * @returns {HTMLSelectElement}
 */
export function makeSelect(attributes, options) {
  const made = options.map((option) => {
    const [value, text] = Array.isArray(option) ? option : [option, option];
    return make("option", { value }, text);
  });
  return /** @type {HTMLSelectElement} */ (make("select", attributes, ...made));
}

/** Copies a text. Returns whether the browser lets the page do it. */
export async function copyToClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** Copies where the browser gives a page no clipboard, as for some files. */
function copyBySelection(text) {
  const field = make("textarea", { class: "visually-hidden", "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}

/**
 * Arrow keys, Home and End move the focus among the items of a list; Tab leaves it (roving tabindex).
 * @param {HTMLElement} list
 * @param {() => HTMLElement[]} items
 * @param {(item: HTMLElement) => void} [moved] called with the item that gets the focus
 */
export function roveFocus(list, items, moved) {
  list.addEventListener("keydown", (event) => {
    const all = items();
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (at < 0) return;
    const forwards = getComputedStyle(list).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const next = {
      [forwards]: at + 1,
      [forwards === "ArrowRight" ? "ArrowLeft" : "ArrowRight"]: at - 1,
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: all.length - 1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const item = all[(next + all.length) % all.length];
    for (const each of all) each.tabIndex = each === item ? 0 : -1;
    item.focus();
    if (moved) moved(item);
  });
}

/**
 * Writes a number with separators of thousands, and a noun: "1 token", "1,234 tokens".
 * @param {number} count
 * @param {string} noun
 * @returns {string}
 */
export function countNoun(count, noun) {
  return `${formatNumber(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * @param {number} value
 * @param {number} [digits] after the point
 * @returns {string}
 */
export function formatNumber(value, digits = 0) {
  if (!numberFormats.has(digits)) {
    numberFormats.set(
      digits,
      new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
    );
  }
  return numberFormats.get(digits).format(value);
}

/** Writes a price in dollars; small ones with the digits that they need. */
export function formatPrice(dollars) {
  return `$${dollars >= 1 ? formatNumber(dollars, 2) : SMALL_PRICE.format(dollars)}`;
}

const SMALL_PRICE = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

// Making a format takes a hundred times as long as using it.
const numberFormats = new Map();

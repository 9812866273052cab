// Motion that shows what a merge does: two chips slide together and become one, and the others make room.
// The technique is FLIP (first, last, invert, play): https://aerotwist.com/blog/flip-your-animations/

const EASING = "cubic-bezier(0.2, 0, 0, 1)";
// More elements than this stand still: measuring them would take longer than a frame.
const MAX_MOVED = 600;

/** Whether the reader's system asks for less motion. */
export function prefersStillness() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/**
 * @typedef {Map<string, {element: HTMLElement, rect: DOMRect}>} Places elements and where they are, by `data-place`
 */

/**
 * Records where the elements with `data-place` of a container are, before it is drawn again.
 * @param {HTMLElement} container
 * @returns {Places}
 */
export function recordPlaces(container) {
  const places = new Map();
  if (prefersStillness() || !container.isConnected) return places;
  const elements = container.querySelectorAll("[data-place]");
  if (elements.length > MAX_MOVED) return places;
  for (const element of elements) places.set(element.dataset.place, { element, rect: element.getBoundingClientRect() });
  return places;
}

/**
 * Compares the recorded places with the present ones. The result starts the animation: an element moves from its
 * recorded place, one without a recorded place fades in, and two joined chips slide together. To measure several
 * containers before the first animation starts saves the browser a layout for each.
 * @param {HTMLElement} container a positioned element, or a list in one
 * @param {Places} before
 * @param {Map<string, [string, string]>} joins the recorded places of the two chips that each new chip replaces
 * @returns {(duration: number) => void} takes milliseconds
 */
export function prepareMoves(container, before, joins = new Map()) {
  if (before.size === 0) return () => {};
  const elements = [...container.querySelectorAll("[data-place]")];
  if (elements.length > MAX_MOVED) return () => {};
  // A list has no other children than its items.
  const host = container.matches("ol") ? container.parentElement : container;
  const [frame, seen] = [host.getBoundingClientRect(), container.parentElement.getBoundingClientRect()];
  const origin = { x: frame.left + host.clientLeft - host.scrollLeft, y: frame.top + host.clientTop - host.scrollTop };
  const isSeen = ({ top, bottom }) => bottom > seen.top && top < seen.bottom;
  const [moves, starts] = [new Map(), []];
  for (const element of elements) {
    const [rect, old] = [element.getBoundingClientRect(), before.get(element.dataset.place)?.rect];
    if (old) moves.set(element, [old.left - rect.left, old.top - rect.top]);
    if (!isSeen(rect) && !(old && isSeen(old))) continue;
    const [left, right] = (joins.get(element.dataset.place) ?? []).map((place) => before.get(place));
    if (left && right) starts.push((duration) => playJoin(host, origin, element, rect, left, right, duration));
    else starts.push((duration) => playMove(element, moves, duration));
  }
  return (duration) => {
    for (const start of starts) start(duration);
  };
}

function playMove(element, moves, duration) {
  const own = moves.get(element);
  if (own === undefined) {
    element.animate([{ opacity: 0 }, { opacity: 1 }], { duration, easing: "ease-out" });
    return;
  }
  // An element inside one that moves is carried by it.
  const carried = moves.get(element.parentElement?.closest("[data-place]")) ?? [0, 0];
  const [x, y] = [own[0] - carried[0], own[1] - carried[1]];
  if (Math.abs(x) < 0.5 && Math.abs(y) < 0.5) return;
  const frames = [{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }];
  element.animate(frames, { duration, easing: EASING });
}

// The old chips slide and press together into the place of the new one, which appears over them.
function playJoin(host, origin, element, rect, left, right, duration) {
  const [start, end] = left.rect.left <= right.rect.left ? [left, right] : [right, left];
  const share = Math.min(1, rect.width / (start.rect.width + end.rect.width));
  const targets = [[start, rect.left], [end, rect.right - end.rect.width * share]];
  for (const [{ element: old, rect: place }, x] of targets) {
    const ghost = /** @type {HTMLElement} */ (old.cloneNode(true));
    ghost.removeAttribute("data-place");
    ghost.setAttribute("aria-hidden", "true");
    ghost.classList.add("join-ghost");
    ghost.style.left = `${place.left - origin.x}px`;
    ghost.style.top = `${place.top - origin.y}px`;
    ghost.style.width = `${place.width}px`;
    ghost.style.height = `${place.height}px`;
    host.append(ghost);
    const moved = `translate(${x - place.left}px, ${rect.top - place.top}px) scaleX(${share})`;
    ghost.animate([{ transform: "translate(0, 0) scaleX(1)" }, { transform: moved }], { duration, easing: EASING });
    const fading = ghost.animate([{ opacity: 1 }, { opacity: 1, offset: 0.45 }, { opacity: 0 }], { duration });
    fading.finished.then(() => ghost.remove(), () => ghost.remove());
  }
  const frames = [{ opacity: 0 }, { opacity: 0, offset: 0.45 }, { opacity: 1 }];
  element.animate(frames, { duration, easing: "ease-out" });
}

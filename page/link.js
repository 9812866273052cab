/** A state as the fragment of a link, and back. The browser never sends a fragment to a server. */

import { fromBase64, toBase64 } from "./base64.js";
import { formatNumber } from "./dom.js";

// Chats, mail programs and browsers cut or refuse longer links.
const MAX_LINK = 30_000;
// A fragment that unpacks to more is an attack on the memory, not a text that someone shares.
const MAX_UNPACKED = 10_000_000;
const PREFIX = "#s=";

/** A link that cannot be made or read; the message is for people. */
export class LinkError extends Error {}

/** Whether a value is an object with named fields. */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * @param {object} state
 * @returns {Promise<string>} the fragment, with its `#`
 * @throws {LinkError} the link would be too long
 */
export async function toFragment(state) {
  const json = new TextEncoder().encode(JSON.stringify(state));
  const packed = await throughStream(json, new CompressionStream("deflate"), Infinity);
  const fragment = PREFIX + toBase64Url(packed);
  if (fragment.length > MAX_LINK) {
    throw new LinkError(
      `The link would have ${formatNumber(fragment.length)} characters, and many programs cut links of ` +
        `more than ${formatNumber(MAX_LINK)}. Shorten the text.`,
    );
  }
  return fragment;
}

/**
 * @param {string} fragment
 * @returns {Promise<unknown>} the state as it was written, unchecked; null for a fragment of another kind
 * @throws {LinkError} the fragment is broken
 */
export async function fromFragment(fragment) {
  if (!fragment.startsWith(PREFIX)) return null;
  try {
    const packed = fromBase64Url(fragment.slice(PREFIX.length));
    const json = await throughStream(packed, new DecompressionStream("deflate"), MAX_UNPACKED);
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
  } catch {
    throw new LinkError("This link is incomplete or damaged, so the page starts without it.");
  }
}

async function throughStream(bytes, stream, limit) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > limit) {
      await reader.cancel();
      throw new LinkError("too large");
    }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function toBase64Url(bytes) {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64Url(text) {
  return fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"));
}

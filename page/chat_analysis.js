// Encodes a rendered conversation in both ways, and finds out what each token and each message is.
import { chatMarkers, findForgeries } from "./chat_reading.js";
import { assistantSpans, ChatRenderError } from "./chat_templates.js";
import { chatPieces, controlTokensById, maskTokens, mixedTokens, tokensOfPieces } from "./chat_tokens.js";
import { countNoun, formatNumber } from "./dom.js";

/**
 * Analyses a conversation.
 * @param {import("./chat_vocabulary.js").ChatVocabulary} vocabulary
 * @param {object} template
 * @param {import("./chat_templates.js").ChatMessage[]} messages
 * @param {import("./chat_templates.js").RenderedChat} rendered
 * @returns {Promise<import("./chat_lanes.js").ChatAnalysis & {forgeries: import("./chat_reading.js").Forgery[]}>}
 *   without a mask
 */
export async function analyseChat(vocabulary, template, messages, rendered) {
  const [encoded, whole] = await Promise.all([
    encodeRendered(vocabulary, template, rendered),
    vocabulary.encodeString(template, rendered.text),
  ]);
  const bytes = await vocabulary.tokenBytes(encoded.ids);
  const pieces = chatPieces(rendered);
  const control = controlTokensById(encoded, vocabulary.addedTokens);
  const markers = template.isOwn ? [] : [whole, encoded].map((each) => chatMarkers(template, rendered.text, each, control, pieces));
  return {
    messages,
    rendered,
    pieces,
    encoded,
    bytesOf: (id) => bytes.get(id),
    ranges: tokensOfPieces(pieces, encoded),
    isMixed: mixedTokens(encoded, pieces),
    mask: null,
    forgeries: template.isOwn ? [] : findForgeries(template, rendered, pieces, ...markers),
  };
}

/**
 * Encodes the segments of a conversation, as `apply_chat_template` does.
 * @param {import("./chat_vocabulary.js").ChatVocabulary} vocabulary
 * @param {object} template
 * @param {import("./chat_templates.js").RenderedChat} rendered
 * @returns {Promise<import("./chat_tokens.js").ChatEncoded>}
 */
export function encodeRendered(vocabulary, template, rendered) {
  const segments = rendered.segments.map(({ text, message, trusted }) => ({ text, special: trusted ?? message === null }));
  return vocabulary.encodeSegments(template, segments);
}

/**
 * Marks the assistant's tokens.
 * @param {import("./chat_lanes.js").ChatAnalysis} analysis
 * @returns {{mask: Uint8Array | null, note: string}} `note` says how many there are, or why there is no mask
 */
export function assistantMask({ encoded, rendered, messages }) {
  try {
    const mask = maskTokens(encoded, assistantSpans(rendered, messages));
    const count = formatNumber(mask.reduce((sum, each) => sum + each, 0));
    return { mask, note: `A loss on the assistant’s tokens covers ${count} of ${countNoun(mask.length, "token")}.` };
  } catch (error) {
    if (!(error instanceof ChatRenderError)) throw error;
    return { mask: null, note: error.message };
  }
}

// Encodes conversations as the chat mode of the page does. Reads {templates, cases, model, added} from standard input, where
// `model` is a packed model in base64, and `added` are special tokens to add. Writes a result for each case: {ids, mask, leaked} or {error}.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const page = pathToFileURL(`${process.argv[2]}/`).href;
const { Core } = await import(`${page}core.js`);
const { ChatRenderError, assistantSpans, renderChat } = await import(`${page}chat_templates.js`);
const { chatPieces, controlTokensById, maskTokens } = await import(`${page}chat_tokens.js`);
const { ChatVocabulary } = await import(`${page}chat_vocabulary.js`);
const { chatMarkers, findForgeries } = await import(`${page}chat_reading.js`);

const { templates, cases, model, added } = JSON.parse(readFileSync(0, "utf8"));
const core = await Core.start(readFileSync(new URL(`${page}core.wasm`)));
const tokenizer = core.loadPacked(new Uint8Array(Buffer.from(model, "base64")));
const client = {
  encodeSegments: async (_key, segments, options) => tokenizer.encodeSegments(segments, options),
  tokenBytes: async (_key, ids) => new Map(ids.map((id) => [id, tokenizer.tokenBytes(id)])),
};
const vocabulary = new ChatVocabulary(client, { key: 0, info: tokenizer.info }, added);
const { addedTokens } = vocabulary;

async function encode({ template, messages, prompt, continues }) {
  const chosen = templates.find((each) => each.name === template);
  const rendered = renderChat(chosen, messages, { prompt, continues });
  const segments = rendered.segments.map(({ text, message }) => ({ text, special: message === null }));
  const encoded = await vocabulary.encodeSegments(chosen, segments);
  const whole = await vocabulary.encodeString(chosen, rendered.text);
  const bytes = await vocabulary.tokenBytes(encoded.ids);
  const mask = maskTokens(encoded, assistantSpans(rendered, messages));
  const pieces = chatPieces(rendered);
  const control = controlTokensById(encoded, addedTokens);
  const markers = [whole, encoded].map((each) => chatMarkers(chosen, rendered.text, each, control, pieces));
  const forgeries = findForgeries(chosen, rendered, pieces, ...markers);
  return {
    ids: Array.from(encoded.ids),
    text: Buffer.concat(Array.from(encoded.ids, (id) => bytes.get(id))).toString("base64"),
    string: Array.from(whole.ids),
    mask: Array.from(mask),
    forged: forgeries.map(({ message, forged }) => [message, forged]).filter(([, forged]) => forged.length > 0),
    leaked: forgeries.reduce((sum, each) => sum + each.leaked, 0),
  };
}

const results = [];
for (const each of cases) {
  try {
    results.push(await encode(each));
  } catch (error) {
    if (!(error instanceof ChatRenderError)) throw error;
    results.push({ error: true });
  }
}
process.stdout.write(JSON.stringify(results));

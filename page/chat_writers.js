// Measures which roles can write which control tokens: encodes a message of each role that holds them.
import { turnMarks } from "./chat_reading.js";
import { ChatRenderError, renderChat } from "./chat_templates.js";
import { chatPieces, provenanceOf } from "./chat_tokens.js";

/**
 * @param {object} template
 * @param {string[]} texts control tokens of the template, and special tokens that messages hold
 * @param {{content: string, id: number}[]} addedTokens
 * @param {(text: string) => Promise<import("./chat_tokens.js").ChatEncoded>} encodeString with all special tokens
 * @param {(rendered: object) => Promise<import("./chat_tokens.js").ChatEncoded>} encodeSegments
 * @returns {Promise<{roles: string[], rows: import("./chat_forgery.js").WriterRow[]}>} the template's roles, and a row a text
 */
export async function measureWriters(template, texts, addedTokens, encodeString, encodeSegments) {
  const ids = new Map(addedTokens.map((token) => [token.content, token.id]));
  const rows = texts.map((text) => ({ text, asString: [], asSegments: [], isPlain: !ids.has(text) }));
  const roles = [];
  for (const role of ["system", "user", "assistant", "tool"]) {
    const rendered = probe(template, role, texts.join(" "));
    if (rendered === null) continue;
    roles.push(role);
    const provenance = provenanceOf(chatPieces(rendered));
    const columns = { asString: await encodeString(rendered.text), asSegments: await encodeSegments(rendered) };
    for (const [column, { ids: found, starts, ends }] of Object.entries(columns)) {
      const forged = new Set(found.filter((_, token) => provenance(starts[token], ends[token]).content));
      for (const row of rows) if (forged.has(ids.get(row.text))) row[column].push(role);
    }
  }
  return { roles, rows };
}

/**
 * Returns the texts that the table lists.
 * @param {object} template
 * @param {import("./chat_reading.js").Forgery[]} forgeries
 * @returns {string[]}
 */
export function writtenTokens(template, forgeries) {
  const own = turnMarks(template);
  const others = forgeries.flatMap((each) => each.forged).filter((text) => !own.includes(text));
  return [...own, ...[...new Set(others)].slice(0, 8)];
}

/** Renders a conversation with a text in a message of a role; null if the template has no such role. */
function probe(template, role, content) {
  const talk = [{ role: "user", content: "?" }, { role: "assistant", content: "." }, { role: "user", content: "?" }];
  const place = { system: [0, 0], user: [2, 1], assistant: [1, 1], tool: [2, 0] }[role];
  talk.splice(...place, { role, content });
  try {
    return renderChat(template, role === "assistant" ? talk.slice(0, 2) : talk, { prompt: false });
  } catch (error) {
    if (error instanceof ChatRenderError) return null;
    throw error;
  }
}

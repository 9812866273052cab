// Renders conversations with the page's JavaScript. Reads {templates, cases} from standard input, writes the results.
// A case is {template, messages, prompt, continues}; a result is {segments, spans, missing} or {error}.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const page = pathToFileURL(`${process.argv[2]}/`).href;
const { ChatRenderError, assistantSpans, missingControlTokens, renderChat } = await import(`${page}chat_templates.js`);
const { pythonRepr } = await import(`${page}python_text.js`);

function attempt(call) {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof ChatRenderError)) throw error;
    return { error: error.message };
  }
}

function result({ template, messages, prompt, continues }, templates) {
  const chosen = templates.find((each) => each.name === template);
  return attempt(() => {
    const rendered = renderChat(chosen, messages, { prompt, continues });
    return { ...rendered, spans: attempt(() => assistantSpans(rendered, messages)) };
  });
}

const { templates, cases, vocabularies, texts } = JSON.parse(readFileSync(0, "utf8"));
const results = {
  cases: cases.map((each) => result(each, templates)),
  missing: vocabularies.map((added) => templates.map((each) => missingControlTokens(each, new Set(added)))),
  reprs: texts.map((text) => pythonRepr(text)),
};
// JSON keeps lone surrogates as escapes.
process.stdout.write(JSON.stringify(results));

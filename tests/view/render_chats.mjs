// Renders conversations with the page's JavaScript. Reads {templates, cases} from standard input, writes the results.
// A case is {template, messages, prompt, continues}; a result is {segments, spans} or {error}.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const page = pathToFileURL(`${process.argv[2]}/`).href;
const { ChatRenderError, assistantSpans, renderChat } = await import(`${page}chat_templates.js`);

function attempt(call) {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof ChatRenderError)) throw error;
    return { error: true };
  }
}

function result({ template, messages, prompt, continues }, templates) {
  const chosen = templates.find((each) => each.name === template);
  return attempt(() => {
    const rendered = renderChat(chosen, messages, { prompt, continues });
    return { ...rendered, spans: attempt(() => assistantSpans(rendered, messages)) };
  });
}

const { templates, cases } = JSON.parse(readFileSync(0, "utf8"));
// JSON keeps lone surrogates as escapes.
process.stdout.write(JSON.stringify(cases.map((each) => result(each, templates))));

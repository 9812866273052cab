"""What MkDocs does with our pages beside its own work; `mkdocs.yml` names this file.

The pages are written for the repository: plain CommonMark, with links to files outside `docs/`. The
repository has no public address that the site could link to, so the site carries these files: documents such
as CONTRIBUTING.md are pages of the section "The project", and a source file is a page that shows it.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path

from commonmark import EXTERNAL, LINK, hide_predictions, indent_lists, links, outside_fences
from live import with_live_parts
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LOG = logging.getLogger("mkdocs.hooks.bpe_tokenizer")
ROOT = Path(__file__).parents[2]
# Documents in the root of the repository, and their pages.
PROJECT = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}
# On the site, the home page is what the README is in the repository.
ALIASES = {"README.md": "docs/index.md"}
LANGUAGES = {".py": "python", ".rs": "rust", ".toml": "toml", ".sh": "sh", ".json": "json", ".yml": "yaml"}
# A menu, and its title; the label that `aria-labelledby` names may be empty.
MENU = re.compile(
    r'(<nav class="md-nav"[^>]*?) aria-labelledby="__nav_[0-9_]+_label"'
    r'([^>]*>\s*<label class="md-nav__title"[^>]*>\s*<span[^>]*></span>\s*)([^<>]+?)(?=\s*</label>)'
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages for documents and source files outside `docs/`."""
    for name, uri in PROJECT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, uri, content=text))
    for file in files.documentation_pages():
        for target, _ in links(file.content_string):
            if not target:
                continue
            source = _repository_path(file.src_uri, target)
            if _is_shown_as_source(source) and not files.get_file_from_path(_source_page(source)):
                files.append(File.generated(config, _source_page(source), content=_listing(source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to files outside `docs/`, mark sessions of Python, and offer a chapter's notebook."""
    uri = page.file.src_uri
    markdown = outside_fences(markdown, lambda line: _rewrite_links(line, uri))
    markdown = re.sub(r"^( *)```python\n(?= *>>> )", r"\1```pycon\n", markdown, flags=re.MULTILINE)
    markdown = with_live_parts(indent_lists(hide_predictions(markdown)), uri)
    markdown = re.sub(r"^<details>(?=<summary>)", '<details markdown="1">', markdown, flags=re.MULTILINE)
    notebook = posixpath.join("notebooks", posixpath.basename(uri).removesuffix(".md") + ".ipynb")
    if files.get_file_from_path(posixpath.join(posixpath.dirname(uri), notebook)):
        title, _, rest = markdown.partition("\n")
        markdown = f"{title}\n\n[Open as a notebook]({notebook}){{ .notebook download }}\n{rest}"
    return markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Remove empty heads of tables, which screen readers read, and keep short code (`--file`) together."""
    html = re.sub(r"<code>(?=[^<\n]{1,24}</code>)", '<code class="short">', html)
    html = re.sub(r"<thead>\s*<tr>\s*(<th[^>]*></th>\s*)+</tr>\s*</thead>\s*", "", html)
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name what the theme leaves without a name: the search, and the menus of sections that are links too."""
    dialog = 'data-md-component="search" role="dialog"'
    output = output.replace(dialog, f'{dialog} aria-label="Search"')
    return MENU.sub(r'\1 aria-label="\3"\2\3', output)


def _rewrite_links(line: str, uri: str) -> str:
    def rewritten(link: re.Match[str]) -> str:
        target, anchor = link[1], link[2] or ""
        if not target or EXTERNAL.match(target):
            return link[0]
        source = _repository_path(uri, target)
        source = ALIASES.get(source, source)
        if source in PROJECT:
            page = PROJECT[source]
        elif _is_shown_as_source(source):
            page, anchor = _source_page(source), ""
        elif source.startswith("docs/"):
            page = source.removeprefix("docs/")
        else:
            LOG.warning("%s: the link to %s leads nowhere", uri, target)
            return link[0]
        return posixpath.relpath(page, posixpath.dirname(uri) or ".") + anchor

    return LINK.sub(rewritten, line)


def _repository_path(uri: str, target: str) -> str:
    """Return the path in the repository that a link of a page means."""
    origin = {page: name for name, page in PROJECT.items()}.get(uri, f"docs/{uri}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))


def _is_shown_as_source(source: str) -> bool:
    return not source.startswith(("docs/", "..")) and source not in PROJECT and (ROOT / source).is_file()


def _source_page(source: str) -> str:
    return f"source/{source.removesuffix('.md')}.md"


def _listing(source: str) -> str:
    text = (ROOT / source).read_text(encoding="utf-8")
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    language = LANGUAGES.get(Path(source).suffix, "text")
    head = f"---\nsearch: {{exclude: true}}\n---\n\n# {source}\n\n"
    return f"{head}{fence}{language}\n{text.rstrip()}\n{fence}\n"

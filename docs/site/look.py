"""Opens the built site in a real Chromium, and checks what no other test sees.

    make docs
    pip download --no-deps axe-playwright-python==0.1.8
    unzip -p axe_playwright_python-*.whl '*/axe.min.js' > axe.min.js
    python docs/site/look.py --axe axe.min.js --pictures build/look

Each page is opened from the file system at 360 and 1440 pixels, in light and in dark. The script reports what
is wider than the window, the violations that axe-core finds, errors on the console, requests to other hosts,
and whether the search finds a word. It saves a picture of each view; look at them. It needs chromium and
chromedriver (on Debian: apt-get install chromium chromium-driver) and nothing else. It is not a part of CI.
"""

from __future__ import annotations

import argparse
import base64
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = [
    "index",
    "learn/05-why-split-first",
    "chat",
    "command-line",
    "cookbook/index",
    "cookbook/conversations",
    "api/tokenizer",
    "api/errors",
    "comparison",
    "benchmarks",
    "project/architecture",
    "source/examples/count_with_ray.py",
]
WIDTHS = {360: 740, 1440: 900}
# Elements that reach beyond the window, other than those inside something that scrolls.
OVERFLOW = """
const wide = []
const scrolls = e => e && e !== document.body &&
  (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement))
for (const e of document.querySelectorAll("body *")) {
  const box = e.getBoundingClientRect()
  if (box.right > innerWidth + 1 && box.width && getComputedStyle(e).visibility !== "hidden" && !scrolls(e))
    wide.push(e.tagName + "." + e.className + " " + Math.round(box.right))
}
const page = document.documentElement.scrollWidth
return page > innerWidth ? [`the page is ${page} pixels wide`, ...wide.slice(0, 5)] : []
"""
AXE = """
const done = arguments[arguments.length - 1]
const options = {resultTypes: ["violations"], preload: false}
axe.run(options).then(found => done(found.violations.flatMap(violation =>
  violation.nodes.slice(0, 4).map(node => `${violation.id} (${violation.nodes.length}): ${node.target} ` +
    node.failureSummary.split("\\n").slice(1).join("; ").slice(0, 240)))))
"""
SEARCH = """
const done = arguments[arguments.length - 1]
const field = document.querySelector("[data-md-component=search-query]")
const toggle = document.querySelector("#__search")
if (!toggle.checked) toggle.click()
field.focus()
field.value = "truncate"
field.dispatchEvent(new Event("keyup"))
const found = () => [...document.querySelectorAll(".md-search-result__link")]
const links = () => found().map(link => link.getAttribute("href"))
let looked = 0
const timer = setInterval(() => {
  if (links().length || ++looked > 100) { clearInterval(timer); done(links()) }
}, 100)
"""


class Browser:
    """A session of chromedriver, by the protocol of W3C WebDriver: https://www.w3.org/TR/webdriver2/."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL)
        self.address = f"http://127.0.0.1:{port}"
        for _ in range(100):
            try:
                if self._request("GET", "/status")["ready"]:
                    break
            except OSError:
                time.sleep(0.1)
        options = {
            "args": ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"],
            "prefs": {"profile.default_content_setting_values.popups": 2},
        }
        capabilities = {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        session = self._request("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.address += f"/session/{session['sessionId']}"
        self._request("POST", "/timeouts", {"script": 600_000, "pageLoad": 120_000})

    def open(self, address: str, width: int, height: int, scheme: str) -> None:
        """Open a page in a window of this size, with the system's colours light or dark."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.devtools(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        self._request("POST", "/url", {"url": address})
        time.sleep(0.4)

    def run(self, script: str, wait: bool = False) -> Any:
        """Run a script in the page, and return its result."""
        return self._request(
            "POST", f"/execute/{'async' if wait else 'sync'}", {"script": script, "args": []}
        )

    def devtools(self, command: str, **parameters: Any) -> Any:
        """Send a command of the DevTools protocol."""
        return self._request("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def picture(self, path: Path) -> None:
        """Save a picture of the window."""
        path.write_bytes(base64.b64decode(self._request("GET", "/screenshot")))

    def log(self, kind: str) -> list[dict[str, Any]]:
        """Return the new entries of a log."""
        found: list[dict[str, Any]] = self._request("POST", "/se/log", {"type": kind})
        return found

    def close(self) -> None:
        """End the browser."""
        self._request("DELETE", "")
        self.process.terminate()

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.address + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=700) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"][:600]) from None


def looks(options: argparse.Namespace) -> Iterator[str]:
    """Open every view, and yield what is wrong with it."""
    browser = Browser()
    axe = options.axe and options.axe.read_text(encoding="utf-8")
    options.pictures.mkdir(parents=True, exist_ok=True)
    try:
        for page in options.pages or PAGES:
            address = (options.site / f"{page}.html").resolve().as_uri()
            for width, height in WIDTHS.items():
                for scheme in ("light", "dark"):
                    view = f"{page} {width} {scheme}"
                    browser.open(address, width, height, scheme)
                    yield from (f"{view}: {wide}" for wide in browser.run(OVERFLOW))
                    if axe:
                        browser.run(axe)
                        yield from (f"{view}: axe: {found}" for found in browser.run(AXE, wait=True))
                    browser.picture(options.pictures / f"{page.replace('/', '-')}-{width}-{scheme}.png")
                    yield from (f"{view}: console: {entry['message']}" for entry in browser.log("browser"))
            found = browser.run(SEARCH, wait=True)
            if not found:
                yield f"{page}: the search finds nothing"
            else:
                print(page, "search:", len(found), "results, the first is", found[0])
        for entry in browser.log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "about:", "blob:", "chrome")):
                    yield f"request to {url}"
    finally:
        browser.close()


def main() -> int:
    """Look at the site, and print what is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="pages without .html; all important ones by default")
    parser.add_argument("--site", type=Path, default=ROOT / "build/site")
    parser.add_argument("--axe", type=Path, help="axe.min.js of axe-core")
    parser.add_argument("--pictures", type=Path, default=ROOT / "build/look")
    problems = set()
    for problem in looks(parser.parse_args()):
        problems.add(problem)
        print(problem, flush=True)
    print(len(problems), "problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

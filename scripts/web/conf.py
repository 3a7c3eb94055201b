# Sphinx settings of the documentation site (scripts/site), whose source stage.py has laid out.
import os
import re

from docutils import nodes
from sphinx.domains import Domain, ObjType

project = "deepc"
author = "deepc"
version = release = os.environ.get("DEEPC_SITE_VERSION", "")

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
root_doc = "index"
myst_enable_extensions = ["attrs_block", "attrs_inline", "html_image"]
myst_heading_anchors = 6  # as GitHub names them, so that links of the texts work in both places
highlight_language = "none"
# The reference goes from modules to names; Pygments reads some Lua only in its relaxed mode.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
smartquotes = False  # code and prose stay as they are written

html_theme = "furo"
html_title = "deepc"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "static/icon.svg"
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_domain_indices = False
html_permalinks_icon = "#"
pygments_style = "tango"
pygments_dark_style = "monokai"
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {"color-brand-primary": "#1f5f9f", "color-brand-content": "#1f5f9f"},
    "dark_css_variables": {"color-brand-primary": "#7fb4ea", "color-brand-content": "#7fb4ea"},
}

# Commands are copied without the prompt and without what they print.
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
copybutton_here_doc_delimiter = "EOF"


class Names(Domain):
    """The names of the reference, which the search finds as such: headings that begin with a signature."""

    name, label = "lua", "Lua"
    object_types = {"name": ObjType("name")}
    initial_data = {"names": {}}

    def note(self, document, docname):
        for section in document.findall(nodes.section):
            for signature in section[0].findall(nodes.literal):
                name = re.match(r"[\w.:]+", signature.astext())
                if name:
                    self.data["names"].setdefault(name.group(), (docname, section["ids"][-1]))

    def clear_doc(self, docname):
        self.data["names"] = {k: v for k, v in self.data["names"].items() if v[0] != docname}

    def merge_domaindata(self, docnames, otherdata):
        self.data["names"].update({k: v for k, v in otherdata["names"].items() if v[0] in docnames})

    def get_objects(self):
        for name, (docname, anchor) in self.data["names"].items():
            yield name, name, "name", docname, anchor, 0


def note_names(app, doctree):
    if app.env.docname.startswith("docs/reference/"):
        app.env.get_domain("lua").note(doctree, app.env.docname)


def setup(app):
    app.add_domain(Names)
    app.connect("doctree-read", note_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

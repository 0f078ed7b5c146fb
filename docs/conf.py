"""Sphinx: `sphinx-build -W --keep-going -b html docs build/docs`."""

import sys
from pathlib import Path

import tiling

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "tiling"
release = tiling.__version__
html_title = f"tiling {release}"
html_theme = "furo"
html_theme_options = {
    style: {"code-font-size": "75%"}  # so that lines of 100 characters fit
    for style in ("light_css_variables", "dark_css_variables")
}
html_copy_source = False
html_show_copyright = False
exclude_patterns = ["_pictures"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_click"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
default_role = "code"  # what single backticks mean in docstrings
highlight_language = "none"  # fences without a language are formulas

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# Shown by these names, which the reference explains, instead of what they stand for.
autodoc_type_aliases = {name: name for name in ("ArrayLike", "DTypeLike", "Int32", "Int64", "UInt8")}
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False  # autodoc shows them


def setup(app):
    def draw(app):
        import pictures

        pictures.draw_all(HERE / "_pictures")

    app.connect("builder-inited", draw)


smartquotes = False  # they would change what is to be typed

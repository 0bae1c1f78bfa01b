"""Sphinx configuration. Builds without a network: ``make docs``."""

import importlib.util
import warnings

import mercer

project = "Mercer"
author = "The Mercer developers"
copyright = "2026, The Mercer developers"
version = release = mercer.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
]
exclude_patterns = ["_build", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
templates_path = ["_templates"]
myst_heading_anchors = 3

toc_object_entries = False  # the sidebar lists pages, not methods
autosummary_generate = True
autodoc_typehints = "none"  # the signatures would be longer than what they say; the docstrings hold the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

warnings.filterwarnings("ignore", message=".*non-interactive.*")  # plt.show() in the gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # without PyTorch the page on networks has no figures
    "filename_pattern": r"plot_" if importlib.util.find_spec("torch") else r"plot_(?!circulant_networks)",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # seconds differ from build to build and say nothing
    "abort_on_example_error": True,
}

html_theme = "alabaster"
html_static_path = ["_static"]
html_css_files = ["mercer.css"]
html_title = f"Mercer {version}"
html_show_sourcelink = False
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
_text = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
html_theme_options = {
    "description": f"Learning with structure. Version {version}.",
    "fixed_sidebar": True,
    "page_width": "1200px",
    "body_max_width": "900px",
    "sidebar_width": "230px",
    "font_family": _text,
    "head_font_family": _text,
    "caption_font_family": _text,
    "font_size": "16px",
    "code_font_size": "0.84em",
    "link": "#1f5f99",
    "link_hover": "#d1741f",
    "sidebar_collapse": True,
    "show_powered_by": False,
    "show_relbars": False,
    "extra_nav_links": {},
}


def _skip(app, what, name, obj, skip, options):
    """Leave out the metadata methods that scikit-learn adds to every estimator."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app):
    """Connect the handlers."""
    app.connect("autodoc-skip-member", _skip)

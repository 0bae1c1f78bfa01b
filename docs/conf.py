"""Sphinx configuration. Builds without a network: ``make docs``."""

import importlib.util
import os
import re
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
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
templates_path = ["_templates"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
copybutton_prompt_text = "$ "

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
    # without PyTorch the pages on networks have no figures
    "filename_pattern": r"plot_" if importlib.util.find_spec("torch") else r"plot_(?!circulant_networks|neural_)",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # seconds differ from build to build and say nothing
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["mercer.css"]
html_title = "Mercer"
html_show_sourcelink = False
html_theme_options = {
    "collapse_navigation": True,  # else every page carries the whole tree
    "navigation_depth": 2,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "logo": {"text": f"Mercer {version}"},
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
if os.environ.get("MERCER_DOCS_VERSIONS"):  # the address of versions.json, where several versions are published
    html_theme_options["switcher"] = {"json_url": os.environ["MERCER_DOCS_VERSIONS"], "version_match": version}
    html_theme_options["navbar_start"] = ["navbar-logo", "version-switcher"]
# pages without pages below them have no sidebar
_alone = ("index", "start", "choose", "moving", "search", "genindex", "api/generated/*")
html_sidebars = {name: [] for name in _alone}


def _skip(app, what, name, obj, skip, options):
    """Leave out the metadata methods that scikit-learn adds to every estimator."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def _without_foreign_labels(app, what, name, obj, options, lines):
    """Docstrings that estimators inherit refer to pages of scikit-learn's guide, which are not here."""
    lines[:] = [re.sub(r":ref:`([^`<]+) <(?:accuracy_score|r2_score)>`", r"\1", line) for line in lines]


def setup(app):
    """Connect the handlers."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _without_foreign_labels)

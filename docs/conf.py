"""Sphinx configuration. Builds without a network: ``make docs``."""

import importlib.util
import os
import re
import warnings

from sphinx.util.docutils import SphinxDirective

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


class Commands(SphinxDirective):
    """Every command of ``mercer``, with its help and its options, as the program itself knows them."""

    def run(self):
        """Return the sections."""
        from typer.main import get_command

        from mercer.cli.app import app

        return self.parse_text_to_nodes("\n".join(_commands(get_command(app), "mercer")), allow_section_headings=True)


def _commands(command, name):
    """Lines of reStructuredText about a command and those below it."""
    if hasattr(command, "commands"):
        with command.make_context(name, [], resilient_parsing=True) as context:
            below = [(each, command.get_command(context, each)) for each in command.list_commands(context)]
        for each, one in below:
            yield from _commands(one, f"{name} {each}")
        return
    yield from (name, "-" * len(name), "")
    for paragraph in (command.help or "").split("\n\n"):
        lines = [line for line in paragraph.splitlines() if "[bold]" not in line]
        if any(line.startswith("  ") for line in lines):
            yield from (".. code-block:: console", "", *(f"   $ {line.strip()}" for line in lines), "")
        elif lines:
            yield from (_escaped(" ".join(lines)), "")
    with command.make_context(name, [], resilient_parsing=True) as context:
        params = [param for param in command.params if param.name != "help"]
        records = [record for param in params if (record := param.get_help_record(context)) is not None]
    if records:
        yield from (".. list-table::", "   :widths: 35 65", "")
        for option, meaning in records:
            yield from (f"   * - ``{option.removesuffix(' <str>')}``", f"     - {_escaped(' '.join(meaning.split()))}")
        yield ""


def _escaped(text):
    return re.sub(r"\[/?(?:bold|dim)\]", "", re.sub(r"([*`|\\])|(?<=\w)(_)(?=\W|$)", r"\\\1\2", text))


def setup(app):
    """Connect the handlers."""
    app.add_directive("commands", Commands)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _without_foreign_labels)

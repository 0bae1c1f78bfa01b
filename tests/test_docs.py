"""What people read holds: code in the README and the guides runs, and every public name is documented."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = [
    "mercer",
    "mercer.alignment",
    "mercer.attributes",
    "mercer.classification",
    "mercer.cli",
    "mercer.clustering",
    "mercer.data",
    "mercer.datasets",
    "mercer.exceptions",
    "mercer.kernel_methods",
    "mercer.inference",
    "mercer.kernels",
    "mercer.labeling",
    "mercer.learning",
    "mercer.learning.solvers",
    "mercer.learning.sparse_codes",
    "mercer.learning.weighted_machines",
    "mercer.fields",
    "mercer.learning.learners",
    "mercer.manifolds",
    "mercer.maps",
    "mercer.markov",
    "mercer.metrics",
    "mercer.multilabel",
    "mercer.online",
    "mercer.ranking",
    "mercer.ranking.preference_graph",
    "mercer.parsing",
    "mercer.report",
    "mercer.proportions",
    "mercer.recognition",
    "mercer.registration",
    "mercer.retrieval",
    "mercer.segmentation",
    "mercer.serve",
    "mercer.structured",
    "mercer.structures",
    "mercer.tagging",
    "mercer.theory",
    "mercer.theory.cuts",
    "mercer.theory.hashing",
    "mercer.theory.consistency",
    "mercer.theory.margins",
    "mercer.theory.pac_bayes",
    "mercer.theory.proportions",
    "mercer.theory.risk",
    "mercer.theory.sensing",
]
DOCS = [page for folder in (".", "guide", "tutorials") for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in DOCS)]


def public(package: str) -> list[tuple[str, object]]:
    module = importlib.import_module(package)
    return [(name, getattr(module, name)) for name in module.__all__]


def python_blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M)


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)])
def test_python_code_of_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(python_blocks(page), 1):
        exec(compile(block, f"{page}, block {number}", "exec"), namespace)


def test_readme_example_prints_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for block in python_blocks("README.md"):
        exec(compile(block, "README.md", "exec"), {})
        promised = re.findall(r"^print\(.*\)  # (.+)$", block, re.M)
        assert capsys.readouterr().out.splitlines() == promised
        assert promised


def test_every_page_names_a_next_step():
    lists = {"index.md", "more.md"}  # of links
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name not in lists and "_build" not in page.parts]
    pages += [*(ROOT / "docs" / "api").glob("*.rst"), *(ROOT / "docs" / "_templates").rglob("*.rst")]
    pages += (ROOT / "examples").glob("plot_*.py")
    pages = [page for page in pages if not {"gallery", "generated"} & set(page.parts)]
    assert len(pages) > 100
    assert [str(page) for page in pages if not re.search(r"^(# |## )?Next", page.read_text(), re.M)] == []


def test_options_in_tables_of_the_guide_are_those_of_the_commands():
    from typer.main import get_command

    from mercer.cli.app import app

    commands = get_command(app).commands
    commands |= {f"train {name}": command for name, command in commands["train"].commands.items()}
    text = (ROOT / "docs" / "guide" / "command-line.md").read_text()
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    tables = 0
    for name, command in commands.items():
        section = next((body for heading, body in sections.items() if name in heading.split(", ")), "")
        cells = "".join(re.findall(r"^\|([^|]*)\|", section, re.M))
        told, known = set(re.findall(r"--[a-zA-Z][\w-]*", cells)), {o for param in command.params for o in param.opts}
        assert told - known - {"--label-hashing", "--multilabel"} == set(), name  # of classifiers, beside regressors
        tables += bool(told)
    assert tables >= 6


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_have_docstrings_with_a_summary_line(package):
    for name, thing in public(package):
        if not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue  # a table or a string: described on its page
        summary, _, rest = (inspect.getdoc(thing) or "").partition("\n")
        assert thing.__doc__, f"{package}.{name} has no docstring"
        assert summary.strip(), f"the docstring of {package}.{name} does not begin with a summary"
        assert not rest or rest.startswith("\n"), f"the summary of {package}.{name} is longer than a line"


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_stand_on_a_page_of_the_reference(package):
    page = ROOT / "docs" / "api" / f"{'.'.join(package.split('.')[1:2]) or 'mercer'}.rst"
    words = set(re.findall(r"\w+", page.read_text()))
    assert [name for name, _ in public(package) if name not in words] == []


def test_the_reference_names_nothing_that_is_not_public():
    known = {name for package in PACKAGES for name, _ in public(package)}
    for page in (ROOT / "docs" / "api").glob("*.rst"):
        listed = re.findall(r"^   (\w+)$", page.read_text(), re.M)
        assert set(listed) <= known, f"{page.name}: {sorted(set(listed) - known)}"


def test_names_of_the_reference_stand_in_a_list_that_makes_their_pages():
    for page in (ROOT / "docs" / "api").glob("*.rst"):
        text = page.read_text()
        lists = "".join(re.findall(r"^\.\. autosummary::\n(?:(?:   .*)?\n)+", text + "\n", re.M))
        outside = set(re.findall(r"^   (\w+)$", text, re.M)) - set(re.findall(r"^   (\w+)$", lists, re.M))
        assert not outside, f"{page.name}: {sorted(outside)} have no page"


def test_changelog_has_the_version_of_the_project():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    heading = rf"^## \[?{re.escape(version)}\]?\b"
    assert re.search(heading, (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert importlib.import_module("mercer").__version__ == version


def test_readme_and_benchmark_page_have_room_for_the_figures():
    for page in ("README.md", "docs/results/peers.md"):
        assert re.search(r"<!-- benchmark:begin -->.*<!-- benchmark:end -->", (ROOT / page).read_text(), re.S), page


def test_links_between_pages_lead_somewhere():
    for page in ["README.md", "CONTRIBUTING.md", *PAGES[1:]]:
        for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()):
            path = target.partition("#")[0]
            if path and "://" not in path and "gallery/" not in path:  # the gallery is made by the build
                assert ((ROOT / page).parent / path).exists(), f"{page} links to {target}"


def text_files() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def test_no_file_holds_paths_of_a_machine():
    # Spelled in two pieces, so that this file does not find itself.
    roots = "|".join(["ho" + "me", "Us" + "ers", "wo" + "rk", "ro" + "ot"])
    machine_path = re.compile(rf"(?<![\w.~$}}/-])/(?:{roots})/\w+")
    for path in text_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found = machine_path.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found.group() if found else ''}"


def test_citations_lead_to_published_works():
    private = re.compile(r"\b[Ss]pec 0\d\d|seed-0\d\d")
    for path in text_files():
        if path.suffix in {".py", ".pyi", ".cpp", ".hpp", ".md"}:
            found = private.search(path.read_text())
            assert found is None, f"{path.relative_to(ROOT)}: {found.group() if found else ''}"


KEY = r"[A-Z][A-Za-z]+(?:19|20)\d\d[a-z]?"


def bibliography() -> dict[str, str]:
    page = (ROOT / "docs" / "references.md").read_text()
    return {key: " ".join(text.split()) for key, text in re.findall(rf"^### ({KEY})\n\n(.+?)\n\n", page, re.S | re.M)}


def test_citations_and_the_bibliography_agree():
    works, used = bibliography(), set()
    assert list(works) == sorted(works, key=str.lower)
    folders, suffixes = {"src", "cpp", "docs", "examples"}, {".py", ".cpp", ".hpp", ".md", ".rst"}
    for path in text_files():
        name = path.relative_to(ROOT)
        if name.parts[0] not in folders or path.suffix not in suffixes or path.name == "references.md":
            continue
        text = path.read_text()
        cited = set(re.findall(rf"\[({KEY})\]", text))
        assert cited <= set(works), f"{name}: {sorted(cited - set(works))} not in docs/references.md"
        used |= cited
        for key, entry in re.findall(rf"^ *\.\. \[({KEY})\] (.+(?:\n {{3,}}(?!\.\.|\"\"\")\S.*)*)", text, re.M):
            assert " ".join(entry.split()) == works[key], f"{name}: [{key}] differs from docs/references.md"
        for label, target in re.findall(rf"\[({KEY})\]\([^)]*references\.md#(\w+)\)", text):
            assert target == label.lower(), f"{name}: [{label}] links to #{target}"
    assert set(works) == used, f"never cited: {sorted(set(works) - used)}"

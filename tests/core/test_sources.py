"""There is one mechanism for instruction sets and one for threads in the sources of the core."""

import re
from pathlib import Path

import pytest

CPP = Path(__file__).parent.parent.parent / "cpp"
ONLY_IN = {
    r"target_clones": set(),
    r"__builtin_cpu_(supports|init|is)": {"base/dispatch.cpp"},
    r"omp parallel|std::thread\b(?!::(hardware|id))|pthread_create|std::async": {
        "base/parallel.cpp",
        "base/pipeline_pool.cpp",
    },
    r"set_in_use": {"base/dispatch.hpp", "base/dispatch.cpp"},
    r"struct (Sparse|Csr)\w*(Rows|View)": set(),
    r"(struct|class) Graph\b": {"graphs/graph.hpp"},
    r"(struct|class) \w*Buffer\b": {"base/buffer.hpp"},
}


def files():
    return {path.relative_to(CPP).as_posix(): path.read_text() for path in sorted(CPP.rglob("*.[ch]pp"))}


@pytest.mark.parametrize("pattern", ONLY_IN)
def test_a_second_mechanism_is_refused(pattern):
    """Use base/dispatch.hpp, base/parallel.hpp, base/csr.hpp, graphs/graph.hpp, base/buffer.hpp or base/aligned.hpp."""
    found = {name for name, text in files().items() if re.search(pattern, re.sub(r"//.*", "", text))}
    assert found <= ONLY_IN[pattern]


def test_files_with_a_table_are_compiled_for_every_set():
    cmake = (CPP.parent / "CMakeLists.txt").read_text()
    tables = {
        name.removesuffix(".cpp")
        for name, text in files().items()
        if "template <> const" in text and name.endswith(".cpp")
    }
    listed = (
        set(re.findall(r"[\w/]+", re.search(r"set\(fused (.*?)\)\s*set\(exact (.*?)\)", cmake, re.DOTALL)[0])) & tables
    )
    assert tables == listed

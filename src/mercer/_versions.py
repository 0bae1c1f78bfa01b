"""Information for bug reports: versions, the compiled core, threads. Collecting it imports no large package."""

from __future__ import annotations

import os
import sys

__all__ = ["extras", "show_versions", "system_report"]

_FOR_DEVELOPERS = frozenset({"bench", "dev", "docs"})


def _installed(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _requirements() -> list[tuple[str, str | None]]:
    """Every requirement of the installed distribution: the package, and the extra that asks for it."""
    import re
    from importlib import metadata

    pairs: list[tuple[str, str | None]] = []
    for line in metadata.requires("mercer") or ():
        package = re.match(r"[A-Za-z0-9._-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        if package:
            pairs.append((package.group(), extra.group(1) if extra else None))
    return pairs


def extras() -> dict[str, dict[str, str | None]]:
    """Return the extras of the package, each with its packages and their installed versions.

    Extras for development are left out.

    Examples
    --------
    >>> from mercer._versions import extras
    >>> "matplotlib" in extras()["plot"]
    True
    """
    packages: dict[str, dict[str, str | None]] = {}
    for package, extra in _requirements():
        if extra is not None and extra not in _FOR_DEVELOPERS:
            packages.setdefault(extra, {})[package] = _installed(package)
    return packages


def system_report() -> dict[str, dict[str, str]]:
    """Return the content of ``show_versions``: headings, and under each a table of names and values.

    Examples
    --------
    >>> from mercer._versions import system_report
    >>> list(system_report())
    ['system', 'packages', 'extras', 'compiled core']
    """
    import platform

    from mercer import __version__, _core
    from mercer._validation import thread_count

    required = [package for package, extra in _requirements() if extra is None]
    return {
        "system": {
            "mercer": __version__,
            "python": sys.version.split()[0],
            "executable": sys.executable,
            "machine": platform.platform(),
        },
        "packages": {package: _installed(package) or "missing" for package in required},
        "extras": {
            f"{extra}: {package}": version or "not installed"
            for extra, packages in extras().items()
            for package, version in packages.items()
        },
        "compiled core": {
            "instruction set": _core.instruction_set(),
            "available": ", ".join(_core.instruction_sets()),
            "cores": str(thread_count(-1)),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or "not set",
        },
    }


def show_versions() -> None:
    """Print the information for a bug report: versions, instruction set and threads.

    Examples
    --------
    >>> import mercer
    >>> mercer.show_versions()  # doctest: +ELLIPSIS
    system
      mercer ...
    """
    for heading, values in system_report().items():
        print(heading)
        width = max((len(name) for name in values), default=0)
        for name, value in values.items():
            print(f"  {name:<{width}}  {value}")

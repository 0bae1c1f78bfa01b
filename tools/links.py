"""Check the links of a built site: ``python tools/links.py docs/_build/html``.

Every link to a file of the site must lead to one, and every anchor must be on its page. Links to other sites are
counted and not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        target = given.get("href") if tag in ("a", "link") else given.get("src")
        if target and not target.startswith(("data:", "javascript:", "mailto:")):
            self.links.append(target)


def broken(root: Path) -> tuple[list[str], int, int]:
    """Return the links that lead nowhere, and how many lead to the site itself and to others."""
    pages = {path: Page(path.read_text()) for path in sorted(root.rglob("*.html")) if "_static" not in path.parts}
    wrong, inside, outside = [], 0, 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                outside += 1
                continue
            inside += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists():
                wrong.append(f"{path.relative_to(root)}: no file {link}")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                wrong.append(f"{path.relative_to(root)}: no anchor {link}")
    return sorted(set(wrong)), inside, outside


def main() -> None:
    """Check the site whose folder is named."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html").resolve()
    wrong, inside, outside = broken(root)
    if not inside:
        sys.exit(f"{root} has no links: run 'make docs' first")
    print(f"{inside:,} links within the site, {outside:,} to others, {len(wrong)} broken")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()

"""What a browser would make of a page: its tags, ids, links, headings and words."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})


@dataclass(slots=True)
class Page:
    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    headings: list[int] = field(default_factory=list)
    resources: list[tuple[str, str, str]] = field(default_factory=list)
    """Tag, attribute, value: of every attribute that could load something, or run something."""
    tags: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.words)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.page.faults.append(f"</{tag}> in {self.open[-3:]} at {self.getpos()}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open[-1:]):
            self.page.words.append(data)

    def _element(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        page = self.page
        page.tags.append(tag)
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            page.faults.append(f"<{tag}> has an attribute twice: {names}")
        for name, value in attrs:
            if name == "id":
                page.ids.append(value or "")
            elif name == "href":
                page.links.append(value or "")
            elif name in {"src", "srcset", "action", "data", "poster", "xlink:href"} or name.startswith("on"):
                page.resources.append((tag, name, value or ""))
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            page.headings.append(int(tag[1]))


def read(html: str) -> Page:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    if reader.open:
        reader.page.faults.append(f"never closed: {reader.open}")
    return reader.page

"""Elements. A child that is not ``Html`` is text, and is escaped: nobody has to remember to."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from killpoint.report.words import printable

VOID = frozenset({"br", "circle", "line", "link", "meta", "path", "rect", "use", "wbr"})

Attribute = str | float | bool | None


class Html(str):
    """Markup that is safe to put into a page as it is."""

    __slots__ = ()


NOTHING = Html("")


def text(words: str) -> Html:
    """Words as markup: escaped, and without control characters."""
    return Html(escape(printable(words)))


def join(parts: Iterable[str]) -> Html:
    """Markup and words, one after another."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts))


def el(name: str, *children: str, **attributes: Attribute) -> Html:
    """An element. Attributes: ``cls`` is class, ``_`` is ``-``; True stands alone; None and False are left out."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{join(children)}</{name}>")


def svg(name: str, *children: str, **attributes: Attribute) -> Html:
    """An element of a drawing: closed even where it is empty, as SVG wants it."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{said}>{join(children)}</{name}>" if children else f"<{name}{said}/>")


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
    if name in CAMEL:
        name = CAMEL[name]
    if value is True:
        return f" {name}"
    words = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(printable(words))}"'


CAMEL = {"viewbox": "viewBox"}


def hidden(words: str) -> Html:
    """Words for screen readers alone."""
    return el("span", words, cls="sr")


def link(target: str, *children: str, **attributes: Attribute) -> Html:
    """A link to a place in this page; there are no others."""
    return el("a", *children, href=f"#{target}", **attributes)


def code(words: str) -> Html:
    return el("code", words)


def command(words: str) -> Html:
    """A command to copy: a click selects the whole of it."""
    return el("div", el("code", words, tabindex=0), cls="cmd")


def facts(pairs: Iterable[tuple[str, str]], *, cls: str) -> Html:
    """A list of names and values."""
    return el("dl", *(el("div", el("dt", name), el("dd", value)) for name, value in pairs), cls=cls)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], *, label: str, right: frozenset[int]) -> Html:
    """A table that scrolls in a frame of its own where the page is narrow. ``right``: columns of numbers."""
    head = el("tr", *(el("th", name, scope="col", cls="r" if i in right else None) for i, name in enumerate(heads)))
    body = (
        el("tr", *(el("td", value, cls="r" if i in right else None) for i, value in enumerate(row))) for row in rows
    )
    inner = el("table", el("thead", head), el("tbody", *body), cls="lt")
    return scrolled(inner, label=label)


def scrolled(inner: Html, *, label: str) -> Html:
    """A frame in which a wide table scrolls; shadows at its edges, and the page's script in words, say that it does."""
    return el("div", inner, cls="sc", tabindex=0, role="region", aria_label=label)

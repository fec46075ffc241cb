"""The page: its sections, one after another, with styles and a few lines of script."""

from __future__ import annotations

import base64
import hashlib

from killpoint.model.summary import ExperimentSummary
from killpoint.report.grouping import anchors, examples, group
from killpoint.report.html import costs, findings, matrix, provenance, trials
from killpoint.report.html.glyphs import symbols
from killpoint.report.html.head import head
from killpoint.report.html.markup import Html, el
from killpoint.report.html.styles import STYLES
from killpoint.report.layout import arrange
from killpoint.report.lead import lead_text, result_word
from killpoint.report.words import shorten

FULL_MAX = 4
TITLE_CHARACTERS = 120

# The page works without it. It opens the trial that a link leads to, gives commands a button, and says below a table
# that is wider than the page that it scrolls.
SCRIPT = """
function show(){for(let e=document.getElementById(decodeURIComponent(location.hash.slice(1)));e;e=e.parentElement)
if(e.tagName==='DETAILS')e.open=true}
addEventListener('hashchange',()=>{show();const e=document.querySelector(':target');if(e)e.scrollIntoView()});show();
for(const c of document.querySelectorAll('.cmd code')){const b=document.createElement('button');b.textContent='Copy';
b.onclick=async()=>{try{await navigator.clipboard.writeText(c.textContent);b.textContent='Copied'}
catch{getSelection().selectAllChildren(c);b.textContent='Selected'}};c.after(b)}
const wider=new ResizeObserver(all=>{for(const {target:f} of all)f.nextSibling.hidden=f.scrollWidth<=f.clientWidth+1});
for(const f of document.querySelectorAll('.sc')){const p=document.createElement('p');p.className='sw';p.hidden=true;
p.textContent='Wider than the page: scroll sideways \u2192';f.after(p);wider.observe(f)}
"""
SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{SCRIPT_HASH}'"


def render(summary: ExperimentSummary) -> str:
    """One HTML document without any outside resource. At most 1,000 trials are shown with their evidence."""
    layout = arrange(summary.cells)
    groups = group(summary)
    choice = trials.choose(summary, examples(groups, most=FULL_MAX))
    main = el(
        "main",
        matrix.section(summary, layout, anchors(groups)),
        trials.in_full(summary, layout, choice),
        findings.section(summary, layout, groups),
        costs.section(summary),
        trials.section(summary, layout, choice),
        id="main",
    )
    body = el(
        "body",
        symbols(),
        el("a", "Skip to the matrix", href="#matrix", cls="skip"),
        head(summary, shown=bool(choice.full)),
        main,
        el("footer", provenance.section(summary)),
        el("script", Html(SCRIPT)),
    )
    return "<!doctype html>\n" + el("html", _head(summary), body, lang="en") + "\n"


def _head(summary: ExperimentSummary) -> Html:
    title = f"{summary.name}: {result_word(summary.result)} (killpoint)"
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name_="viewport", content="width=device-width,initial-scale=1"),
        el("meta", name_="color-scheme", content="light dark"),
        el("meta", name_="description", content=shorten(lead_text(summary), TITLE_CHARACTERS)),
        el("title", title),
        el("style", Html(STYLES)),
    )

"""One self-contained HTML file: the matrix, the findings, every trial with its evidence, the costs, the provenance.

Responsible for markup. Must not fetch anything: no font, script, image or style from outside. What a worker, a
framework or a file said gets into the page only through ``markup``, which escapes it.
"""

from killpoint.report.html.page import render

__all__ = ["render"]

"""Reports: an ``ExperimentSummary`` as HTML, JUnit XML, Markdown and a terminal's table.

Responsible for wording and layout. Must not do I/O, read a clock or judge: it shows what was found, and what it adds
(how often a charge was sent again, how long a recovery took) it counts from the evidence in the summary.
"""

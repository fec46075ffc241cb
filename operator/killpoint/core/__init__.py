"""Decisions: plan, fold, decide, judge, summarize. Synchronous and pure: values in, values out.

Responsible for everything that makes a result true. Must not do I/O, read a clock, draw random numbers or make ids:
time, nonces and observations are passed in. ``docs/decisions`` has the reasons for the larger rules.
"""

"""Experiments on this machine: workers as processes, an embedded Postgres, payments as a process of its own.

Responsible for everything that the command line needs to run an experiment here: where state lies, the workers'
environments, the databases, the payments service and the substrate. Must not decide or judge anything, and must not
know of kopf, typer or rich. ``stack.local_stack`` composes it.
"""

"""The command line: ``killpoint`` and ``kubectl killpoint``.

Responsible for composing adapters with the engine, for progress on stderr, results on stdout and exit codes. Must not
decide anything about trials. The only importer of typer and rich.
"""

from killpoint.cli.app import main

__all__ = ["main"]

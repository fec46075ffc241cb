"""killpoint: kill agent-workflow workers at exact points and prove what happened.

This package holds the engine, its adapters, the command line and the operator. ``ARCHITECTURE.md`` in the
repository is the map of its rooms and of the import rules between them.
"""

__version__ = "0.1.0"

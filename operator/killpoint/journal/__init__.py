"""The journal: events of runs in Postgres, appended under an epoch, and their codec.

Responsible for durability, order and fencing. Must not decide anything: it neither reads a meaning into events nor
writes ones of its own.
"""

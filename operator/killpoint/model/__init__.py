"""Values: what an experiment consists of, what was seen, what is to be done and what was found.

Responsible for the vocabulary as frozen types. Must not do I/O, read a clock, draw random numbers or know of
Postgres, HTTP, Kubernetes, kopf or pydantic.
"""

"""Databases: what killpoint has on a Postgres server, and who holds sessions there.

Responsible for connecting, for the databases and roles of services and experiment runs, for DSNs, and for saying in
words what is wrong with a server. Must not know whether workers are processes or pods, and must not decide anything.
"""

"""The experiment as people write it: its types, how a file becomes one, and what can be wrong with it.

Responsible for every default and limit, for clear words about mistakes, and for turning a specification and the
catalog into the values that the core works with. Must not run, plan or judge anything, and knows of no cluster.
"""

"""Experiments in a cluster, from the outside: with a kubeconfig alone, as ``kubectl`` has them.

Responsible for applying an experiment, waiting for its end, aborting it, and fetching its evidence through the API
server. Results are summed up and rendered by what does so for a run on this machine. Only ``api`` imports the
Kubernetes client, which is an extra: everything else works, and is tested, without it.
"""

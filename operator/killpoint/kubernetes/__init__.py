"""Experiments in a cluster: attempts are pods, started and observed through the Kubernetes API.

Responsible for manifests, for reading pods as observations, and for ending, releasing and freeing them. Must not decide
or judge anything, and must not know of kopf, of the command line or of the local room. ``names``, ``manifests``,
``refusals`` and ``observe`` are pure; ``client`` makes requests; ``substrate`` puts them together.

What it asks of the API server, in the namespace of the experiment:

| group | resource | verbs | for |
|---|---|---|---|
| (core) | pods | create, get, list, patch, delete | attempts; patch: marks of a kill, and the evidence finalizer |
| (core) | pods/eviction | create | kills by eviction |
| (core) | pods/log | get | the last lines of a worker that ended without a word |
| (core) | secrets | create, delete | tokens of a trial's attempts, the address of the experiment's database |

Secrets are never read. Where the plugin OwnerReferencesPermissionEnforcement is on (OpenShift), setting owner
references that block deletion also asks for ``update`` of ``killpoint.dev crashexperiments/finalizers``.
"""

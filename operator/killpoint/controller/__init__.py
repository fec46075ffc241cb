"""The operator: CrashExperiment objects are accepted, run and reported, whatever is killed meanwhile, it included.

Responsible for composing the engine of each experiment, for its status, Events and deletion, and for there being one
operator at a time. Must not decide or judge anything about a trial. The only importer of kopf.

One kopf daemon per unfinished experiment makes pass after pass, woken by its pods (``daemon``); one writer puts its
status on it (``writer``); what goes wrong with one experiment stays with it (``supervision``). What it does itself is
in this table; what it does with pods and secrets besides is in that of ``killpoint.kubernetes``.

| group | resource | verbs | where | for |
|---|---|---|---|---|
| killpoint.dev | crashexperiments | get, list, watch, patch, delete | served | watching; kopf's finalizer; retention |
| killpoint.dev | crashexperiments/status | patch | served | the status, by server-side apply (get is of the object) |
| killpoint.dev | crashexperiments/finalizers | update | served | owner references that block deletion (OpenShift) |
| (core) | pods | list, watch | served | waking daemons; finding orphans |
| (core) | secrets | deletecollection | served | freeing what an experiment held |
| (core) | events | create | served | changes of an experiment |
| coordination.k8s.io | leases | get, create, update | own namespace | one operator at a time |
| (discovery) | /version, /apis/… | get | cluster | every authenticated user may (system:discovery) |

"served": a Role in each namespace of KILLPOINT_NAMESPACES, or one ClusterRole where that is ``*``. No ConfigMap, CRD or
namespace is read; secrets are never read.
"""

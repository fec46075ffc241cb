"""Names, labels and annotations of the objects that killpoint makes in a cluster."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from killpoint.model.cells import AttemptId, TrialId

DOMAIN = "killpoint.dev"
MANAGED_BY = "app.kubernetes.io/managed-by"
EXPERIMENT_UID = f"{DOMAIN}/experiment-uid"
JOURNAL = f"{DOMAIN}/journal"
TRIAL = f"{DOMAIN}/trial"
ATTEMPT = f"{DOMAIN}/attempt"
ROLE = f"{DOMAIN}/role"
SETUP = f"{DOMAIN}/setup"
RETAINED = f"{DOMAIN}/retained"
"""On pods that stay although nothing is expected of them any more."""

EVIDENCE = f"{DOMAIN}/evidence"
"""The finalizer that keeps a pod readable until its end is in the journal."""
ASSIGNMENT_DIGEST = f"{DOMAIN}/assignment-sha256"
NONCE = f"{DOMAIN}/nonce"
PARKS = f"{DOMAIN}/parks"
"""On pods whose schedule has them wait for the harness."""
KILLED_BY = f"{DOMAIN}/killed-by"
"""The method by which the harness is about to end the pod. A pod that goes without it was ended by somebody else."""
NOT_STARTED = f"{DOMAIN}/not-started"
"""Why a pod had not started when the harness gave it up, in words."""

CONTAINER = "worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The object that everything of an experiment belongs to."""

    api_version: str
    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where an experiment's objects are, and how they are told from others."""

    namespace: str
    owner: Owner
    journal: str

    @property
    def selector(self) -> str:
        """Of the pods that are still of interest."""
        return f"{EXPERIMENT_UID}={self.owner.uid},{JOURNAL}={self.journal},!{RETAINED}"

    def tokens_but(self, trials: Collection[TrialId]) -> str:
        """Of the secrets with tokens of all trials but these."""
        others = f",{TRIAL} notin ({','.join(sorted(map(str, trials)))})" if trials else ""
        return f"{EXPERIMENT_UID}={self.owner.uid},{JOURNAL}={self.journal},{TRIAL}{others}"

    @property
    def database_secret(self) -> str:
        return f"kp-{self.journal}"

    def pod(self, attempt: AttemptId) -> str:
        return f"kp-{self.journal}-{str(attempt).replace('.', '-')}"

    def token_secret(self, trial: TrialId) -> str:
        return f"kp-{self.journal}-{str(trial).replace('.', '-')}"


def journal_id(uid: str) -> str:
    """Eight hexadecimal digits from the UID of the experiment's object."""
    return hashlib.sha256(uid.encode()).hexdigest()[:8]


def suffix_of(attempt: AttemptId) -> str:
    """An attempt's key within the secret of its trial: ``2``; ``2i`` for the look into the store after it."""
    return str(attempt).removeprefix(f"{attempt.trial}.")


def digest_of(assignment: Mapping[str, object]) -> str:
    """What tells two assignments apart, nonce included."""
    text = json.dumps(assignment, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()

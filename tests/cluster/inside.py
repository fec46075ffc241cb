"""What a worker's pod can get at, asked from inside of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.cluster.kubectl import Kubectl

LISTENS = 9999
"""The port at which IDLE listens."""
IDLE = f"""
import json, os, socket
assignment = json.loads(os.environ["KILLPOINT_ASSIGNMENT"])
with open("/dev/termination-log", "a") as log:
    log.write(json.dumps({{"killpoint": 1, "attempt": assignment["attempt"], "nonce": assignment["nonce"]}}) + chr(10))
server = socket.create_server(("0.0.0.0", {LISTENS}))
while True:
    server.accept()[0].close()
"""
"""A worker that says who it is, listens, and goes no further."""
_ASK = """
import json, os, socket, sys, urllib.error, urllib.request

def connect(place):
    host, port = place.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 3).close()
    except OSError as error:
        return f"refused: {error}"
    return "open"

def ask(method, url, token, body=None):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
    except OSError as error:
        return f"refused: {error}"

def query(dsn, *statements):
    import psycopg
    try:
        with psycopg.connect(dsn, connect_timeout=5, autocommit=True) as connection:
            for statement in statements:
                done = connection.execute(statement)
            return str(done.fetchall()) if done.description else done.statusmessage
    except psycopg.Error as error:
        return f"refused: {error}"

def there(*paths):
    return str([path for path in paths if os.path.exists(path)])

def written(*paths):
    done = []
    for path in paths:
        try:
            open(path, "w").close()
            done.append(path)
        except OSError:
            pass
    return str(done)

def variables():
    return json.dumps(dict(os.environ))

does = {"connect": connect, "ask": ask, "query": query, "there": there, "written": written, "variables": variables}
print(json.dumps({name: does[what](*words) for name, (what, *words) in json.load(sys.stdin).items()}))
"""

Probes = Mapping[str, Sequence[object]]
"""Name → what to do, and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """A running worker."""

    kubectl: Kubectl
    pod: str

    def answers(self, probes: Probes) -> dict[str, str]:
        """Name → what became of it; what was kept out begins with ``refused``."""
        said = self.kubectl(
            "exec", "--stdin", self.pod, "--container=worker", "--", "python", "-c", _ASK, manifest=probes
        )
        found: dict[str, str] = json.loads(said)
        return found

    def variables(self) -> dict[str, str]:
        found: dict[str, str] = json.loads(self.answers({"all": ["variables"]})["all"])
        return found

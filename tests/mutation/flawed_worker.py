"""A worker that keeps its state in one file, and has the flaw that its parameter names.

Flaws show only where something was killed, so that the control of each comes out as it has to.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from killpoint_worker import PaymentsClient, Receipt

LONG_SECONDS = 60
ZOMBIE_SECONDS = 0.5
"""After its parent's death."""


class Worker:
    """One attempt."""

    def __init__(self, assignment: dict[str, Any]) -> None:
        self.assignment = assignment
        self.number: int = assignment["number"]
        self.order = assignment["job"]["orders"][0]
        self.volume = Path(os.environ["KILLPOINT_VOLUME"])
        self.state = self.volume / "state.json"
        self.token = os.environ["KILLPOINT_TOKEN"]
        flaw = assignment["coordinates"]["parameters"]["flaw"]
        self.flaw = flaw if assignment["schedule"] or assignment["action"] != "start" else "none"
        # A control leaves its token where another trial finds it.
        self.others_token = self.volume.parent / f"token-{flaw}"
        if self.flaw == "none":
            self.others_token.write_text(self.token)

    # --- what it says ---

    def say(self, **line: object) -> None:
        with Path(os.environ["KILLPOINT_TERMINATION_LOG"]).open("a") as log:
            log.write(json.dumps(line) + "\n")

    def header(self) -> None:
        attempt, nonce = self.assignment["attempt"], self.assignment["nonce"]
        if self.resumes_with("says-another-nonce"):
            nonce = "0" * 16
        if self.resumes_with("says-another-attempt"):
            attempt = f"{self.assignment['trial']}.1"
        self.say(killpoint=1, attempt=attempt, nonce=nonce)

    def passed(self, point: str) -> None:
        scheduled = any(kill["point"] == point for kill in self.assignment["schedule"])
        if self.flaw == "dies-elsewhere" and point == "charge.before" and self.assignment["schedule"]:
            self.say(point=point)
            self.die()
        if scheduled and self.flaw == "dies-without-a-line":
            self.die()
        self.say(point=point)
        if scheduled and self.flaw == "leaves-instead":
            os._exit(0)
        if scheduled and self.flaw == "leaves-a-child":
            self.leave_a_child()
        if scheduled and self.flaw != "never-dies":
            self.die()

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def leave_a_child(self) -> None:
        """In a session of its own: it charges after its parent's death."""
        subprocess.Popen(
            [sys.executable, __file__, "charge"], start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def resumes_with(self, flaw: str) -> bool:
        return self.flaw == flaw and self.assignment["action"] == "resume"

    # --- what it does ---

    def act(self) -> None:
        self.header()
        if self.assignment["action"] == "inspect":
            if self.flaw == "does-not-look":
                os._exit(3)
            self.say(outcome="inspected", recorded={"charge": self.state.exists()})
            return
        if self.resumes_with("hangs"):
            self.say(point="prepare.before")
            time.sleep(LONG_SECONDS)
        if self.resumes_with("says-nothing-at-its-end"):
            return
        if self.resumes_with("talks-rubbish"):
            with Path(os.environ["KILLPOINT_TERMINATION_LOG"]).open("ab") as log:
                log.write(b"\x00\xff all is well\n")
        self.carry_out()

    def carry_out(self) -> None:
        resumed = self.state.exists()
        effect = json.loads(self.state.read_text())["effect"] if resumed else self.charge()
        if not self.resumes_with("forgets-to-finalize"):
            self.payments().notify(order=self.order["id"], kind="finalize")
        claimed = "ch_invented" if self.resumes_with("claims-another-effect") else effect
        self.say(
            outcome="finished",
            resumedFrom="state.json" if resumed else None,
            claims=[{"action": "charge", "order": self.order["id"], "effect": claimed}],
        )

    def charge(self) -> str:
        if self.flaw == "says-before-too-late":
            receipt = self.request()
            self.passed("charge.before")
        elif self.flaw == "says-after-too-early":
            self.passed("charge.before")
            self.passed("charge.after")
            receipt = self.request()
        else:
            self.passed("charge.before")
            receipt = self.request()
        if self.flaw != "says-after-too-early":
            self.passed("charge.after")
        if self.flaw == "says-recorded-too-early":
            self.passed("charge.recorded")
        self.state.write_text(json.dumps({"effect": receipt.id}))
        self.passed("charge.recorded")
        return receipt.id

    def request(self) -> Receipt:
        amount, order, key = self.order["amount"], self.order["id"], f"{self.assignment['run']}:charge"
        if self.resumes_with("charges-another-amount"):
            amount, key = amount + 1, "another"
        if self.resumes_with("charges-another-amount-under-its-key"):
            amount += 1
        if self.resumes_with("charges-another-order"):
            order += "0"
        receipt = self.payments().charge(order=order, amount=amount, currency=self.order["currency"], key=key)
        if self.resumes_with("charges-twice"):
            self.payments().charge(order=order, amount=amount, currency=self.order["currency"], key=None)
        return receipt

    def payments(self) -> PaymentsClient:
        token = self.others_token.read_text() if self.resumes_with("borrows-a-token") else self.token
        return PaymentsClient(os.environ["KILLPOINT_PAYMENTS_URL"], token)


def main() -> None:
    worker = Worker(json.loads(os.environ["KILLPOINT_ASSIGNMENT"]))
    if sys.argv[1:] == ["charge"]:
        time.sleep(ZOMBIE_SECONDS)
        worker.payments().charge(
            order=worker.order["id"], amount=worker.order["amount"], currency=worker.order["currency"], key=None
        )
        return
    try:
        worker.act()
    except Exception as error:
        worker.say(outcome="failed", error={"class": type(error).__name__, "message": str(error)})
        raise SystemExit(1) from error


if __name__ == "__main__":
    main()

"""Control: where attempts park until the engine kills or releases them, and the engine's view of that.

Responsible for remembering who is parked, through its own restarts and the operator's. Must not decide what becomes of
a parked attempt, and knows nothing of experiments but the tokens of their attempts.
"""

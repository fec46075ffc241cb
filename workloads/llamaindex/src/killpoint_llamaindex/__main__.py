"""``python -m killpoint_llamaindex``: one attempt."""

from killpoint_llamaindex import main

main()

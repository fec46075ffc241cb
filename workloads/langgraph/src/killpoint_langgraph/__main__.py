"""One attempt as a process of its own: ``python -m killpoint_langgraph``."""

from killpoint_langgraph import main

if __name__ == "__main__":
    main()

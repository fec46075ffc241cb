"""``python -m killpoint_crewai``: carry out the assignment in the environment."""

from killpoint_crewai import main

main()

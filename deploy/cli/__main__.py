"""`python -m temporality.deploy.cli`, for processes that start processes."""

from temporality.deploy.cli import main

main()

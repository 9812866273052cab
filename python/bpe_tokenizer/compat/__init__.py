"""Other libraries' interfaces over this package: programs change an import and nothing else."""

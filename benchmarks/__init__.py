"""Speed against other packages: declared cases, run in turn, recorded, and shown in docs/benchmarks.md."""

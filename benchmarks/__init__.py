"""Speed compared with other packages: declared cases, alternating runs, records, docs/benchmarks.md."""

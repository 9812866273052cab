"""The answers of readers are not tests."""

collect_ignore_glob = ["answers/*"]

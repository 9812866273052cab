"""Run, for each change of the package, the tests that reach it: `mutants/run.py` starts it.

    python mutants/python_changes.py tests/formats ... --seconds 5

mutmut writes the changes of each function beside the function, and the name of a change in the environment
chooses it. Its own runner collects the tests again for every change. This one collects them once, runs them
once to see which functions they reach, once in a fork to see which pass there, and then forks for every
change.

It runs in a directory with mutmut's settings, and writes the unnoticed changes to `report.json`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import pytest
from mutmut.__main__ import create_mutants
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import (
    copy_also_copy_files,
    copy_src_dir,
    setup_source_paths,
    walk_mutatable_files,
)
from mutmut.utils.format_utils import mangled_name_from_mutant_name

# A failure is only counted: nothing is shrunk, compared or formatted.
PYTEST = ["-q", "--capture=no", "--tb=native", "--assert=plain", "-p", "no:cacheprovider"]
REPORT = Path("report.json")
JOBS = os.cpu_count() or 1
# What a change may use besides, before it counts as noticed: it may make a loop endless, or a string.
MORE_SECONDS = 10
MORE_MEMORY = 2**32


def changes() -> dict[str, Path]:
    """Write all changes into `mutants/`; returns their names and their files."""
    Path("mutants").mkdir(exist_ok=True)
    copy_src_dir()
    copy_also_copy_files()
    setup_source_paths()
    create_mutants(JOBS)
    found = {}
    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        found.update(dict.fromkeys(data.exit_code_by_key, path))
    return found


class EachChange:
    """A plugin of pytest that runs the tests that reach a change, in a fork for each."""

    def __init__(self, names: list[str], seconds: float) -> None:
        self.outcomes: dict[str, str] = {}
        self._names = names
        self._seconds = seconds
        # The tests that reach a function, and the seconds of each test.
        self._reaching: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        self._times: dict[str, float] = {}
        # By process: the change, and the time at which it is late.
        self._running: dict[int, tuple[str, float]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run everything once without a change, and then the tests of each change."""
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        self._run_unchanged(session)
        self._leave_out(session.items)
        for done, name in enumerate(self._names):
            if sys.stderr.isatty():
                print(f"\r{done} of {len(self._names)} changes", end="", file=sys.stderr)
            tests = self._tests(name)
            if tests:
                self._wait(JOBS - 1)
                self._start(name, tests)
            else:
                self.outcomes[name] = "no tests"
        self._wait(0)
        return True

    def _run_unchanged(self, session: pytest.Session) -> None:
        for place, item in enumerate(session.items):
            # With the session as what follows the last test, the session's fixtures stay.
            following = session.items[place + 1] if place + 1 < len(session.items) else session
            state()._stats.clear()
            set_mutant_under_test("stats")
            start = time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._times[item.nodeid] = time.monotonic() - start
            for function in state()._stats:
                self._reaching[function].append(item)
        set_mutant_under_test("")
        session.testsfailed = 0  # in a fork, it counts the failures under a change
        gc.collect()
        gc.freeze()  # what the forks share stays shared

    def _leave_out(self, items: list[pytest.Item]) -> None:
        """Run everything once more without a change, in a fork, and leave out what fails there."""
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                _be_silent()
                for item, following in zip(items, [*items[1:], None], strict=True):
                    item.session.testsfailed = 0
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if item.session.testsfailed:
                        os.write(writer, f"{item.nodeid}\n".encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as lines:
            failing = set(lines.read().splitlines())
        os.wait()
        for name in sorted(failing):
            print(f"\nleft out, as it fails without a change: {name}")
        for function, tests in self._reaching.items():
            self._reaching[function] = [item for item in tests if item.nodeid not in failing]

    def _tests(self, name: str) -> list[pytest.Item]:
        """The quickest of the tests that reach a change, as many as the time allows."""
        reaching = self._reaching[mangled_name_from_mutant_name(name)]
        tests: list[pytest.Item] = []
        total = 0.0
        for item in sorted(reaching, key=lambda item: self._times[item.nodeid]):
            total += self._times[item.nodeid]
            if total > self._seconds and tests:
                break
            tests.append(item)
        return tests

    def _start(self, name: str, tests: list[pytest.Item]) -> None:
        seconds = 3 * sum(self._times[item.nodeid] for item in tests) + MORE_SECONDS
        process = os.fork()
        if process:
            self._running[process] = (name, time.monotonic() + 2 * seconds)
            return
        code = 1
        try:
            os.setsid()
            _be_silent()
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + MORE_MEMORY, resource.RLIM_INFINITY))
            set_mutant_under_test(name)
            code = self._run_until_one_fails(tests)
        finally:
            os._exit(code)

    @staticmethod
    def _run_until_one_fails(tests: list[pytest.Item]) -> int:
        for item, following in zip(tests, [*tests[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if item.session.testsfailed:
                return 1
        return 0

    def _wait(self, most: int) -> None:
        """Wait until at most that many processes run."""
        while True:
            for process, (name, late) in list(self._running.items()):
                ended, status = os.waitpid(process, os.WNOHANG)
                if not ended and time.monotonic() > late:
                    os.kill(process, signal.SIGKILL)
                    _, status = os.waitpid(process, 0)
                elif not ended:
                    continue
                with suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGKILL)  # what the tests have started
                self.outcomes[name] = "survived" if status == 0 else "noticed"
                del self._running[process]
            if len(self._running) <= most:
                return
            time.sleep(0.002)


def _be_silent() -> None:
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--seconds", type=float, required=True, help="of tests, for one change")
    parser.add_argument("--again", action="store_true", help="only what the last report says survived")
    arguments = parser.parse_args()
    files = changes()
    names = list(files)
    if arguments.again:
        report = json.loads(REPORT.read_text(encoding="utf-8"))
        names = [change["name"] for change in report if change["name"] in files]
    each_change = EachChange(names, arguments.seconds)
    os.chdir("mutants")
    os.environ["HYPOTHESIS_PROFILE"] = "changes"
    code = pytest.main([*PYTEST, *arguments.tests], plugins=[each_change])
    os.chdir("..")
    print(file=sys.stderr)
    survived = [name for name, outcome in each_change.outcomes.items() if outcome != "noticed"]
    report = [{"name": name, "diff": get_diff_for_mutant(name, path=files[name])} for name in survived]
    REPORT.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    print(f"{len(names)} changes, {len(survived)} of them unnoticed")
    return 0 if code in (0, 5) else 1


if __name__ == "__main__":
    sys.exit(main())

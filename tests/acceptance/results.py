"""The results of a part, and the failures that are expected."""
import dataclasses
import pathlib
import re
import xml.etree.ElementTree


@dataclasses.dataclass
class Part:
    name: str
    passed: int = 0
    failures: list = dataclasses.field(default_factory=list)  # one line each
    expected: list = dataclasses.field(default_factory=list)  # (test, reason)
    notes: list = dataclasses.field(default_factory=list)     # measured values

    def check(self, is_true, what):
        """Counts a check; `what` is the line of its failure."""
        if is_true:
            self.passed += 1
        else:
            self.failures.append(what)
        return is_true


@dataclasses.dataclass
class ExpectedFailure:
    part: str
    test: re.Pattern
    error: str  # the failure's text must contain this
    reason: str
    used: bool = False


def read_expected(path):
    """Lines "part, test, text of the error, reason", by tabs; * in a test stands for any text."""
    out = []
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 4:
            raise SystemExit(f"{path}:{number}: expected part, test, text of the error and reason, by tabs")
        pattern = ".*".join(map(re.escape, fields[1].split("*")))
        out.append(ExpectedFailure(fields[0], re.compile(pattern), fields[2], fields[3]))
    return out


def cases(junit):
    """(test, None or text of its failure, is skipped) of pytest's JUnit file."""
    for case in xml.etree.ElementTree.parse(junit).iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name')}".removeprefix("::")
        failure = None
        for tag in ("failure", "error"):
            for node in case.findall(tag):
                failure = (failure or "") + f"{node.get('message', '')}\n{node.text or ''}"
        yield name, failure, case.find("skipped") is not None


def add_pytest(part, junit, status, expected, log):
    """Adds the results of a run of pytest. A failure that is expected and does not happen is a failure."""
    mine = [e for e in expected if e.part == part.name]
    seen = 0
    for name, failure, is_skipped in cases(junit) if pathlib.Path(junit).exists() else ():
        seen += 1
        known = next((e for e in mine if e.test.fullmatch(name)), None)
        if is_skipped:
            part.failures.append(f"{name}: skipped")
        elif known and failure and known.error in failure:
            known.used = True
            part.expected.append((name, known.reason))
        elif known and not failure:
            known.used = True
            part.failures.append(f"{name}: passes, but expected_failures.txt lists it ({known.reason})")
        elif failure:
            text = next((line for line in failure.splitlines() if line.strip()), "")
            part.failures.append(f"{name}: {text[:300]}")
        else:
            part.passed += 1
    for unused in (e for e in mine if not e.used):
        part.failures.append(f"expected_failures.txt: no test {unused.test.pattern!r} fails with {unused.error!r}")
    # 1: some tests fail. Anything else is no result.
    if seen == 0 or status not in (0, 1):
        part.failures.append(f"pytest ends with status {status} after {seen} tests; see {log}")
    return part

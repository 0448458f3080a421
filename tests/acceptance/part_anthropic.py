"""Anthropic's Messages API: the tests of the anthropic package, and generated requests."""
import json
import pathlib

from part_pytest import run_pytest

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = 500  # per operation of the phase "fuzzing"; the phase "coverage" adds thousands
LEAST = 1000


def run_sdk(context, part):
    """The tests of the anthropic package that send messages and count tokens."""
    folder = context.environment.source_distribution("anthropic")
    run_pytest(context, part, ["-n", "2", "--durations=0", "-k", "create or count", "tests/api_resources/test_messages.py"],
               folder, TEST_API_BASE_URL=context.server.url)


def run_schema(context, part):
    """Requests that follow Anthropic's specification or break it; answers are compared with it."""
    environment, out = context.environment, context.out
    specification, report, log = (out / f"anthropic-{name}" for name in ("specification.json", "schema.json", "schema.log"))
    report.unlink(missing_ok=True)
    size = environment.output(HERE / "trim_anthropic.py", specification)
    environment.run([environment.python.parent / "st", "--config-file", HERE / "schemathesis.toml", "run", specification, "--url",
                     context.server.url, "--phases", "coverage,fuzzing", "--max-examples", EXAMPLES, "--seed", context.seed,
                     "--continue-on-failure", "--exclude-checks", "ignored_auth,negative_data_rejection,missing_required_header",
                     "--generation-database", "none", "--output-sanitize", "false", "--report", "json", "--report-json-path", report,
                     "--no-color"],
                    log, cwd=out, PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1", SCHEMATHESIS_HOOKS="anthropic_hooks",
                    SPECIFICATION=str(specification))
    if not part.check(report.exists(), f"schemathesis wrote no report; see {log}"):
        return
    found = json.loads(report.read_text(encoding="utf-8"))
    cases = found["test_cases"]
    part.passed += cases["generated"] - cases["with_failures"]
    for failure in found["failures"]:
        part.failures.append(f"{failure['title']}, {failure['count']} times: {', '.join(failure['operations'])}; see {log}")
    for error in found["errors"]:
        part.failures.append(f"{error}; see {log}"[:500])
    part.check(cases["generated"] >= LEAST, f"expected at least {LEAST} requests, found {cases['generated']}")
    part.notes.append(f"{size.strip()}; {cases['generated']} requests, seed {context.seed}, {found['running_time']:.0f} s")


def run(context, part):
    run_sdk(context, part)
    if not context.is_short:  # it takes minutes
        run_schema(context, part)

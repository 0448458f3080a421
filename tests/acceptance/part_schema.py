"""Generated requests, valid and invalid, and answers compared with OpenAI's specification."""
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
# Cases that must be sent, and the examples per operation that give a little more. The phase "coverage" alone sends
# several hundred.
LEAST = {True: 300, False: 10_000}
EXAMPLES = {True: 25, False: 4000}


def run(context, part):
    environment, out = context.environment, context.out
    specification, report, log = out / "specification.json", out / "schemathesis.json", out / "schema.log"
    report.unlink(missing_ok=True)
    print("specification:", environment.output(HERE / "trim_specification.py", specification).strip(), flush=True)
    environment.run([environment.python.parent / "st", "--config-file", HERE / "schemathesis.toml", "run", specification,
                     "--url", context.server.url + "/v1", "--phases", "coverage,fuzzing",
                     "--max-examples", EXAMPLES[context.is_short], "--seed", context.seed, "--continue-on-failure",
                     "--exclude-checks", "ignored_auth", "--generation-database", "none", "--output-sanitize", "false",
                     "--workers", "2", "--report", "json", "--report-json-path", report, "--no-color"],
                    log, cwd=out, PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1", SCHEMATHESIS_HOOKS="schemathesis_hooks")
    if not part.check(report.exists(), f"schemathesis wrote no report; see {log}"):
        return
    found = json.loads(report.read_text(encoding="utf-8"))
    cases = found["test_cases"]
    part.passed += cases["generated"] - cases["with_failures"]
    part.check(cases["generated"] >= LEAST[context.is_short],
               f"expected at least {LEAST[context.is_short]} cases, found {cases['generated']}")
    for failure in found["failures"]:
        part.failures.append(f"{failure['title']}, {failure['count']} times: {', '.join(failure['operations'])}; see {log}")
    for error in found["errors"]:
        part.failures.append(f"{error}; see {log}"[:500])
    part.check(found["complete"] and found["operations"]["tested"] == found["operations"]["total"],
               f"schemathesis did not test every operation; see {log}")
    part.notes.append(f"{cases['generated']} requests with seed {context.seed} in {found['running_time']:.0f} s")

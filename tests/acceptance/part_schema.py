"""Generated requests, valid and invalid, and answers compared with OpenAI's specification."""
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
# Cases that must be sent in all, short and full.
LEAST = {True: 300, False: 10_000}
# Examples per operation of the phase "fuzzing"; the phase "coverage" adds several hundred. "all" uses OpenAI's
# specification with everything that Latte refuses, "supported" without it.
EXAMPLES = {"all": {True: 10, False: 1000}, "supported": {True: 30, False: 3500}}
# Latte needs no key, and takes any value for some fields that it ignores.
UNCHECKED = {"all": "ignored_auth,negative_data_rejection", "supported": "ignored_auth"}


def run_one(context, part, name):
    """One run of schemathesis. Returns the number of requests that it sent."""
    environment, out = context.environment, context.out
    specification, report, log = out / f"specification-{name}.json", out / f"schema-{name}.json", out / f"schema-{name}.log"
    report.unlink(missing_ok=True)
    size = environment.output(HERE / "trim_specification.py", specification, *(["--supported"] if name == "supported" else []))
    environment.run([environment.python.parent / "st", "--config-file", HERE / "schemathesis.toml", "run", specification, "--url",
                     context.server.url + "/v1", "--phases", "coverage,fuzzing", "--max-examples",
                     EXAMPLES[name][context.is_short], "--seed", context.seed, "--continue-on-failure", "--exclude-checks",
                     UNCHECKED[name], "--generation-database", "none", "--output-sanitize", "false", "--report", "json",
                     "--report-json-path", report, "--no-color"],
                    log, cwd=out, PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1", SCHEMATHESIS_HOOKS="schemathesis_hooks",
                    SPECIFICATION=str(specification), EVERYTHING_SUPPORTED=str(int(name == "supported")))
    if not part.check(report.exists(), f"schemathesis wrote no report; see {log}"):
        return 0
    found = json.loads(report.read_text(encoding="utf-8"))
    cases = found["test_cases"]
    part.passed += cases["generated"] - cases["with_failures"]
    for failure in found["failures"]:
        part.failures.append(f"{failure['title']}, {failure['count']} times: {', '.join(failure['operations'])}; see {log}")
    for error in found["errors"]:
        part.failures.append(f"{error}; see {log}"[:500])
    part.check(found["complete"] and found["operations"]["tested"] == found["operations"]["total"],
               f"schemathesis did not test every operation; see {log}")
    part.notes.append(f"{name}: {size.strip()}; {cases['generated']} requests, seed {context.seed}, {found['running_time']:.0f} s")
    return cases["generated"]


def run(context, part):
    sent = sum(run_one(context, part, name) for name in EXAMPLES)
    least = LEAST[context.is_short]
    part.check(sent >= least, f"expected at least {least} requests, found {sent}")

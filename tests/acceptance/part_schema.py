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


def run_schemathesis(context, part, run, **variables):
    """One run: name (of its files), trim (the command that writes the specification), url, examples, unchecked, hooks. Returns its report,
    or None."""
    environment, out, name = context.environment, context.out, run["name"]
    specification, report, log = out / f"specification-{name}.json", out / f"schema-{name}.json", out / f"schema-{name}.log"
    report.unlink(missing_ok=True)
    script, *flags = run["trim"]
    size = environment.output(HERE / script, specification, *flags)
    environment.run([environment.python.parent / "st", "--config-file", HERE / "schemathesis.toml", "run", specification, "--url",
                     run["url"], "--phases", "coverage,fuzzing", "--max-examples", run["examples"], "--seed", context.seed,
                     "--continue-on-failure", "--exclude-checks", run["unchecked"], "--generation-database", "none",
                     "--output-sanitize", "false", "--report", "json", "--report-json-path", report, "--no-color"],
                    log, cwd=out, PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1", SCHEMATHESIS_HOOKS=run["hooks"],
                    SPECIFICATION=str(specification), **variables)
    if not part.check(report.exists(), f"schemathesis wrote no report; see {log}"):
        return None
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
    return found


def run_one(context, part, name):
    """One run of schemathesis. Returns the number of requests that it sent."""
    is_supported = name == "supported"
    found = run_schemathesis(
        context, part,
        {"name": name, "trim": ["trim_specification.py", *(["--supported"] if is_supported else [])], "url": context.server.url + "/v1",
         "examples": EXAMPLES[name][context.is_short], "unchecked": UNCHECKED[name], "hooks": "schemathesis_hooks"},
        EVERYTHING_SUPPORTED=str(int(is_supported)))
    return found["test_cases"]["generated"] if found else 0


def run(context, part):
    sent = sum(run_one(context, part, name) for name in EXAMPLES)
    least = LEAST[context.is_short]
    part.check(sent >= least, f"expected at least {least} requests, found {sent}")

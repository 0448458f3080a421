"""Anthropic's Messages API: the tests of the anthropic package, and generated requests."""
from part_pytest import run_pytest
from part_schema import run_schemathesis

EXAMPLES = 500  # per operation of the phase "fuzzing"; the phase "coverage" adds thousands
LEAST = 1000


def run_sdk(context, part):
    """The tests of the anthropic package that send messages and count tokens."""
    folder = context.environment.source_distribution("anthropic")
    run_pytest(context, part, ["-n", "2", "--durations=0", "-k", "create or count", "tests/api_resources/test_messages.py"],
               folder, TEST_API_BASE_URL=context.server.url)


def run_schema(context, part):
    """Requests that follow Anthropic's specification or break it; answers are compared with it."""
    found = run_schemathesis(context, part, {
        "name": "anthropic", "trim": ["trim_anthropic.py"], "url": context.server.url, "examples": EXAMPLES,
        "unchecked": "ignored_auth,negative_data_rejection,missing_required_header", "hooks": "anthropic_hooks"})
    if found:
        sent = found["test_cases"]["generated"]
        part.check(sent >= LEAST, f"expected at least {LEAST} requests, found {sent}")


def run(context, part):
    run_sdk(context, part)
    if not context.is_short:  # it takes minutes
        run_schema(context, part)

"""The parts that are suites of pytest: the SDK's own tests, own scenarios, one conversation with each further client."""
import pathlib

from results import add_pytest

HERE = pathlib.Path(__file__).resolve().parent


def run_pytest(context, part, arguments, cwd, **variables):
    log, junit = context.out / f"{part.name}.log", context.out / f"{part.name}.xml"
    junit.unlink(missing_ok=True)
    status = context.environment.run([context.environment.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short",
                                      f"--junitxml={junit}", *arguments], log, cwd=cwd, **variables)
    add_pytest(part, junit, status, context.expected, log)


def run_sdk(context, part):
    """The tests of the openai package that send requests for answers and models."""
    folder = context.environment.source_distribution("openai")
    files = ["chat/test_completions.py", "test_completions.py", "test_models.py", "test_responses.py"]
    chosen = "create or (test_models and (list or retrieve))"
    run_pytest(context, part, ["-n", "2", "--durations=0", "-p", "sdk_input", "-k", chosen, *(f"tests/api_resources/{file}" for file in files)],
               folder, TEST_API_BASE_URL=context.server.url + "/v1", PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1")


def run_own(context, part, folder):
    run_pytest(context, part, ["--durations=10", HERE / folder], context.out, PYTHONPATH=str(HERE), PYTHONDONTWRITEBYTECODE="1",
               LATTE=str(context.latte), LATTE_URL=context.server.url, LATTE_LOGS=str(context.out),
            LATTE_SHORT=str(int(context.is_short)),
               LITELLM_LOCAL_MODEL_COST_MAP="True")


def run_scenarios(context, part):
    run_own(context, part, "scenarios")


def run_smoke(context, part):
    run_own(context, part, "smoke")

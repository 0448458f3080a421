"""Numbers of generated requests."""


def with_integers(value):
    """A whole number with a fraction, 7.0, is an integer for JSON Schema. Latte wants 7."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [with_integers(item) for item in value]
    if isinstance(value, dict):
        return {name: with_integers(item) for name, item in value.items()}
    return value

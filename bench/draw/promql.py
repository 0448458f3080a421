"""Evaluates the expressions of the dashboard over recorded series: the part of PromQL that it uses.

An expression is NAME, rate(NAME[interval]), sum, avg or max of one with or without `by (label)`, histogram_quantile of
one, or the quotient of two. Selectors in braces are ignored: the record has one server with one model. A result maps labels to
values; a value is None where there is none.
"""
import re

CALL = re.compile(r"(sum|avg|max)(?: by \((\w+)\))? ?\((.*)\)")
QUANTILE = re.compile(r"histogram_quantile\(([\d.]+), (.*)\)")
RATE = re.compile(r"rate\(([\w:]+)\[\$__rate_interval\]\)")
WINDOW = 5  # readings of a rate, where the dashboard has $__rate_interval
ACROSS = {"sum": sum, "max": max, "avg": lambda values: sum(values) / len(values)}


class Series:
    """The series of a record of `record.py metrics`."""

    def __init__(self, records):
        self.header, *lines = records
        self._by_name = {}
        for line in lines:
            values = line["values"] * self.header["readings"] if len(line["values"]) == 1 else line["values"]
            self._by_name.setdefault(line["series"], []).append((line["labels"], values))

    def evaluate(self, expression, at):
        """[(labels, value)] at a reading."""
        return self._value(re.sub(r"\{[^{}]*\}", "", expression), at)

    def _value(self, text, at):
        if match := QUANTILE.fullmatch(text):
            return [({}, quantile(float(match[1]), self._value(match[2], at)))]
        if " / " in text:
            above, below = (self._value(part, at) for part in text.split(" / "))
            return [({}, None if not below[0][1] or above[0][1] is None else above[0][1] / below[0][1])]
        if match := CALL.fullmatch(text):
            return self._grouped(match[1], match[2], self._value(match[3], at))
        if match := RATE.fullmatch(text):
            return [(labels, rate(values, at)) for labels, values in self._by_name.get(match[1], [])]
        if re.fullmatch(r"[\w:]+", text):
            return [(labels, values[at]) for labels, values in self._by_name.get(text, [])]
        raise ValueError(f"promql.py does not know the expression {text}; expected one of its docstring")

    @staticmethod
    def _grouped(across, label, values):
        groups = {}
        for labels, value in values:
            if value is not None:
                groups.setdefault(labels.get(label, ""), []).append(value)
        out = [({label: name} if label else {}, ACROSS[across](found)) for name, found in groups.items()]
        return out or [({}, None)]


def rate(values, at):
    """The increase per second over the last readings, which are a second apart."""
    known = [i for i in range(max(0, at - WINDOW), at + 1) if values[i] is not None]
    return (values[known[-1]] - values[known[0]]) / (known[-1] - known[0]) if len(known) > 1 else None


def quantile(share, buckets):
    """As histogram_quantile: linear within a bucket; None without observations."""
    bounds = sorted((float(labels["le"].replace("+Inf", "inf")), value) for labels, value in buckets if value is not None)
    if not bounds or bounds[-1][1] <= 0:
        return None
    wanted, below, before = share * bounds[-1][1], 0.0, 0.0
    for bound, count in bounds:
        if count >= wanted:
            if bound == float("inf"):
                return below
            return below + (bound - below) * ((wanted - before) / (count - before) if count > before else 1)
        below, before = bound, count
    return below

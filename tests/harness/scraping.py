"""The metrics of `ringlog load`, read as Prometheus reads them."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from waiting import PATIENCE


def read(port: int) -> dict[str, dict[str, float]]:
    """Values by name and table; for a histogram its count."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        text = str(answer.read(), "utf-8")
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[sample.labels["table"]] = sample.value
    return found

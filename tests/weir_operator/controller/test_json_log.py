"""Every record of the log is one line of JSON, with its parameters in separate fields."""

import json
import logging
import sys

from weir_operator.controller.json_log import JsonFormatter


def line_of(**extra):
    record = logging.makeLogRecord(
        {"name": "weir", "levelname": "INFO", "msg": "It\nruns."} | extra
    )
    return JsonFormatter().format(record)


def test_a_record_is_one_line():
    """K9: log collectors read lines."""
    endpoint = line_of(job="shop/orders")
    assert "\n" not in endpoint
    assert json.loads(endpoint)["job"] == "shop/orders"


def test_a_trace_is_a_field():
    """K9: a bug in us is found again."""
    try:
        json.loads("{nonsense")
    except ValueError:
        endpoint = line_of(exc_info=sys.exc_info())
    assert "JSONDecodeError" in json.loads(endpoint)["trace"]

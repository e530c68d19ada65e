"""Every record of the log is one line of JSON, with what it is about in fields of its own."""

import json
import logging
import sys

from weir_operator.controller.json_log import JsonLines


def line_of(**extra):
    record = logging.makeLogRecord(
        {"name": "weir", "levelname": "INFO", "msg": "It\nruns."} | extra
    )
    return JsonLines().format(record)


def test_a_record_is_one_line():
    """K9: whoever collects logs reads lines."""
    line = line_of(job="shop/orders")
    assert "\n" not in line
    assert json.loads(line)["job"] == "shop/orders"


def test_a_trace_is_a_field():
    """K9: a bug in us is found again."""
    try:
        json.loads("{nonsense")
    except ValueError:
        line = line_of(exc_info=sys.exc_info())
    assert "JSONDecodeError" in json.loads(line)["trace"]

"""The JSON schema of ``report.json``, for programs that read reports.

python -m axformer.reporting.schema > docs/report.schema.json
"""

import json
import sys

from axformer.wire.report import REPORT_FORMAT, Report


def schema_text() -> str:
    """The text of ``docs/report.schema.json``."""
    schema = Report.model_json_schema(mode="serialization")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:{REPORT_FORMAT.replace('/', ':')}"}
    return json.dumps(head | schema | {"title": REPORT_FORMAT}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())

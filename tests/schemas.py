"""The JSON schemas of ``report.json`` and ``analysis.json``, for programs that read them.

python -m tests.schemas > docs/report.schema.json
python -m tests.schemas analysis > docs/analysis.schema.json
"""

import json
import sys

from pydantic import BaseModel

from axformer.wire.analysis import ANALYSIS_FORMAT, Analysis
from axformer.wire.report import REPORT_FORMAT, Report


def schema_text(shape: type[BaseModel] = Report, name: str = REPORT_FORMAT) -> str:
    """The text of ``docs/report.schema.json``, or of the schema of another format."""
    schema = shape.model_json_schema(mode="serialization")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:{name.replace('/', ':')}"}
    text = json.dumps(head | schema | {"title": name}, indent=1, ensure_ascii=False)
    return text.replace("\\n", " ") + "\n"  # descriptions are docstrings, which are wrapped


def analysis_schema_text() -> str:
    """The text of ``docs/analysis.schema.json``."""
    return schema_text(Analysis, ANALYSIS_FORMAT)


if __name__ == "__main__":
    sys.stdout.write(analysis_schema_text() if sys.argv[1:] == ["analysis"] else schema_text())

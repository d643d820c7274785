"""`python -m quantizer.statistics` prints the JSON schema of the published statistics."""

import json

from quantizer.statistics import TensorStatistics

print(json.dumps(TensorStatistics.model_json_schema(), indent=1))

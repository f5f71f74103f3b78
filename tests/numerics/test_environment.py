"""The record of the environment shows what was changed from outside."""

import json

SCRIPT = (
    "import json; from seedless.numerics.environment import capture_environment; "
    "print(json.dumps(capture_environment()))"
)


def test_the_capability_override_shows(run_python):
    found = json.loads(run_python("-c", SCRIPT, ATEN_CPU_CAPABILITY="default").stdout)
    assert found["cpu"]["capability"] == "DEFAULT"
    assert found["variables"]["ATEN_CPU_CAPABILITY"] == "default"

"""Where in a source a value comes from a clock, a process number or an address."""

import pytest

from seedless.audit.doctor.changing_values import find_changing_origin, list_changing_calls


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = torch.full((2,), time.time())", 1),
        ("import time\nt = time.time_ns()\nu = t % 7\nx = torch.tensor(u)", 2),
        ("def f():\n  return os.getpid()\nx = torch.tensor(f())", 2),
        ("def f(n):\n  return torch.full((2,), n)\ny = f(id(y))", 3),
        (
            "class A:\n  def g(self):\n    self.t = uuid.uuid4()\n  def f(self):\n    h(self.t)",
            3,
        ),
        ("for t in [datetime.datetime.now().microsecond]:\n  torch.tensor(t)", 1),
        ("x = torch.full(\n  (2,),\n  time.perf_counter(),\n)", 3),
    ],
)
def test_the_call_behind_a_value_is_found(source, line):
    at = 2 if source.startswith("def f(n)") else source.count("\n") + 1
    found = find_changing_origin(source, at)
    assert found is not None
    assert found.line == line


@pytest.mark.parametrize(
    "source",
    [
        "t = time.time()\nx = torch.tensor(3)",
        "def f():\n  x = time.time()\ndef g(x):\n  return torch.tensor(x)",
        "x = model.id(3)",
        "x = torch.tensor(",
        "",
    ],
)
def test_a_clock_that_a_value_does_not_come_from_is_not_blamed(source):
    assert find_changing_origin(source, source.count("\n") + 1) is None


def test_clocks_that_only_time_something_are_left_out():
    timing = "start = time.time()\nwork()\nprint(time.time() - start)"
    assert list_changing_calls(timing) == []
    (found,) = list_changing_calls(f"{timing}\nx = time.time() % 7\ny.fill_(x)")
    assert (found.line, found.text) == (4, "time.time()")


@pytest.mark.parametrize(
    "source",
    [
        "run = uuid.uuid4().hex\nos.makedirs(f'runs/{run}')\nlog.info('run %s', run)",
        "t = time.time()\nhistory.append(time.time() - t)\njson.dump(history, file)",
        "def f():\n  return time.time()\nprint(f())",
    ],
)
def test_values_that_are_only_shown_or_stored_are_left_out(source):
    assert list_changing_calls(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "while time.monotonic() - start < budget: train()",
        "group['lr'] = base / (time.perf_counter() - start)",
        "def measure():\n  return time.time() % 7",
        "keys = []\nfor node in nodes: keys.append(id(node))\nx.copy_(keys)",
        "with tempfile.TemporaryDirectory() as path:\n  train(sorted(path))",
    ],
)
def test_values_that_are_computed_with_are_found(source):
    assert len(list_changing_calls(source)) == 1

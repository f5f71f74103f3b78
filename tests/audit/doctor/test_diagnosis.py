"""The order in which causes are named."""

from dataclasses import replace

from seedless.audit.doctor.diagnosis import list_candidates
from tests.audit.doctor.records import make_case, write_run
from tests.audit.doctor.test_draw_rules import seed
from tests.audit.doctor.test_op_rules import OP


def test_a_generator_seeded_by_a_clock_comes_before_the_value_that_it_gives(tmp_path):
    op = replace(OP, kind="source", names=("unnamed argument 'self'",), line="")
    runs = [
        write_run(
            tmp_path / str(number),
            [seed("numpy-generator", str(number), call="np.random.default_rng")],
            step1={"input": str(number)},
        )
        for number in range(2)
    ]
    causes = [candidate.cause for candidate in list_candidates(make_case(*runs, op=op))]
    assert causes == ["time-seed", "python-value"]

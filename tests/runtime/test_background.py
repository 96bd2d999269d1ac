"""Jobs on a thread beside, and forks meanwhile."""

import os
import threading

import pytest

from dy2st.runtime.executor import background_job
from dy2st.runtime.executor.background_job import BackgroundJob, apart
from dy2st.runtime.executor.tiering import TieredProgram
from tests.runtime.programs import X, looping, program_of


def test_a_job_runs_until_its_function_ends():
    go = threading.Event()
    job = BackgroundJob(lambda: go.wait(30))
    assert job.runs
    go.set()
    job.wait(30)
    assert not job.runs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_a_job_and_the_new_process_makes_code_itself():
    go, done = threading.Event(), []
    job = BackgroundJob(lambda: (go.wait(30), done.append(1)))
    threading.Timer(0.05, go.set).start()
    child = os.fork()
    if not child:
        runner = TieredProgram(program_of(looping, X))
        os._exit(17 if done and runner.run([X])[0].sum() >= 100 and runner.native is not None else 1)
    assert done == [1]
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    job.wait(30)
    with apart():
        assert background_job._working is not None

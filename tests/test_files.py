"""One process at a time holds a lock, whatever becomes of the process."""

import os
import signal
import socket
import threading

import pytest
from helpers import lock_holder

from hf_xorner.files import LockedError, locked


def test_a_second_process_is_refused_until_the_first_releases_the_lock(tmp_path):
    lock = tmp_path / "new" / "[a]*.lock"
    with lock_holder(lock) as other:
        with pytest.raises(LockedError) as caught, locked(lock, "runs/a"):
            pass
        assert f"runs/a is being written by process {other.pid} on {socket.gethostname()};" in str(caught.value)
    with locked(lock, "runs/a"):
        assert lock.exists()
    assert not lock.exists()


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    lock = tmp_path / ".lock"
    with lock_holder(lock) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert lock.read_text() == f"process {other.pid} on {socket.gethostname()}"
    with locked(lock, "runs/a"):
        assert lock.read_text() == f"process {os.getpid()} on {socket.gethostname()}"


def test_an_error_releases_the_lock(tmp_path):
    lock = tmp_path / ".lock"
    with pytest.raises(KeyboardInterrupt), locked(lock, "runs/a"):
        raise KeyboardInterrupt
    assert not lock.exists()
    with lock_holder(lock):
        pass


def test_a_thread_may_take_its_lock_again_and_another_thread_may_not(tmp_path):
    lock, refused = tmp_path / ".lock", []

    def take():
        try:
            with locked(lock, "runs/a"):
                pass
        except LockedError as error:
            refused.append(error)

    with locked(lock, "runs/a"):
        with locked(lock, "runs/a"):
            pass
        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        assert lock.exists()
    assert len(refused) == 1


@pytest.mark.parametrize("process", [0, 1])
def test_an_output_stays_locked_while_any_process_of_a_run_lives(tmp_path, process):
    """Whichever of two processes outlives the other, neither a run of one nor a run of two processes may begin."""
    lock = tmp_path / ".lock"
    with lock_holder(lock, process, 2) as other:
        for number, count in ((0, 1), (process, 2)):
            with pytest.raises(LockedError, match=f"process {other.pid} "), locked(lock, "runs/a", number, count):
                pass
        with locked(lock, "runs/a", 1 - process, 2):
            pass
    with locked(lock, "runs/a"):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]

"""Processes find each other through files, bring their pieces together in order, and wait for nobody in vain."""

import threading
import time

import pytest

from hf_xorner.data import DataError
from hf_xorner.tagging.chunks import chunks
from hf_xorner.tagging.partial import Partial, Piece
from hf_xorner.tagging.processes import Gathering, Spool, clear_away, run_path, signs_of_life, spool_path


class Lines:
    """A source in memory."""

    first, size, kind, name = 1, None, "text", "lines"

    def __init__(self, *raws):
        self.kept = raws

    def raws(self):
        return iter(self.kept)

    def position(self):
        return 0

    def bytes_of(self, raws):
        return b"".join(raws)

    def lines_of(self, raw):
        return 1


def piece(number, content=b""):
    return Piece(number, 0, f"d{number}", number, 1, 2, 0, "", content or f"piece {number}\n".encode())


def test_chunks_hold_records_of_one_input_and_number_their_lines():
    parts = [("a", Lines(b"1\n", b"2\n", b"3\n")), ("empty", Lines()), ("b", Lines(b"4\n"))]
    found = list(chunks(parts, 2))
    assert [(chunk.number, chunk.file, chunk.raws, chunk.first) for chunk in found] == [
        (0, 0, [b"1\n", b"2\n"], 1),
        (1, 0, [b"3\n"], 3),
        (2, 1, [], 1),
        (3, 2, [b"4\n"], 1),
    ]


def test_long_records_close_a_chunk():
    long = b"x" * (1 << 19) + b"\n"
    found = list(chunks([("", Lines(*[long] * 5))], 1000))
    assert [len(chunk.raws) for chunk in found] == [2, 2, 1]


def test_a_digest_tells_every_input_from_others():
    def last(*parts):
        return list(chunks([(name, Lines(*raws)) for name, *raws in parts], 2))[-1].digest

    alike = last(("", b"a\n", b"b\n"))
    assert last(("", b"a\n", b"b\n")) == alike
    others = [
        last(("", b"a\n", b"c\n")),
        last(("", b"a\n")),
        last(("x", b"a\n", b"b\n")),
        last(("", b"a\n"), ("", b"b\n")),
    ]
    assert len({alike, *others}) == 5


def helper(output, rank, world, total, pause=0.0, fault=None):
    spool = Spool(output, rank)
    with signs_of_life(spool.path):
        first = spool.wait_for_run(output, timeout=20)
        for number in range(first, total):
            if number % world == rank:
                time.sleep(pause)
                if number == fault:
                    spool.add_fault(number, f"lines:{number}: broken.")
                    return
                spool.add(piece(number, b"x" * 100_000 * (number == 4)))
    spool.close()


def gather(output, world, total, first=0, fault=None):
    """What the first process does, which here has no share of its own work but the writing of it."""
    partial = Partial(output, [""], {"a": 1}, overwrite=False)
    gathering = Gathering(output, world, timeout=2)
    spool = Spool(output, 0)
    spool.answer(gathering.run)
    gathering.begin(first)
    try:
        for number in range(first, total):
            if number % world == 0:
                spool.add(piece(number))
        for one in gathering.pieces(partial, total):
            partial.add(one)
        partial.finish()
    finally:
        gathering.close()
        partial.close()
        clear_away(output)


@pytest.mark.parametrize("world", [2, 3, 5])
def test_pieces_come_together_in_order_whoever_is_late(tmp_path, world):
    output = tmp_path / "out"
    # What an earlier run left: a spool of the same name, and a run that was not this one.
    Spool(output, 1).add(piece(1, b"stale\n"))
    Gathering(output, world, timeout=3).begin(7)
    threads = [threading.Thread(target=helper, args=(output, rank, world, 11, 0.1 / rank)) for rank in range(1, world)]
    for thread in threads[::2]:
        thread.start()
    late = threading.Timer(0.5, lambda: [thread.start() for thread in threads[1::2]])
    late.start()
    gather(output, world, 11)
    late.join()
    for thread in threads:
        thread.join()
    expected = [piece(n, b"x" * 100_000 * (n == 4 and n % world != 0)).content for n in range(11)]
    assert output.read_bytes() == b"".join(expected)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_process_that_never_comes_is_given_up(tmp_path):
    start = time.monotonic()
    with pytest.raises(DataError, match=r"process 1 has given no sign of life for 2 seconds"):
        gather(tmp_path / "out", 2, 4)
    assert time.monotonic() - start < 10
    assert (tmp_path / "out.partial").read_bytes() == b"piece 0\n"


def test_a_process_that_works_for_long_is_not_given_up(tmp_path):
    thread = threading.Thread(target=helper, args=(tmp_path / "out", 1, 2, 2, 3.5))
    thread.start()
    gather(tmp_path / "out", 2, 2)
    thread.join()
    assert (tmp_path / "out").read_bytes() == b"piece 0\npiece 1\n"


def test_a_fault_of_a_process_ends_the_run_where_it_is(tmp_path):
    thread = threading.Thread(target=helper, args=(tmp_path / "out", 1, 2, 9, 0, 5))
    thread.start()
    with pytest.raises(DataError, match=r"^lines:5: broken\.$"):
        gather(tmp_path / "out", 2, 9)
    thread.join()
    assert (tmp_path / "out.partial").read_bytes() == b"".join(piece(n, b"").content for n in range(4)) + b"piece 4\n"


def test_a_helper_gives_up_a_first_process_that_never_comes_or_is_of_an_earlier_run(tmp_path):
    output = tmp_path / "out"
    for stale in (False, True):
        if stale:
            run_path(output).write_text('{"run": "x", "names": {"out.partial.process-1": "y"}, "first": 0}')
        spool = Spool(output, 1)
        with pytest.raises(DataError, match="process 0 has given no sign of life for 1 seconds"):
            spool.wait_for_run(output, timeout=1)
        spool.close()
    assert spool_path(output, 1).exists()

"""The line to the Hub: whether there is one, how long it is waited for, and what went wrong, in one sentence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import Thread
from typing import Any, TypeVar

from huggingface_hub import HfApi, constants, get_session
from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

from ..errors import first_line

Answer = TypeVar("Answer")

#: Seconds before each further try.
WAITS = (0.3, 1.0, 2.0)
#: The same where an answer is wanted soon.
FIRST_WAITS = (0.2, 0.4)
#: Seconds without a byte after which a request is given up; the client itself would wait for ever.
SILENCE = 30.0

_TIMEOUT, _TOO_MANY, _MOVED, _SERVER = 408, 429, 412, 500


def transport_errors() -> type[Exception]:
    """Return what is raised where a request gets no answer: httpx's, or httpx2's where the client speaks through it."""
    return import_module(type(get_session()).__module__.partition(".")[0]).TransportError


def reach(api: HfApi, seconds: float) -> dict[str, Any]:
    """Ask the Hub who one is, and give up soon.

    The client tries again and again, and a name that cannot be resolved may block for long whatever the time limit; so
    the question is asked in a thread, which is left alone when its time is over.

    Args:
        api: The client.
        seconds: How long to wait for an answer.

    Raises:
        ValueError: If there is no answer, or the answer is that the token is not known.
    """
    if constants.HF_HUB_OFFLINE:
        raise ValueError(
            "the client is told to stay offline (HF_HUB_OFFLINE); unset that; --dry_run true checks without the Hub."
        )
    answers: list[Any] = []

    def ask() -> None:
        try:
            answers.append(patiently(api.whoami, FIRST_WAITS))
        except Exception as error:
            answers.append(error)

    thread = Thread(target=ask, daemon=True)
    with silence_limited(seconds):
        thread.start()
        thread.join(seconds)
    answer = answers[0] if answers else TimeoutError(f"no answer within {seconds:g} seconds")
    if isinstance(answer, (TimeoutError, transport_errors())):
        raise ValueError(
            f"{api.endpoint} cannot be reached ({first_line(answer)}); look after the connection; "
            "--dry_run true checks without it."
        ) from None
    if isinstance(answer, Exception):
        raise ValueError(f"{reason_of(answer)}.") from answer
    return dict(answer)


@contextmanager
def silence_limited(seconds: float) -> Iterator[None]:
    """Have requests of the client end after so many seconds of silence."""
    session = get_session()
    before, session.timeout = session.timeout, seconds
    try:
        yield
    finally:
        session.timeout = before


def patiently(call: Callable[[], Answer], waits: Sequence[float] = WAITS) -> Answer:
    """Call, and call again where what went wrong may pass."""
    for seconds in waits:
        try:
            return call()
        except Exception as error:
            if not passes(error):
                raise
        time.sleep(seconds)
    return call()


def passes(error: Exception) -> bool:
    """Whether it may go well the next time: the line broke, or the server has its troubles."""
    if isinstance(error, HfHubHTTPError):
        return status_of(error) in (_TIMEOUT, _TOO_MANY) or status_of(error) >= _SERVER
    return isinstance(error, transport_errors())


def status_of(error: HfHubHTTPError) -> int:
    """Return the status of an answer."""
    return error.response.status_code if error.response is not None else 0


def reason_of(error: BaseException) -> str:
    """Say in a few words, without a stop, what went wrong between the client and the Hub."""
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    if any(isinstance(one, LocalTokenNotFoundError) for one in chain):
        return "there is no token to publish with; log in by `hf auth login`, or set HF_TOKEN"
    answered = next((one for one in chain if isinstance(one, HfHubHTTPError)), None)
    if answered is not None:
        return _reason_of_answer(answered)
    broken = next((one for one in chain if isinstance(one, transport_errors())), None)
    if broken is not None:
        return f"the connection to the Hub broke ({first_line(broken)}); try again"
    return " ".join(str(error).split()).rstrip(".")


def _reason_of_answer(error: HfHubHTTPError) -> str:
    status = status_of(error)
    said = first_line(ValueError(error.server_message)) if error.server_message else f"status {status}"
    if status == 401:
        return f"the Hub does not know the token ({said}); log in anew by `hf auth login`, or set another HF_TOKEN"
    if status == 403:
        return f"the token may not do that ({said}); use one that may write there"
    if status == _MOVED:
        return "someone else has published there meanwhile; look at what stands there, and try again"
    if status >= _SERVER or status in (_TIMEOUT, _TOO_MANY):
        return f"the Hub has its troubles (status {status}, also on a further try); try again later"
    return f"the Hub refuses it ({said})"
